"""reel.scan: steps in Python."""

import collections

import numpy as np
import pytest

import reel

T, B, H = 6, 2, 3
xs = reel.normal((T, B, H), seed=1, dtype="f64")
h0 = reel.zeros((B, H), "f64")
W = reel.normal((H, H), seed=2, dtype="f64")


def step(h, x):
    h = reel.tanh(reel.linear(h, W) + x)
    return h, 2 * h


def test_equals_a_loop():
    last, ys = reel.scan(step, h0, xs)
    h, rows = h0.numpy(), []
    for x in xs.numpy():
        h = np.tanh(h @ W.numpy().T + x)
        rows.append(2 * h)
    np.testing.assert_allclose(last.numpy(), h, rtol=1e-12)
    np.testing.assert_allclose(ys.numpy(), rows, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"checkpoint_every": 2}])
def test_equals_unroll_with_gradients(options):
    def loss(runner, w, x, h, **options):
        def step(h, x):
            h = reel.tanh(reel.linear(h, w) + x)
            return h, h * h

        last, ys = runner(step, h, x, **options)
        return reel.sum(last) + reel.sum(ys * ys)

    plain = {k: v for k, v in options.items() if k != "checkpoint_every"}
    found = reel.value_and_grad(lambda *a: loss(reel.scan, *a, **options), (0, 1, 2))(W, xs, h0)
    expected = reel.value_and_grad(lambda *a: loss(reel.unroll, *a, **plain), (0, 1, 2))(W, xs, h0)
    np.testing.assert_allclose(found[0].numpy(), expected[0].numpy(), rtol=1e-12)
    for a, b in zip(found[1], expected[1]):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10, atol=1e-14)


def test_second_derivatives():
    def loss(w, runner):
        return reel.sum(runner(lambda h, x: (reel.tanh(reel.linear(h, w) + x), None), h0, xs)[0])

    def curvature(w, runner):
        g = reel.grad(lambda w: loss(w, runner))(w)
        return reel.sum(g * g)

    found, expected = (reel.grad(lambda w: curvature(w, r))(W).numpy() for r in (reel.scan, reel.unroll))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_gradient_inside_a_step():
    def descend(x, _):
        return x - 0.1 * reel.grad(lambda x: reel.sum(x * x))(x), None

    np.testing.assert_allclose(reel.scan(descend, h0 + 1, length=3)[0].numpy(), np.full((B, H), 0.8**3))


def test_structures():
    def step(state, x):
        return {"h": state["h"] + x[0], "n": (state["n"][0] + 1,)}, {"a": state["h"], "b": [x[1]]}

    last, ys = reel.scan(step, {"h": h0, "n": (reel.zeros(()),)}, (xs, xs * 2))
    assert (
        last["n"][0].item() == T and ys["a"].shape == (T, B, H) and np.array_equal(ys["b"][0].numpy(), 2 * xs.numpy())
    )


@pytest.mark.parametrize("run", [reel.scan, reel.unroll])
def test_dicts_go_by_their_keys(run):
    """The step may return the keys of a state, or of y, in any order."""
    calls = []

    def step(s, x):
        calls.append(1)
        y = {"a": x, "b": x + 1}
        y = y if len(calls) % 2 else dict(reversed(y.items()))
        return {"c": s["c"] * 0 + 7, "h": (s["h"][0] * 0 + 5,)}, y

    last, ys = run(step, {"h": (reel.zeros(()),), "c": reel.zeros(())}, reel.zeros(3))
    assert list(last) == ["h", "c"] and last["h"][0].item() == 5 and last["c"].item() == 7
    assert ys["a"].tolist() == [0, 0, 0] and ys["b"].tolist() == [1, 1, 1]


Pair = collections.namedtuple("Pair", "h c")
Swapped = collections.namedtuple("Swapped", "c h")


@pytest.mark.parametrize("run", [reel.scan, reel.unroll])
@pytest.mark.parametrize(
    "init, after, words",
    [
        (lambda z: {"h": z, "c": z}, lambda z: {"h": z, "d": z}, r"must have the keys 'h', 'c', got 'h', 'd'"),
        (lambda z: {"h": z, "c": z}, lambda z: (z, z), "returns must be a dict, got a tuple"),
        (lambda z: (z, z), lambda z: {"h": z, "c": z}, "returns must be a tuple, got a dict"),
        (lambda z: (z, {"h": z}), lambda z: (z, {}), r"the state\[1\] that the step returns must have the keys 'h', got none"),
        (lambda z: (z, None), lambda z: (z,), "must be a tuple of 2, got 1"),
        (lambda z: (z, None), lambda z: (z, z), r"the state\[1\] that the step returns must be None, got a tensor"),
        (lambda z: Pair(z, z), lambda z: Swapped(z, z), "must be a Pair, got a Swapped"),
        (lambda z: z, lambda z: 1.0, "must be a tensor, got a float"),
    ],
)
def test_states_that_change_their_structure(run, init, after, words):
    with pytest.raises(reel.Error, match=words):
        run(lambda s, x: (after(x), None), init(reel.zeros(())), reel.zeros(3))


