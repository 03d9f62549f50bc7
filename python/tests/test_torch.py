"""reel.torch: gradients of any order through Reel, and PyTorch's own cells beside Reel's."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed, so reel.torch is not tested")

import reel  # noqa: E402
import reel.torch as rt  # noqa: E402

f64 = torch.float64


def varied(name, **settings):
    """A cell whose parameters are away from the kinks that zeros lie on."""
    torch.manual_seed(3)
    cell = rt.Cell(name, 3, 4, dtype=f64, **settings)
    with torch.no_grad():
        for p in cell.parameters():
            p += 0.05 * torch.randn_like(p)
    return cell


@pytest.mark.parametrize("name", list(reel.cells()))
def test_gradcheck_and_gradgradcheck(name):
    cell = varied(name)
    names = [n for n, _ in cell.named_parameters()]
    xs = torch.randn(3, 2, 3, dtype=f64, requires_grad=True)

    def run(xs, *values):
        hs, last = torch.func.functional_call(cell, dict(zip(names, values)), (xs,))
        return (hs, *last)

    inputs = (xs, *cell.parameters())
    fast = name in ("nru", "sru")  # half a minute otherwise: random projections of the second derivatives
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs, fast_mode=fast)


@pytest.mark.parametrize(
    "name, theirs, gates", [("rnn", torch.nn.RNN, ""), ("lstm", torch.nn.LSTM, "ifgo"), ("gru", torch.nn.GRU, "rzn")]
)
def test_state_dicts_of_pytorch(name, theirs, gates):
    torch.manual_seed(0)
    module = theirs(3, 4).double()
    cell = rt.Cell(name, 3, 4, dtype=f64)
    cell.load_from(module)
    xs = torch.randn(5, 2, 3, dtype=f64)
    torch.testing.assert_close(cell(xs)[0], module(xs)[0], rtol=1e-12, atol=1e-12)
    with pytest.raises(reel.Error):
        cell.load_from(theirs(3, 5).double())
    with pytest.raises(reel.Error):
        rt.Cell("srnn", 3, 4).load_from(module)


@pytest.mark.parametrize("name", list(reel.cells()))
def test_symbols_and_a_table(name):
    """Symbols and the weight of nn.Embedding: the same outputs and gradients as what it looks up, of first and second
    order."""
    cell = varied(name)
    embedding = torch.nn.Embedding(5, 3, dtype=f64)
    symbols = torch.randint(5, (4, 2))
    parts = [embedding.weight, *cell.parameters()]
    ways = (cell(symbols, table=embedding.weight), cell(embedding(symbols)))
    slopes = [torch.autograd.grad(hs.square().sum(), parts, create_graph=True) for hs, _ in ways]
    curvatures = [torch.autograd.grad(sum((g * g.conj()).real.sum() for g in s), parts) for s in slopes]
    for found, expected in (ways, slopes, curvatures):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
    last = cell(symbols.int(), table=embedding.weight, every_step=False)[0]
    torch.testing.assert_close(last, ways[0][0][-1], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name, theirs", [("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)])
def test_lengths_are_those_of_packed_sequences(name, theirs):
    torch.manual_seed(0)
    module, cell = theirs(3, 4).double(), rt.Cell(name, 3, 4, dtype=f64)
    cell.load_from(module)
    xs, lengths = torch.randn(5, 3, 3, dtype=f64), torch.tensor([2, 5, 1])
    packed = torch.nn.utils.rnn.pack_padded_sequence(xs, lengths, enforce_sorted=False)
    expected, state = module(packed)
    hs, last = cell(xs, lengths=lengths)
    for b, n in enumerate(lengths):
        torch.testing.assert_close(hs[:n, b], torch.nn.utils.rnn.unpack_sequence(expected)[b])
    torch.testing.assert_close(last[0], (state[0] if name == "lstm" else state)[0])
    torch.testing.assert_close(cell(xs, lengths=[2, 5, 1], every_step=False)[0], last[0])


def test_lengths_are_integers():
    cell, xs = rt.Cell("gru", 3, 4), torch.randn(5, 2, 3)
    for bad in ([1.5, 2], torch.tensor([1.0, 2.0]), [True, False], torch.tensor([1j, 2])):
        with pytest.raises(reel.Error, match=r"\[torch\] lengths must be integers \[B\], got torch\.\w+. Hint"):
            cell(xs, lengths=bad)
    with pytest.raises(reel.Error, match=r"\[torch\] lengths .* got 4294967299"):
        cell(xs, lengths=torch.tensor([2**32 + 3, 2]))
    expected = cell(xs, lengths=[3, 2])[1][0]
    for lengths in (torch.tensor([3, 2], dtype=torch.uint8), np.array([3, 2]), torch.tensor([3, 2])):
        torch.testing.assert_close(cell(xs, lengths=lengths)[1][0], expected)


def test_a_cell_is_trained():
    torch.manual_seed(0)
    cell, head = rt.Cell("srnn", 1, 32), torch.nn.Linear(32, 1)
    optimiser = torch.optim.Adam([*cell.parameters(), *head.parameters()], 0.003)
    losses = []
    for _ in range(60):
        xs = torch.rand(10, 16, 1)
        loss = (head(cell(xs)[1][0]) - xs.sum(0)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        cell.updated()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    own = cell.cell.parameters()
    assert all(p.data_ptr() == torch.from_dlpack(own[name]).data_ptr() for name, p in cell.by_name().items())


def test_a_step_with_parameters():
    torch.manual_seed(0)
    own = rt.wrap(
        lambda h, x, p: (reel.tanh(reel.linear(h, p["U"]) + reel.linear(x, p["W"], p["b"])),) * 2,
        {"U": torch.randn(4, 4, dtype=f64) / 2, "W": torch.randn(4, 3, dtype=f64), "b": torch.zeros(4, dtype=f64)},
    )
    theirs = torch.nn.RNN(3, 4, bias=True).double()
    with torch.no_grad():
        theirs.weight_hh_l0.copy_(own.U), theirs.weight_ih_l0.copy_(own.W)
        theirs.bias_ih_l0.zero_(), theirs.bias_hh_l0.zero_()
    xs, h0 = torch.randn(5, 2, 3, dtype=f64), torch.zeros(2, 4, dtype=f64)
    ys, last = own(xs, h0)
    expected, _ = theirs(xs)
    torch.testing.assert_close(ys, expected), torch.testing.assert_close(last, expected[-1])
    for ours, other in zip(
        torch.autograd.grad(ys.square().sum(), [own.U, own.W, own.b]),
        torch.autograd.grad(expected.square().sum(), [theirs.weight_hh_l0, theirs.weight_ih_l0, theirs.bias_ih_l0]),
    ):
        torch.testing.assert_close(ours, other)


def nested_step(h, x, p):
    (U, W), b = p["layers"][0], p["out.b"]
    return (reel.tanh(reel.linear(h, U) + reel.linear(x, W, b) + p["in"]["c"]),) * 2


def test_a_step_with_nested_parameters(tmp_path):
    torch.manual_seed(0)
    theirs = torch.nn.RNN(3, 4).double()
    W, U, b, c = (p.detach().clone() for p in theirs.parameters())
    own = rt.wrap(nested_step, {"layers": [(U, W)], "out.b": b, "in": {"c": c, "none": None}})
    names = ["layers.0.0", "layers.0.1", "out.b", "in.c"]
    assert sorted(own.state_dict()) == sorted(name for name, _ in own.named_parameters()) == sorted(names)
    xs, h0 = torch.randn(5, 2, 3, dtype=f64), torch.zeros(2, 4, dtype=f64)
    expected, _ = theirs(xs)
    torch.testing.assert_close(own(xs, h0)[0], expected)
    parameters = [own.get_parameter(name) for name in ("layers.0.1", "layers.0.0", "out.b", "in.c")]  # as in nn.RNN
    ours = torch.autograd.grad(own(xs, h0)[0].square().sum(), parameters)
    torch.testing.assert_close(ours, torch.autograd.grad(expected.square().sum(), [*theirs.parameters()]))

    with torch.no_grad():
        own.layers.get_submodule("0").register_parameter("0", torch.nn.Parameter(2 * U))
        theirs.weight_hh_l0.copy_(2 * U)
    torch.save(own, tmp_path / "own.pt"), torch.save(own.state_dict(), tmp_path / "state.pt")
    fresh = rt.wrap(nested_step, {"layers": ((0 * U, W),), "out.b": b, "in": {"c": c}})
    fresh.load_state_dict(torch.load(tmp_path / "state.pt"))
    for module in (own, fresh, copy.deepcopy(own), torch.load(tmp_path / "own.pt", weights_only=False)):
        torch.testing.assert_close(module(xs, h0)[0], theirs(xs)[0])
    assert [*rt.wrap(nested_step, torch.nn.ParameterDict({"U": U})).state_dict()] == ["U"]
    twice = {name: 2 * p for name, p in fresh.named_parameters()}
    called = torch.func.functional_call(fresh, twice, (xs, h0))[0]
    for p in fresh.parameters():
        p.data *= 2
    torch.testing.assert_close(called, fresh(xs, h0)[0])


def test_parameters_that_pytorch_cannot_name():
    x = torch.ones(2)
    for parameters, words in (
        ({"a": x, "a.b": x}, r"\[torch\] PyTorch cannot name a parameter a.b: attribute 'a' already exists. Hint"),
        ({"a.b": x, "a": x}, "parameter a: attribute 'a' already exists"),
        ({"forward": x}, "parameter forward: attribute 'forward' already exists"),
        ({"a": {"": x}}, "parameter a.: parameter name can't be empty"),
        ({"a.b": x, "a": {"b": x}}, r"\['a.b'\] and \['a'\]\['b'\] are both called a.b"),
        ({"a": [1.0]}, r"parameters\['a'\]\[0\]: a tensor, .* is expected, got float"),
        (x, "parameters: a tuple, list or dict of tensors is expected, got torch.Tensor"),
    ):
        with pytest.raises(reel.Error, match=words):
            rt.wrap(nested_step, parameters)


def test_several_inputs_states_and_outputs():
    pair = rt.wrap(lambda s, x: ((s[0] + x[0], s[1] * x[1]), (s[0], s[1])))
    a = torch.rand(4, 2, dtype=f64, requires_grad=True)
    one = torch.ones(2, dtype=f64)
    (ys, zs), (last, product) = pair((a, a), (one, one))
    torch.testing.assert_close(last, 1 + a.sum(0)), torch.testing.assert_close(product, a.prod(0))
    assert torch.autograd.gradgradcheck(lambda a: pair((a, a), (one, one))[0], (a,))


def test_states_and_outputs_in_dicts():
    own = rt.wrap(lambda s, x: ({"c": s["c"] + 1, "h": s["h"] + x["x"]}, {"y": s["h"]}))
    ys, last = own({"x": torch.ones(3, 2)}, {"h": torch.zeros(2), "c": torch.zeros(())})
    assert last["h"].tolist() == [3, 3] and last["c"].item() == 3 and ys["y"][:, 0].tolist() == [0, 1, 2]


def test_a_function_of_trees():
    """A model and its loss in Reel, with parameters of PyTorch."""
    cell, head = varied("gru"), torch.nn.Linear(4, 5, dtype=f64)
    xs, classes = torch.randn(6, 2, 3, dtype=f64, requires_grad=True), torch.randint(5, (6, 2))

    @rt.function
    def loss(xs, parameters, head, classes):
        hs, last = cell.cell.run(xs, parameters=parameters)
        logits = reel.linear(hs, head["W"], head["b"])
        return {"loss": reel.cross_entropy(logits, classes), "last": (last[0], None)}

    def found(xs):
        return loss(xs, cell.by_name(), {"W": head.weight, "b": head.bias}, classes.int())

    def expected(xs):
        hs, last = cell(xs)
        return torch.nn.functional.cross_entropy(head(hs).flatten(0, 1), classes.flatten()), last[0]

    torch.testing.assert_close((found(xs)["loss"], found(xs)["last"][0]), expected(xs))
    assert found(xs)["last"][1] is None
    parts = [xs, head.weight, head.bias, *cell.parameters()]
    slopes = [torch.autograd.grad(f, parts) for f in (found(xs)["loss"], expected(xs)[0])]
    torch.testing.assert_close(slopes[0], slopes[1])
    assert torch.autograd.gradgradcheck(lambda xs: found(xs)["loss"], (xs,))
    with pytest.raises(reel.Error, match="a tensor, or a tuple, list or dict of tensors is expected, got float"):
        loss(xs, cell.by_name(), 1.0, classes)


def test_gradient_penalty():
    """A second derivative in training: the loss has a gradient in it."""
    cell = varied("lstm")
    xs = torch.randn(3, 2, 3, dtype=f64, requires_grad=True)
    (g,) = torch.autograd.grad(cell(xs)[0].sum(), xs, create_graph=True)
    g.square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in cell.parameters() if p.grad is not None)
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in cell.parameters())


def test_memory_is_shared():
    x = torch.arange(4.0)
    assert rt.from_reel(rt.to_reel(x)).data_ptr() == x.data_ptr()
    assert reel.tensor([1.0]).numpy() + 0 == torch.from_dlpack(reel.tensor([1.0])).numpy()
    y = torch.randn(2, 3, dtype=torch.complex64)
    torch.testing.assert_close(rt.from_reel(rt.to_reel(y.conj().T)), y.conj().T)


def test_errors_reach_pytorch():
    cell = rt.Cell("lstm", 3, 4)
    with pytest.raises(reel.Error, match="the input must be"):
        cell(torch.zeros(5, 2, 4))
    with pytest.raises(reel.Error, match="has no value"):
        rt.wrap(lambda h, x: (h if h[0] > 0 else x, None))(torch.zeros(3, 1), torch.zeros(1))
    with pytest.raises(reel.SettingError, match="no such setting"):
        rt.Cell("srnn", 3, 4, widht=3)
    table = torch.zeros(7, 3)
    for symbols in (torch.full((2, 2), 7), torch.full((2, 2), -1), torch.full((2, 2), 2**32)):
        with pytest.raises(reel.Error, match="symbols from 0 to 6"):
            cell(symbols, table=table)
    with pytest.raises(reel.Error, match="symbols, integers"):
        cell(torch.zeros(2, 2), table=table)
    xs = torch.randn(3, 2, 3)
    hs, _ = cell(xs)
    with torch.no_grad():
        next(cell.parameters()).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        hs.sum().backward()


def test_denormals_are_flushed_on_all_threads():
    """torch.set_flush_denormal() is one thread's: Reel's own follow it, though they were there before."""
    before = reel.threads()
    halves = reel.full((2**20,), 2.0**-126)
    try:
        for threads in (1, 3):
            reel.set_threads(threads)
            for on in (True, False):
                if torch.set_flush_denormal(on):
                    assert (halves * 0.5).numpy().astype(bool).sum() == (0 if on else 2**20)
    finally:
        torch.set_flush_denormal(False)
        reel.set_threads(before)


def test_modules_that_compute_something_else_are_refused():
    xs = torch.randn(5, 2, 3, dtype=f64)
    for given, other in (("relu", "tanh"), ("tanh", "relu")):
        module = torch.nn.RNN(3, 4, nonlinearity=given).double()
        with pytest.raises(reel.Error, match=f"the cell has {other}, nn.RNN has {given}. Hint: Cell.*activation='{given}'"):
            rt.Cell("rnn", 3, 4, dtype=f64, activation=other).load_from(module)
        cell = rt.Cell("rnn", 3, 4, dtype=f64, activation=given)
        cell.load_from(module)
        torch.testing.assert_close(cell(xs)[0], module(xs)[0], rtol=1e-12, atol=1e-12)
    both = torch.nn.GRU(3, 4, bidirectional=True).double()
    cell = rt.Cell("gru", 3, 4, dtype=f64)
    for given in (both, both.state_dict()):
        with pytest.raises(reel.Error, match="is bidirectional, a cell has one direction. Hint"):
            cell.load_from(given)
    cell.load_from({name: value for name, value in both.state_dict().items() if not name.endswith("_reverse")})
    torch.testing.assert_close(cell(xs)[0], both(xs)[0][..., :4], rtol=1e-12, atol=1e-12)


def test_a_tensor_of_pytorch_is_called_by_its_name():
    with pytest.raises(reel.Error, match=r"is expected, got torch.Tensor. Hint: reel.asarray\(x\)"):
        reel.scan(lambda h, x: (h, None), torch.zeros(2), reel.ones((3, 2)))


def test_second_gradients_are_those_of_the_call_that_was_made():
    """Not of another call of the same function, which may do something else."""
    calls, factor = [], [2.0]

    def f(a):
        calls.append(1)
        return reel.sum(a * a * a) * (factor[0] if len(calls) == 1 else 99.0)

    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = rt.function(f)(x)
    factor[0] = 5.0
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    assert (first.tolist(), second.tolist(), third.tolist(), len(calls)) == ([6, 24], [12, 24], [12, 12], 1)
    (flat,) = torch.autograd.grad(rt.function(reel.sum)(x), x, create_graph=True)
    assert torch.autograd.grad(flat.sum(), x)[0].tolist() == [0, 0]

    w = reel.tensor([1.0, 1.0])
    x = torch.ones(2, requires_grad=True)
    y = rt.function(lambda a: reel.sum(a * w))(x)
    w.assign(reel.zeros(2))
    with pytest.raises(reel.Error, match="changed in place"):
        torch.autograd.grad(y, x, create_graph=True)
