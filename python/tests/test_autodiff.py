"""grad, value_and_grad and vjp, of any order."""

import numpy as np
import pytest

import reel

x0 = reel.tensor([0.3, -1.2, 2.0], dtype="f64")


def central(f, x, eps=1e-6):
    a = np.array(x)
    out = np.zeros_like(a)
    for i in np.ndindex(a.shape):
        d = np.zeros_like(a)
        d[i] = eps
        out[i] = (f(reel.tensor(a + d)).item() - f(reel.tensor(a - d)).item()) / (2 * eps)
    return out


def test_gradient_is_the_difference_quotient():
    f = lambda x: reel.sum(reel.tanh(x) * reel.exp(-x * x))  # noqa: E731
    np.testing.assert_allclose(reel.grad(f)(x0).numpy(), central(f, x0), rtol=1e-7)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_orders(order):
    f = lambda x: reel.sum(reel.sin(x))  # noqa: E731
    for _ in range(order - 1):
        f = (lambda inner: lambda x: reel.sum(reel.grad(inner)(x)))(f)
    derivative = [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin][order - 1]
    np.testing.assert_allclose(reel.grad(f)(x0).numpy(), derivative(x0.numpy()), rtol=1e-12)


def test_values_computed_before_are_constants():
    def outer(x):
        c = x * x
        return reel.sum(reel.grad(lambda z: reel.sum(z * c))(x))  # the sum of c

    np.testing.assert_allclose(reel.grad(outer)(x0).numpy(), 2 * x0.numpy())


def test_results_computed_before_are_constants():
    c = reel.tensor(np.array(3.0))
    assert reel.grad(lambda x: c)(x0).tolist() == [0] * x0.size
    (value, aux), gradient = reel.value_and_grad(lambda x: (c, 1), has_aux=True)(x0)
    assert value.item() == 3 and aux == 1 and gradient.tolist() == [0] * x0.size
    values, pullback = reel.vjp(lambda x: (2 * x, c), x0)
    assert values[1].item() == 3 and pullback((x0, None))[0].tolist() == pullback((x0, c))[0].tolist() == (2 * x0).tolist()
    nested = reel.grad(lambda x: reel.sum(x * x * reel.vjp(lambda y: c, x)[1](c)[0] + reel.grad(lambda y: c)(x) + x))
    assert nested(x0).tolist() == [1] * x0.size
    with pytest.raises(reel.Error, match="without a cotangent it must be a scalar"):
        reel.grad(lambda x: x0)(x0)


def test_structures_and_argnums():
    def loss(p, x, scale=1.0):
        return scale * reel.sum(p["w"] * x + p["b"][0]), "aux"

    p = {"w": reel.ones(2), "b": (reel.tensor(2.0), None)}
    (value, aux), g = reel.value_and_grad(loss, has_aux=True)(p, reel.tensor([3.0, 4.0]), scale=2.0)
    assert value.item() == 22 and aux == "aux"
    assert g["w"].tolist() == [6, 8] and g["b"][0].item() == 4 and g["b"][1] is None
    g, _ = reel.grad(loss, argnums=(1, 0), has_aux=True)(p, reel.tensor([3.0, 4.0]))
    assert g[0].tolist() == [1, 1] and g[1]["w"].tolist() == [3, 4]


def test_argnums_are_integers_of_any_kind():
    f = lambda x, y: reel.sum(x * y)  # noqa: E731
    assert np.array_equal(reel.grad(f, argnums=np.int64(1))(x0, 2 * x0).numpy(), x0.numpy())
    dy, dx = reel.grad(f, argnums=(np.int32(-1), 0))(x0, 2 * x0)
    assert np.array_equal(dy.numpy(), x0.numpy()) and np.array_equal(dx.numpy(), 2 * x0.numpy())
    for bad in ("a", 1.0, None, (0, 1.5)):
        with pytest.raises(reel.Error, match=r"\[grad\] argnums: an integer or a tuple of them is expected, got"):
            reel.grad(f, argnums=bad)