def test_lists_stand_for_tuples():
    last, _ = reel.scan(lambda s, x: ([s[0] + 1, s[1]], None), (h0, h0), length=2)
    assert type(last) is tuple and last[0][0, 0].item() == 2
    last, _ = reel.scan(lambda s, x: ((s.c, s.h), None), Pair(h0, h0 + 1), length=1)
    assert type(last) is Pair and last.h[0, 0].item() == 1


def test_arrays_stand_for_tensors():
    xs = np.arange(6.0).reshape(3, 2)
    last, ys = reel.scan(lambda h, x: (h + x, h * x), np.zeros(2), xs)
    assert last.tolist() == xs.sum(0).tolist() and ys.tolist() == [[0, 0], [0, 3], [8, 20]]


def test_the_step_is_called_once():
    calls = []
    reel.scan(lambda h, x: (calls.append(1) or h + x, None), h0, xs)
    assert len(calls) == 1


def test_no_steps():
    last, ys = reel.scan(step, h0, xs[:0])
    assert np.array_equal(last.numpy(), h0.numpy()) and ys.shape == (0, B, H)


def look(h, x):
    if h[0, 0] > 0:
        return x, None
    return h, None


@pytest.mark.parametrize(
    "step, words",
    [
        (look, r"\[bool\] this tensor has no value.*test_scan.py:\d+"),
        (lambda h, x: (h * float(x[0, 0]), None), r"\[float\] this tensor has no value.*test_scan.py:\d+"),
        (lambda h, x: (h.numpy(), None), "has no value.* Hint: compute with the tensor itself"),
        (lambda h, x: ((h, x) if h else None, None), "has no value.* Hint: use reel.where"),
        (lambda h, x: (h * x.tolist(), None), "has no value"),
        (lambda h, x: h, "must return a pair .* got a reel.Tensor"),
        (lambda h, x: [h, x], r"must return a pair .* got a list. Hint: a tuple, \(state, y\)"),
        (lambda h, x: (h, x, x), "must return a pair .* got a tuple of 3"),
        (lambda h, x: (h, 1), "got int"),
        (lambda h, x: (None, h), "the state that the step returns must be a tensor, got None"),
        (lambda h, x: ((h, h), h), "the state that the step returns must be a tensor, got a tuple"),
        (lambda h, x: (h.cast("f32"), h), r"must keep its dtype and shape: it is f64.* Hint: begin with init.cast\(.f32.\).*scan.py:\d+"),
        (lambda h, x: (h[0], None), "must keep its dtype and shape"),
        (lambda h, x: (h @ x, None), r"\[matmul\] inner dimensions differ.*test_scan.py:\d+"),
    ],
)
def test_bad_steps(step, words):
    with pytest.raises(reel.Error, match=words):
        reel.scan(step, h0, xs)


def test_bad_calls():
    with pytest.raises(reel.Error, match=r"number of time steps.*test_scan.py:\d+"):
        reel.scan(lambda h, x: (h, None), h0, (xs, xs[1:]))
    with pytest.raises(reel.Error, match="how many steps"):
        reel.scan(lambda h, x: (h, None), h0)
    with pytest.raises(reel.Error, match="length"):
        reel.scan(lambda h, x: (h, None), h0, length=-1)
    with pytest.raises(reel.Error, match=r"\[scan\] length is an integer, got 2.0"):
        reel.scan(lambda h, x: (h, None), h0, length=2.0)
    with pytest.raises(reel.Error, match=r"\[scan\] checkpoint_every is 0 or more steps, got -2"):
        reel.scan(lambda h, x: (h, None), h0, xs, checkpoint_every=-2)
    assert reel.scan(lambda h, x: (h + 1, None), h0, length=np.int32(2))[0].tolist() == (h0 + 2).tolist()
    with pytest.raises(KeyError):
        reel.scan(lambda h, x: {}[1], h0, xs)


