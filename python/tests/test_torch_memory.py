"""reel.torch: what is refused, what shares memory, and copies of modules."""

import copy
import io
import pickle

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed, so reel.torch is not tested")

import reel  # noqa: E402
import reel.torch as rt  # noqa: E402


def test_tensors_that_require_a_gradient_are_refused():
    """Where PyTorch's graph would end silently."""
    W = torch.eye(2, requires_grad=True)
    x = torch.ones(3, 2, 2)
    r = reel.ones((2, 2))
    step = rt.wrap(lambda h, x: (reel.tanh(reel.linear(h, W) + x),) * 2)
    for call, name in (
        (lambda: step(x, torch.zeros(2, 2)), "operand"),
        (lambda: rt.function(lambda x: x * W)(x), "operand"),
        (lambda: r + W, "operand"),
        (lambda: W * r, "operand"),
        (lambda: reel.matmul(W, r), "operand"),
        (lambda: reel.from_dlpack(W), "from_dlpack"),
        (lambda: reel.asarray(W), "asarray"),
        (lambda: reel.tensor(W), "tensor"),
    ):
        with pytest.raises(
            reel.Error,
            match=rf"\[{name}\].*requires a gradient.*torch.float32, shape \(2, 2\).*pass it as an argument.*detach",
        ):
            call()
    assert (r + W.detach()).tolist() == [[2, 1], [1, 2]] and reel.tensor(W.detach()).tolist() == [[1, 0], [0, 1]]


def test_dtypes_that_are_refused():
    half = torch.ones(2, dtype=torch.bfloat16)
    for make in (reel.tensor, reel.asarray):
        with pytest.raises(reel.Error, match=r"\[tensor\] .*Hint: convert it first, as by x.float()"):
            make(half)
    with pytest.raises(reel.Error, match=r"\[from_dlpack\] .* got torch.bfloat16. Hint: convert"):
        reel.from_dlpack(half)


def test_conjugates_and_negatives():
    """PyTorch only marks them."""
    z = torch.tensor([1 + 2j])
    for made in (reel.from_dlpack, reel.asarray, reel.tensor, lambda x: reel.zeros(1, "c64") + x):
        assert made(z.conj()).item() == 1 - 2j
    for made in (reel.from_dlpack, reel.asarray, reel.tensor, lambda x: reel.zeros(1) + x):
        assert made(z.conj().imag).item() == -2


def test_results_and_gradients_have_memory_of_their_own():
    x = torch.zeros(3)
    y = rt.function(lambda a: a)(x)
    y.add_(1)
    assert x.tolist() == [0, 0, 0] and y.tolist() == [1, 1, 1]
    for f in (lambda a: (a + 1,) * 2, lambda a: (a + 1, a)):
        first, second = rt.function(f)(x)
        first.add_(5)
        assert second[0].item() in (0, 1) and x[0].item() == 0
    whole = rt.function(lambda a: (lambda b: (b, reel.reshape(b, (1, 3))))(a * 2))(x)
    whole[0].add_(1)
    assert whole[1].tolist() == [[0, 0, 0]]
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    dy = torch.ones(2)
    rt.function(lambda a, b: a + b)(a, b).backward(dy)
    torch.nn.utils.clip_grad_norm_([a, b], 1.0)  # in place
    torch.testing.assert_close(a.grad, torch.full((2,), 0.5), rtol=1e-4, atol=0)
    torch.testing.assert_close(b.grad, a.grad), torch.testing.assert_close(dy, torch.ones(2))


@pytest.mark.parametrize("layer", [torch.nn.ReLU, lambda inplace: torch.nn.Dropout(0.5, inplace)])
def test_outputs_may_change_in_place_before_the_backward_pass(layer):
    """As those of nn.LSTM: the tape has its own."""
    cell, xs = rt.Cell("lstm", 3, 8, dtype=torch.float64), torch.randn(6, 4, 3, dtype=torch.float64)
    gradients = []
    for inplace in (False, True):
        torch.manual_seed(1)
        hs = layer(inplace=inplace)(cell(xs)[0])
        gradients.append(torch.autograd.grad(hs.square().sum(), list(cell.parameters())))
    torch.testing.assert_close(*gradients, rtol=0, atol=0)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (dx,) = torch.autograd.grad(rt.function(reel.tanh)(x).mul_(2).sum(), x)
    torch.testing.assert_close(dx, 2 * (1 - torch.tanh(x.detach()) ** 2))


@pytest.mark.parametrize("differentiated", [True, False])
def test_what_a_function_holds_is_not_handed_out(differentiated):
    w, theirs = reel.ones((3, 3)), torch.ones(3)
    x = torch.ones(3, requires_grad=differentiated)
    for f in (lambda a: w, lambda a: w[0], lambda a: (a * 2, w), lambda a: reel.from_dlpack(theirs)):
        y = rt.function(f)(x)
        (y[-1] if isinstance(y, tuple) else y).detach().zero_()
    assert w.tolist() == [[1] * 3] * 3 and theirs.tolist() == [1] * 3


def off_its_constraint(how):
    """A cell whose columns have no length of 1, in memory that is not the cell's."""
    cell = rt.Cell("ornn", 2, 4)
    cell = how(cell)
    with torch.no_grad():
        for p in cell.parameters():
            p.mul_(3)
    return cell