def test_what_is_no_tensor_is_named_with_its_place():
    f = lambda *_: reel.sum(x0)  # noqa: E731
    step = lambda h, x: (h, x)  # noqa: E731
    rule = "a tensor, or a tuple, list or dict of tensors is expected, got"
    for wrong, said in (
        (lambda: reel.grad(f)(3.0), rf"\[grad\] args\[0\]: {rule} float. Hint: reel.tensor\(3.0\)"),
        (lambda: reel.grad(f, 1)(x0, {"a": [x0, 2]}), rf"args\[1\]\['a'\]\[1\]: {rule} int. Hint: reel.tensor\(2\)"),
        (lambda: reel.grad(f)(("a",)), rf"args\[0\]\[0\]: {rule} str$"),
        (lambda: reel.vjp(f, x0, 1j), rf"\[vjp\] args\[1\]: {rule} complex. Hint"),
        (lambda: reel.vjp(lambda x: (x, 1.0), x0), rf"\[vjp\] the result\[1\]: {rule} float. Hint"),
        (lambda: reel.scan(step, 0.0, x0), rf"\[scan\] init: {rule} float. Hint: reel.tensor\(0.0\)"),
        (lambda: reel.scan(step, x0, {"u": 1.0}), rf"\[scan\] xs\['u'\]: {rule} float. Hint"),
        (lambda: reel.scan(lambda h, x: (h, [x, 1.0]), x0, x0), rf"\[scan\] y\[1\]: {rule} float. Hint"),
    ):
        with pytest.raises(reel.Error, match=said):
            wrong()


@pytest.mark.parametrize(
    "f, dtype", [(reel.argmax, "i32"), (lambda x: reel.all(x > 0), "bool"), (lambda x: reel.sum(x).cast("i32"), "i32")]
)
def test_a_value_without_a_derivative_is_refused(f, dtype):
    rule = rf"\[grad\] the function must return a real scalar, got {dtype} \(\), whose gradient would be 0. Hint: f32"
    for differentiated in (reel.grad(f), reel.value_and_grad(lambda x: (f(x), 1), has_aux=True)):
        with pytest.raises(reel.Error, match=rule):
            differentiated(x0)


def test_complex_convention():
    z = reel.tensor([1 + 2j], dtype="c128")
    assert reel.grad(lambda z: reel.sum(reel.real(z * z.conj())))(z).item() == 2 + 4j


def test_vjp_repeats_and_nests():
    y, pullback = reel.vjp(lambda a, b: {"p": a * b, "s": a + b}, x0, 2 * x0)
    one = reel.ones_like(x0)
    for _ in range(2):
        da, db = pullback({"p": one, "s": None})
        assert np.array_equal(da.numpy(), 2 * x0.numpy()) and np.array_equal(db.numpy(), x0.numpy())
    assert np.array_equal(y["s"].numpy(), 3 * x0.numpy())

    def through(x):
        _, back = reel.vjp(lambda a: a * a * a, x)
        return reel.sum(back(reel.ones_like(x))[0])

    np.testing.assert_allclose(reel.grad(through)(x0).numpy(), 6 * x0.numpy())


def test_cotangents_go_by_their_keys():
    def f(x):
        return {"a": 2 * x, "b": (3 * x, None, 5 * x)}

    one, zero = reel.ones_like(x0), reel.zeros_like(x0)
    _, pullback = reel.vjp(f, x0)
    assert pullback({"b": (zero, None, zero), "a": one})[0].tolist() == [2, 2, 2]
    assert pullback({"b": [None, None, one], "a": None})[0].tolist() == [5, 5, 5]
    assert pullback({"b": None, "a": one})[0].tolist() == [2, 2, 2] and pullback(None)[0].tolist() == [0, 0, 0]
    for bad, words in (
        ({"a": one, "c": None}, "the cotangent must have the keys 'a', 'b', got 'a', 'c'"),
        ({"a": one}, "must have the keys 'a', 'b', got 'a'"),
        ((one, (one, None, one)), "must be a dict, got a tuple"),
        ({"a": one, "b": (one, None)}, r"the cotangent\['b'\] must be a tuple of 3, got 2"),
        ({"a": one, "b": (one, one, one)}, r"the cotangent\['b'\]\[1\] must be None, got a tensor"),
        ({"a": 1.0, "b": None}, r"the cotangent\['a'\] must be a tensor, got a float"),
    ):
        with pytest.raises(reel.Error, match=words):
            pullback(bad)