def test_tensors_of_a_step_after_it():
    kept = []
    reel.scan(lambda h, x: (kept.append(h) or h + x, None), h0, xs)
    assert not kept[0].concrete and "abstract" in repr(kept[0])
    for use in (
        lambda t: t + 1,
        lambda t: t.numpy(),
        lambda t: t.item(),
        lambda t: t[0],
        lambda t: np.asarray(t),
        lambda t: h0.assign(t),
        lambda t: t.assign(h0),
        lambda t: reel.grad(reel.sum)(t),
        lambda t: reel.scan(lambda h, x: (h + t, None), h0, xs),
    ):
        with pytest.raises((reel.Error, TypeError)):
            use(kept[0])
    for look in (lambda t: t.numpy(), lambda t: t.item(), lambda t: t.tolist(), bool):
        with pytest.raises(reel.Error, match="has no value: it belongs to a step that has ended or another thread.*test_scan"):
            look(kept[0])


@pytest.mark.parametrize("run", [reel.scan, reel.unroll])
def test_the_last_state_has_memory_of_its_own(run):
    constant, x = reel.tensor([5.0]), reel.tensor([[1.0], [2.0]])
    states = {"a": reel.tensor([1.0]), "b": reel.tensor([2.0]), "i": reel.tensor([3]), "z": reel.tensor([1j, True])}
    last, _ = run(lambda s, x: ({**s, "b": constant, "x": x, "y": x}, None), {**states, "x": x[0], "y": x[0]}, x)
    assert [last[key].tolist() for key in "abxyiz"] == [[1], [5], [2], [2], [3], [1j, 1]]
    for key in "abx":
        last[key].assign(reel.tensor([9.0]))
    assert states["a"].tolist() == [1] and constant.tolist() == [5] and x.tolist() == [[1], [2]] and last["y"].tolist() == [2]
    w = reel.tensor([1.0])
    (_, kept), gradient = reel.value_and_grad(
        lambda w: (lambda h: (reel.sum(h * h), h))(run(lambda h, _: (h, None), w, length=1)[0]), has_aux=True
    )(w)
    kept.assign(reel.tensor([9.0]))
    assert w.tolist() == [1] and gradient.tolist() == [2]


def test_no_steps_without_xs():
    last, ys = reel.scan(lambda s, x: (s + 1, s), reel.ones(2), length=0)
    assert last.tolist() == [1, 1] and ys.shape == (0, 2)
    with pytest.raises(reel.Error, match="length must say how many steps"):
        reel.scan(lambda s, x: (s + 1, s), reel.ones(2))


def test_the_place_of_a_wrong_part_is_named():
    for state, words in (
        (lambda a, b: (a, None), r"the state\[1\] that the step returns must be a dict, got None"),
        (lambda a, b: (a, {"c": (b["c"][0],)}), r"the state\[1\]\['c'\] that the step returns must be a list of 2, got 1"),
    ):
        with pytest.raises(reel.Error, match=words):
            reel.scan(lambda s, x: (state(*s), None), (h0, {"c": [h0, h0]}), xs)
    with pytest.raises(reel.Error, match=r"y\[0\], as at the first time step, must be a tensor, got None"):
        seen = []
        reel.unroll(lambda h, x: (h, (seen.append(1) or h if not seen else None,)), h0, xs)


def test_errors_name_the_loop_that_was_called():
    h, xs = reel.ones(2), reel.ones((3, 2))
    wrong = (
        (lambda h, x: h, {}, "the step must return a pair"),
        (lambda h, x: ((h, h), x), {}, "the state that the step returns must be a tensor, got a tuple"),
        (lambda h, x: (h, 1.0), {}, "y: a tensor, or a tuple"),
        (lambda h, x: (h, x), {"length": 2.0}, "length is an integer, got 2.0"),
        (lambda h, x: (h, x), {"length": -1}, "length is 0 or more steps, got -1"),
        (lambda h, x: (h, x), {"reverse": 1}, "reverse: True or False is needed, got 1"),
    )
    for loop in (reel.scan, reel.unroll):
        for step, options, said in wrong:
            with pytest.raises(reel.Error) as e:
                loop(step, h, xs, **options)
            assert str(e.value).startswith(f"[{loop.__name__}] {said}")
    with pytest.raises(reel.Error, match=r"^\[unroll\] init: a tensor, or"):
        reel.unroll(lambda h, x: (h, x), 1.0, xs)


def test_errors_of_unroll_name_unroll():
    with pytest.raises(reel.Error, match=r"\[unroll\] state 0 must keep its dtype and shape"):
        reel.unroll(lambda h, x: (h.cast("f32"), h), h0, xs)


def test_values_of_eight_axes_stay_in_the_loop():
    x = reel.uniform((3, *(1,) * 6, 2), seed=1, dtype="f64")

    def step(s, x):
        return s + reel.sum(reel.square(reel.softmax(reel.unsqueeze(x, 0)))), None

    looped, unrolled = (run(step, reel.tensor(0.3, "f64"), x)[0] for run in (reel.scan, reel.unroll))
    np.testing.assert_allclose(looped.numpy(), unrolled.numpy(), rtol=1e-12)