def assigned(cell):
    cell.load_state_dict({k: v.clone() for k, v in cell.state_dict().items()}, assign=True)
    return cell


@pytest.mark.parametrize(
    "how", [lambda c: c.double().float(), lambda c: c.double(), assigned, copy.deepcopy, lambda c: c]
)
def test_updated_projects_wherever_the_memory_is(how):
    cell, plain = off_its_constraint(how), off_its_constraint(lambda c: c)
    cell.updated(), plain.updated()
    own = cell.cell.parameters()
    for name, p in cell.by_name().items():
        torch.testing.assert_close(p.float(), plain.by_name()[name], rtol=1e-5, atol=1e-6)
        assert torch.equal(p, torch.from_dlpack(own[name]))
    assert any(not torch.equal(p, 3 * q) for p, q in zip(cell.parameters(), rt.Cell("ornn", 2, 4).parameters()))


def with_constants():
    names = [name for name in reel.cells() if reel.cell(name, 3, 4).constants()]
    found = [n for n in names if any(c.dtype == reel.f32 for c in reel.cell(n, 3, 4).constants().values())]
    return (found or names)[0]


def test_buffers_that_were_replaced_count():
    first, second = (rt.Cell(with_constants(), 3, 4, seed=s) for s in (1, 2))
    first.load_state_dict({k: v.clone() for k, v in second.state_dict().items()}, assign=True)
    xs = torch.randn(5, 2, 3)
    torch.testing.assert_close(first(xs), second(xs))
    first.updated()
    own = first.cell.constants()
    for name, x in first.named_buffers():
        assert torch.equal(x, torch.from_dlpack(own[name]))


@pytest.mark.parametrize("name", ["lstm", with_constants()])
def test_precisions(name):
    cell, wide = rt.Cell(name, 3, 4), rt.Cell(name, 3, 4, dtype=torch.float64)
    wide.load_state_dict(cell.state_dict())
    xs = torch.randn(5, 2, 3, dtype=torch.float64)
    cell.double()
    torch.testing.assert_close(cell(xs), wide(xs))
    cell(xs)[0].sum().backward()
    assert all(p.grad.dtype == torch.float64 for p in cell.parameters())
    assert cell.cell.dtype == reel.f64
    cell.float()
    assert cell(xs.float())[0].dtype == torch.float32
    with pytest.raises(reel.Error, match=rf"\[torch\] the parameters of {name} must be.*float16"):
        cell.half()(xs.half())


def test_functional_calls_leave_the_module_alone():
    cell, xs = rt.Cell(with_constants(), 3, 4), torch.randn(5, 2, 3)
    expected, state = cell(xs)[0], {name: x.clone() for name, x in cell.state_dict().items()}
    for precision in (torch.float32, torch.float64):
        other = {n: (2 * x).to(precision) if x.is_floating_point() else x for n, x in cell.state_dict().items()}
        assert torch.func.functional_call(cell, other, (xs.to(precision),))[0].dtype == precision
        assert all(torch.equal(x, state[name]) for name, x in cell.state_dict().items())
    torch.testing.assert_close(cell(xs)[0], expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", list(reel.cells()))
@pytest.mark.parametrize("how", ["deepcopy", "pickle", "torch.save"])
def test_copies_of_modules(name, how):
    cell = rt.Cell(name, 3, 4, seed=5, checkpoint_every=2)
    with torch.no_grad():
        for p in cell.parameters():
            p.add_(0.01)
    if how == "deepcopy":
        other = copy.deepcopy(cell)
    elif how == "pickle":
        other = pickle.loads(pickle.dumps(cell))
    else:
        file = io.BytesIO()
        torch.save(torch.nn.Sequential(cell), file)
        file.seek(0)
        other = torch.load(file, weights_only=False)[0]
    xs = torch.randn(4, 2, 3)
    torch.testing.assert_close(other(xs), cell(xs), rtol=0, atol=0)
    own = other.cell.parameters()
    for key, p in other.by_name().items():  # shared again, but not with the first
        assert p.data_ptr() == torch.from_dlpack(own[key]).data_ptr() != cell.by_name()[key].data_ptr()
    assert repr(other) == repr(cell) and other.state_dict().keys() == cell.state_dict().keys()


def test_torch_compile_leaves_it_to_reel():
    step = rt.wrap(lambda h, x: (reel.tanh(h + x),) * 2)
    double = rt.function(lambda x: x * 2)
    xs, h = torch.randn(3, 2), torch.zeros(2)
    for f, arguments in ((step, (xs, h)), (double, (xs,)), (lambda x: double(x + 1) * 3, (xs,))):
        torch.testing.assert_close(torch.compile(f, backend="eager")(*arguments), f(*arguments))
    cell = rt.Cell("lstm", 2, 4)
    torch.testing.assert_close(torch.compile(cell, backend="eager")(xs[:, None]), cell(xs[:, None]))
    x = torch.randn(3, requires_grad=True)
    torch.compile(lambda x: double(x).sum(), backend="eager")(x).backward()
    assert x.grad.tolist() == [2, 2, 2]