def test_pullbacks_in_any_order():
    pairs = [reel.vjp(lambda a, k=k: a * k, x0) for k in range(5)]
    for k in (3, 0, 4):
        assert np.array_equal(pairs[k][1](reel.ones_like(x0))[0].numpy(), np.full(3, float(k)))
        pairs[k] = None
    assert reel.grad(lambda x: reel.sum(x * 2))(x0).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda x: x, "must be a scalar"),
        (lambda x: 1.0, "scalar tensor, got float"),
        (lambda x: None, "NoneType"),
        (lambda x: (reel.sum(x), x), "got tuple. Hint: has_aux=True"),
        (lambda x: reel.sum(reel.schur(reel.diag_embed(x)).T.real()), "no derivative|not differentiable"),
    ],
)
def test_bad_functions(f, words):
    with pytest.raises(reel.Error, match=words):
        reel.grad(f)(x0)


def test_arrays_stand_for_tensors():
    a = np.array([1.0, 2.0, 3.0])
    gradient = reel.grad(lambda p: reel.sum(p["w"] * p["w"]))({"w": a})["w"]
    assert isinstance(gradient, reel.Tensor) and gradient.dtype == reel.f64 and gradient.tolist() == [2, 4, 6]
    value, pullback = reel.vjp(lambda x: (x * x, x), a)
    a[:] = 0  # the tape has a copy
    assert pullback((np.ones(3), None))[0].tolist() == [2, 4, 6] and value[1].tolist() == [1, 2, 3]


def test_stop_gradient():
    rounded = reel.grad(lambda x: reel.sum(x + reel.stop_gradient(reel.round(x) - x)))
    assert rounded(x0).tolist() == [1, 1, 1]
    assert reel.stop_gradient(x0).tolist() == x0.tolist()


def test_bad_arguments():
    for given, said in (
        (reel.tensor([1, 2]), r"args\[0\] is i32 \(2,\)"),
        ({"a": x0, "n": None, "b": [x0, reel.tensor(True)]}, r"args\[0\]\['b'\]\[1\] is bool \(\)"),
    ):
        with pytest.raises(reel.Error, match=rf"\[grad\] {said}; only floating point has gradients. Hint: an argument"):
            reel.grad(lambda given: reel.sum(x0))(given)
    with pytest.raises(reel.Error, match="argument 1"):
        reel.grad(lambda x: x, argnums=1)(x0)
    for argnums in ((0, 0), (0, -2)):
        with pytest.raises(reel.Error, match=rf"argnums: each argument once is expected, got \({argnums[0]}, {argnums[1]}\)"):
            reel.grad(lambda x, y: reel.sum(x * y), argnums=argnums)(x0, x0)
    with pytest.raises(reel.Error, match="real scalar, got a complex one"):
        reel.grad(lambda x: reel.sum(x * 1j))(x0)
    with pytest.raises(reel.Error, match="got float"):
        reel.grad(lambda x: x)(1.0)
    with pytest.raises(ZeroDivisionError):  # an exception of the function's own
        reel.grad(lambda x: 1 / 0)(x0)
    assert reel.grad(reel.sum)(x0).tolist() == [1, 1, 1]  # and all works afterwards


def test_values_that_are_overwritten():
    x = reel.tensor([1.0, 2.0])

    def f(a):
        y = reel.sum(a * x)
        x.assign(reel.zeros(2))
        return y

    with pytest.raises(reel.Error, match=r"changed in place.*test_autodiff.py:\d+"):
        reel.grad(f)(reel.ones(2))


def test_assign_of_what_is_differentiated():
    """No gradient goes through it, so it is refused; constants may go to tensors from outside."""
    outside = reel.zeros(3, "f64")

    def to_a_value(a):
        y = a * 1
        y.assign(reel.ones(3, "f64"))
        return reel.sum(y)

    def from_a_value(a):
        y = reel.zeros(3, "f64")
        y.assign(a * a * a)
        return reel.sum(y)

    def to_an_argument(a):
        a.assign(outside)
        return reel.sum(a)

    def constants(a):
        outside.assign(reel.tensor((a * a).numpy()))
        return reel.sum(a * a)

    for f, what in ((to_a_value, "the tensor"), (from_a_value, "the source"), (to_an_argument, "the tensor")):
        with pytest.raises(reel.Error, match=rf"\[assign\] {what} was computed in .*has_aux.*test_autodiff.py:\d+"):
            reel.grad(f)(x0)
        with pytest.raises(reel.Error, match=what):
            reel.grad(lambda x, f=f: reel.sum(reel.grad(f)(x)))(x0)
    assert np.array_equal(reel.grad(constants)(x0).numpy(), 2 * x0.numpy())
    assert np.array_equal(outside.numpy(), x0.numpy() ** 2)
    y = x0 * 1
    y.assign(x0 * x0)  # no tape
    assert np.array_equal(y.numpy(), x0.numpy() ** 2)


def test_pullbacks_after_or_outside_their_tape():
    kept = []
    reel.grad(lambda x: kept.append(reel.vjp(lambda a: a * a, x)[1]) or reel.sum(x))(x0)
    with pytest.raises(reel.Error, match="has ended"):
        kept[0](x0)
    _, outside = reel.vjp(lambda a: a * a, x0)
    with pytest.raises(reel.Error, match="call reel.vjp inside"):
        reel.grad(lambda x: reel.sum(outside(x)[0]))(x0)
    with pytest.raises(reel.Error, match="cotangent"):
        outside(reel.ones(2))
    with pytest.raises(reel.Error, match="the cotangent must be a tensor, got a tuple"):
        outside((x0, x0))


def test_check_grads():
    h, xs = reel.uniform([2, 3], seed=1, dtype=reel.f64), reel.uniform([5, 2, 3], seed=2, dtype=reel.f64)
    W = reel.normal([3, 3], seed=3, dtype=reel.f64)
    reel.check_grads(lambda p: reel.scan(lambda h, x: (reel.tanh(h @ p["W"] + x), h), p["h"], xs), {"W": W, "h": h})
    z = reel.complex(h, h + 1)
    reel.check_grads(lambda z, n, x: (reel.exp(reel.index_select(z, 0, n)), x), z, reel.tensor([1], dtype=reel.i32), h)
    reel.check_grads(lambda x: x * 2 if reel.grad(lambda y: reel.sum(y * y))(x).shape else x, h)
    reel.check_grads(lambda x: reel.relu(x - 5), h, order=1)
    reel.check_grads(lambda x: (x * x, reel.argmax(x, -1), x > 0, reel.tensor([1])), h)


def constant(x):
    """The values of x, through which no gradient goes."""
    return reel.tensor(x.numpy())


@pytest.mark.parametrize(
    "f, args, options, words",
    [
        (lambda a, b: a * b * constant(b), 2, {}, r"\[check_grads\] the gradient with respect to input 1 is not .*test_autodiff.py:\d+"),
        (lambda a: a * a + constant(a) * (a - constant(a)), 1, {}, "the gradient with respect to input 0 is not"),
        (lambda a: a, 1, {"order": 3}, "order is 1 or 2; got 3"),
        (lambda a: a.cast(reel.f32), 1, {}, "the result is f32"),
        (lambda a: (a, a.cast(reel.f32)), 1, {}, "the result is f32"),
        (lambda a: (a * constant(a), a > 0), 1, {}, "the gradient with respect to input 0 is not"),
        (lambda a: 1e7 + reel.stop_gradient(a), 1, {}, "the gradient with respect to input 0 is not"),
        (lambda a: 100 + 1e-5 * reel.scale_gradient(a, 1.5), 1, {}, "the gradient with respect to input 0 is not"),
        (lambda a: (a > 0, reel.argmax(a, -1)), 1, {}, r"\[check_grads\] f returns no tensor of f64 or c128.*test_aut"),
        (lambda a: None, 1, {}, "f returns no tensor"),
        (lambda a: 1.0, 1, {}, "got float"),
    ],
)
def test_check_grads_finds(f, args, options, words):
    x = reel.uniform([2, 3], seed=1, dtype=reel.f64)
    with pytest.raises(reel.Error, match=words):
        reel.check_grads(f, *[x + i for i in range(args)], **options)
    with pytest.raises(reel.Error, match="input 0 is f32"):
        reel.check_grads(f, *[x.cast(reel.f32)] * args)


def test_check_grads_finds_a_small_part_of_a_large_result():
    x, y = reel.uniform([4], seed=1, dtype=reel.f64), reel.ones([2000000], dtype=reel.f64)
    with pytest.raises(reel.Error, match="the gradient with respect to input 0 is not"):
        reel.check_grads(lambda x, y: reel.concat([reel.stop_gradient(x), y]), x, y, order=1)
    reel.check_grads(lambda x, y: reel.concat([x, y]), x, y, order=1)


@pytest.mark.parametrize(
    ("error", "of", "A"),
    [
        (lambda A: reel.det(A), "det", [[1, 1], [1, 1]]),
        (lambda A: reel.lu(A)[2].sum(), "lu", [[1, 1], [1, 1]]),
    ],
)
def test_an_error_of_a_vjp_names_the_op_that_was_called(error, of, A):
    """The gradients need inverses, which there are none of here."""
    with pytest.raises(reel.Error, match=rf"^in the gradient of {of} \(.*test_autodiff.py:\d+\): \["):
        reel.grad(error)(reel.tensor(A, dtype=reel.f64))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, a: reel.power(x, a),
        lambda x, a: reel.leaky_relu(x, a),
        lambda x, a: reel.elu(x, alpha=a),
        lambda x, a: reel.clamp(x, a, 3.0),
        lambda x, a: reel.affine(x, a, 0.0),
        lambda x, a: reel.scale_gradient(x, a),
        lambda x, a: reel.standardize(x, a),
        lambda x, a: reel.huber_loss(x, x, a),
        lambda x, a: reel.dropout(x, a, seed=1),
        lambda x, a: x * reel.normal((2,), a, seed=1),
    ],
)
def test_a_tensor_as_a_number_would_lose_its_gradient(f):
    x, a = reel.tensor([2.0, 3.0]), reel.tensor(0.5)
    assert f(x, a).numpy().tolist() == f(x, 0.5).numpy().tolist()  # nothing is recorded
    assert f(x, np.float32(0.5)).numpy().tolist() == f(x, 0.5).numpy().tolist()
    with pytest.raises(reel.Error, match=r"\[number\] .* got a tensor, f32 \(\), whose gradient would be lost. Hint"):
        reel.grad(lambda a: reel.sum(f(x, a)))(a)
    with pytest.raises(reel.Error, match=r"\[number\]"):
        reel.scan(lambda s, x: (f(s, reel.sum(x)), None), x, reel.ones((3, 2)))


def test_full_of_a_tensor_has_its_gradient():
    a = reel.tensor(2.5)
    assert reel.grad(lambda a: reel.sum(reel.full((2, 3), a)))(a).item() == 6
    assert reel.grad(lambda a: reel.sum(reel.full_like(reel.ones(4), a) * a))(a).item() == 20
    assert reel.grad(lambda a: reel.sum(reel.array_api.full((2, 3), a)))(a).item() == 6
    assert reel.full((2,), a, dtype="f64").dtype == "f64" and reel.full((2,), 1).numpy().tolist() == [1, 1]
    assert reel.full(2, reel.tensor(1j), "c64").tolist() == [1j, 1j]
    with pytest.raises(reel.Error, match=r"\[full\] the value is c64 \(\), the tensor f32. Hint: real\(\), or"):
        reel.full(2, reel.tensor(1j))
    with pytest.raises(reel.Error, match=r"\[full_like\] the value is c64 \(\), the tensor f64"):
        reel.full_like(reel.ones(2, "f64"), reel.tensor(1j))


def test_full_has_memory_of_its_own():
    w = reel.tensor([1.0, 2.0, 3.0])
    copies = [reel.full(3, w), reel.full_like(w, w), reel.full((), reel.tensor(7), "i32")]
    w.assign(reel.zeros(3))
    assert [c.tolist() for c in copies] == [[1, 2, 3], [1, 2, 3], 7]
    assert reel.grad(lambda w: reel.sum(reel.full(3, w)))(w).tolist() == [1, 1, 1]


@pytest.mark.parametrize("value", [2.7, float("nan"), float("inf"), 3e9])
def test_full_of_i32_is_a_whole_number(value):
    with pytest.raises(reel.Error, match=r'\[full\] an i32 is an integer .* got .* Hint: dtype="f64"'):
        reel.full(2, reel.tensor(value, "f64"), "i32")
    with pytest.raises(reel.Error, match=r"\[full_like\] an i32 is an integer of .*, got"):
        reel.full_like(reel.arange(2), reel.tensor(value))


def test_a_pullback_that_is_called_in_a_step():
    def f(x):
        y, pullback = reel.vjp(reel.tanh, x)
        return reel.sum(reel.scan(lambda h, u: (pullback(h)[0], None), y, length=2)[0])

    with pytest.raises(reel.Error, match=r"\[vjp\] .*outside of the step that is now traced. Hint: call reel.vjp in the"):
        reel.grad(f)(reel.tensor([1.0]))


def test_vjp_names_itself_for_integers():
    with pytest.raises(reel.Error, match=r"\[vjp\] args\[1\] is i32 \(1,\); only floating point has gradients"):
        reel.vjp(lambda x, i: x[i], reel.tensor([1.0, 2.0]), reel.tensor([0]))
