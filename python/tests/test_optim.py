"""The optimisers, against their formulas in NumPy."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest

import reel

RATE, EPS = 0.05, 1e-3


def sgd(p, g, s, t, momentum=0.9):
    s["v"] = momentum * s.get("v", 0) + g
    return p - RATE * s["v"]


def rmsprop(p, g, s, t, start=0.0, inside=False):
    s["s"] = 0.8 * s.get("s", start) + 0.2 * g**2
    return p - RATE * g / (np.sqrt(s["s"] + EPS) if inside else np.sqrt(s["s"]) + EPS)


def adam(p, g, s, t, largest=False):
    s["m"] = 0.7 * s.get("m", 0) + 0.3 * g
    s["v"] = 0.95 * s.get("v", 0) + 0.05 * g**2
    s["top"] = np.maximum(s.get("top", 0), s["v"]) if largest else s["v"]
    return p - RATE * (s["m"] / (1 - 0.7**t)) / (np.sqrt(s["top"] / (1 - 0.95**t)) + EPS)


def adagrad(p, g, s, t):
    s["s"] = s.get("s", 0) + g**2
    return p - RATE * g / (np.sqrt(s["s"]) + EPS)


def decayed(rule, share=0.1):
    """The decay as a part of the gradient."""
    return lambda p, g, s, t: rule(p, g + share * p, s, t)


BETAS = {"beta1": 0.7, "beta2": 0.95, "epsilon": EPS}
KINDS = {
    "sgd": (lambda p: reel.optim.SGD(p, RATE), lambda *a: sgd(*a, momentum=0)),
    "momentum": (lambda p: reel.optim.SGD(p, RATE, momentum=0.9), sgd),
    "rmsprop": (lambda p: reel.optim.RMSprop(p, RATE, decay=0.8, epsilon=EPS), rmsprop),
    "rmsprop as in TensorFlow": (
        lambda p: reel.optim.RMSprop(p, RATE, decay=0.8, epsilon=EPS, epsilon_inside=True, rms_start=1),
        lambda *a: rmsprop(*a, start=1.0, inside=True),
    ),
    "adam": (lambda p: reel.optim.Adam(p, RATE, **BETAS), adam),
    "adam with decay": (lambda p: reel.optim.Adam(p, RATE, weight_decay=0.1, **BETAS), decayed(adam)),
    "momentum with decay": (lambda p: reel.optim.SGD(p, RATE, momentum=0.9, weight_decay=0.1), decayed(sgd)),
    "adamw": (
        lambda p: reel.optim.AdamW(p, RATE, weight_decay=0.1, **BETAS),
        lambda p, *a: adam(p * (1 - RATE * 0.1), *a),
    ),
    "adamw by its name": (
        lambda p: reel.optim.Optimizer(p, "adamw", RATE, **BETAS),
        lambda p, *a: adam(p * (1 - RATE * 0.01), *a),
    ),
    "amsgrad": (lambda p: reel.optim.AMSGrad(p, RATE, **BETAS), lambda *a: adam(*a, largest=True)),
    "adagrad": (lambda p: reel.optim.Adagrad(p, RATE, epsilon=EPS), adagrad),
}


def parameters():
    return {"W": reel.normal((3, 5), seed=1, dtype="f64"), "b": reel.normal(5, seed=2, dtype="f64")}


def gradients(t):
    """They grow and shrink, so that amsgrad differs from adam."""
    rng = np.random.default_rng(t)
    return {"W": rng.normal(size=(3, 5)) * 2.0 ** (2 - t), "b": rng.normal(size=5)}


@pytest.mark.parametrize("kind", KINDS)
def test_five_steps_equal_the_formulas(kind):
    make, rule = KINDS[kind]
    p = parameters()
    expected = {name: value.numpy().copy() for name, value in p.items()}
    states = {name: {} for name in p}
    optimizer = make(p)
    for t in range(1, 6):
        g = gradients(t)
        norm = optimizer.step({name: reel.tensor(value) for name, value in g.items()})
        assert norm == pytest.approx(np.sqrt(sum((v**2).sum() for v in g.values())), rel=1e-12)
        for name in p:
            expected[name] = rule(expected[name], g[name], states[name], t)
            np.testing.assert_allclose(p[name].numpy(), expected[name], rtol=1e-12, atol=1e-14)
    assert optimizer.steps == 5


def test_clipping_rates_of_groups_and_factors():
    p = parameters()
    before = {name: value.numpy().copy() for name, value in p.items()}
    optimizer = reel.optim.SGD(p, 0.1, clip_norm=1, clip_value=0.3, group_lr={"b": 0.01})
    g = gradients(1)
    norm = optimizer.step({name: reel.tensor(value) for name, value in g.items()}, lr_factor=0.5)
    assert norm > 1
    for name, rate in (("W", 0.05), ("b", 0.005)):
        clipped = np.clip(g[name] / norm, -0.3, 0.3)
        np.testing.assert_allclose(p[name].numpy(), before[name] - rate * clipped, rtol=1e-12)
    assert any((np.abs(v / norm) > 0.3).any() for v in g.values())


def test_an_option_that_the_kind_does_not_have_gets_a_warning():
    with pytest.warns(UserWarning, match=r"^momentum = 0\.8 has no effect: rmsprop has none, but sgd$") as seen:
        reel.optim.RMSprop(parameters(), momentum=0.8)
    assert seen[0].filename == __file__
    with pytest.warns(UserWarning, match="^beta1 = 0.5 has no effect: sgd has none, but adam, adamw, amsgrad$") as seen:
        reel.optim.Optimizer(parameters(), "sgd", beta1=0.5)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reel.optim.RMSprop(parameters(), momentum=0, decay=0.5, rms_start=1, epsilon_inside=True)
        reel.optim.Optimizer(parameters(), "adagrad", epsilon=1e-3, decay=0.9)


def test_complex_parameters_are_pairs_of_real_ones():
    z = reel.tensor(np.array([1 + 2j, -3j]))
    pairs = {"z": reel.tensor(np.array([[1.0, 2.0], [0.0, -3.0]]))}
    g = np.array([[0.5, -1.0], [2.0, 0.25]])
    one, two = reel.optim.Adam({"z": z}, 0.1), reel.optim.Adam(pairs, 0.1)
    for _ in range(3):
        one.step({"z": reel.tensor(g[:, 0] + 1j * g[:, 1])})
        two.step({"z": reel.tensor(g)})
    np.testing.assert_array_equal(z.numpy().view(np.float64).reshape(2, 2), pairs["z"].numpy())


def test_state_goes_from_one_optimizer_to_another():
    one, two = parameters(), parameters()
    a, b = reel.optim.Adam(one, RATE), reel.optim.Adam(two, RATE)
    step = lambda o, t: o.step({name: reel.tensor(value) for name, value in gradients(t).items()})  # noqa: E731
    for t in range(3):
        step(a, t)
    for name, value in one.items():
        two[name].assign(value)
    saved = a.state_dict()
    assert saved["steps"] == 3 and saved["optimizer.W.1"].shape == (3, 5)
    b.load_state_dict(saved)
    step(a, 3), step(b, 3)
    assert all(np.array_equal(one[name].numpy(), two[name].numpy()) for name in one)
    for broken, words in (
        ({}, "lacks steps"),
        ({"steps": 1}, r"lacks optimizer\.W\.0"),
        ({**saved, "optimizer.b.1": reel.ones(2)}, r"optimizer\.b\.1 must be f64"),
        ({**saved, "steps": -1}, "0 or more"),
    ):
        with pytest.raises(reel.Error, match=words):
            b.load_state_dict(broken)


def test_a_gradient_that_is_not_finite_changes_nothing():
    p = {"w": reel.ones(3)}
    optimizer = reel.optim.Adam(p)
    assert np.isnan(optimizer.step({"w": reel.tensor([1.0, float("nan"), 0.0])}))
    assert p["w"].tolist() == [1, 1, 1] and optimizer.steps == 0


def test_a_cell_keeps_its_constraints():
    cell = reel.cell("full_urnn", 2, 6, dtype="f64")
    optimizer = reel.optim.SGD(cell, 0.5)
    before = cell.parameters()["W"].numpy().copy()
    optimizer.step(
        {name: reel.normal(p.shape, seed=3, dtype="f64").cast(p.dtype) for name, p in cell.parameters().items()}
    )
    W = cell.parameters()["W"].numpy()  # unitary: the step is along the group
    np.testing.assert_allclose(W @ W.conj().T, np.eye(6), atol=1e-12)
    assert np.abs(W - before).max() > 0.01


def changed_state(p, **changes):
    optimizer = reel.optim.Adam(p)
    optimizer.load_state_dict({**optimizer.state_dict(), **changes})


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda p: reel.optim.Optimizer(p, "adamax"), "adamax.* is not one of sgd, rmsprop"),
        (lambda p: reel.optim.SGD(p, -1), "lr: a finite number of 0 or more is needed, got -1"),
        (lambda p: reel.optim.Adam(p, beta1=1), "beta1: 0 to 0.999999 is needed, got 1"),
        (lambda p: reel.optim.AdamW(p, beta2=1), "beta2: 0 to 0.999999"),
        (lambda p: reel.optim.RMSprop(p, decay=1), "decay: 0 to 0.999999"),
        (lambda p: reel.optim.SGD(p).step(p, float("nan")), r"lr_factor is a finite number.*got nan.*test_optim.py:\d+"),
        (lambda p: reel.optim.SGD(p).step(p, float("inf")), "lr_factor .* got inf"),
        (lambda p: reel.optim.SGD(p).step(p, -1), "lr_factor .* 0 or more, got -1"),
        (lambda p: reel.optim.Schedule("linear", 5)(-1), r"\[schedule\] step: an integer of 0 or more .* got -1"),
        (lambda p: reel.optim.Schedule("step")(1.5), r"\[schedule\] step: an integer of 0 or more is needed, got 1.5"),
        (lambda p: reel.optim.Schedule("step")("a"), r"\[schedule\] step: an integer of 0 or more is needed, got 'a'"),
        (lambda p: reel.optim.Schedule("step")(2**70), r"\[schedule\] step: an integer from 0 to .* got 1180591620717411303424"),
        (lambda p: reel.optim.Adam(p, clip_norm=float("nan")), "clip_norm: a finite number of 0 or more"),
        (lambda p: reel.optim.SGD(p, weight_decay=math.inf), "weight_decay: a finite number of 0 or more .* got inf"),
        (lambda p: reel.optim.Adam(p, lr=math.inf), "lr: a finite number of 0 or more is needed, got inf"),
        (lambda p: reel.optim.Adam(p, clip_norm=math.inf), "clip_norm: a finite number of 0 or more is needed, got inf"),
        (lambda p: reel.optim.Adam(p, lr="a"), "lr: a number is needed, got 'a'"),
        (lambda p: reel.optim.Adam(p, lr="1"), "lr: a number is needed, got '1'"),
        (lambda p: reel.optim.Adam(p, 1j), "lr: a number is needed, got 1j"),
        (lambda p: reel.optim.RMSprop(p, epsilon_inside=1), "epsilon_inside: True or False is needed, got 1"),
        (lambda p: reel.optim.SGD(p, group_lr={"a": None}), r'group_lr\["a"\]: a number is needed, got None'),
        (lambda p: reel.optim.SGD(p, group_lr=3), "group_lr: a dict of rates by group is needed, got 3"),
        (lambda p: reel.optim.Optimizer(p, 3), "kind: a text is needed, got 3"),
        (lambda p: reel.optim.Adam(p, group_lr={"c": 1}), 'no parameter is in group "c"'),
        (lambda p: reel.optim.Adam(p, group_lr={"b": -1}), r"group_lr\[.b.\]: a finite number of 0 or more"),
        (lambda p: reel.optim.Adam(3.0), r"a Model, a Cell, or a tuple, list or dict of tensors is expected, got float"),
        (lambda p: reel.optim.Adam({"w": 1.0}), "must be a tensor, got float"),
        (lambda p: reel.optim.Adam({"w": np.ones(2, "f4")}), r"must be a tensor, got .*ndarray. Hint: reel.tensor\(x\)"),
        (lambda p: reel.optim.Adam({"w": reel.ones(2, "i32")}), "has no gradient"),
        (lambda p: reel.optim.Adam({"a": p["b"], "b": p["b"]}), "b is there twice"),
        (lambda p: reel.optim.Adam({"a": p["W"], "b": p["W"].reshape(-1)}), "b is there twice: it shares .* with a. Hint"),
        (lambda p: reel.optim.Adam(p, lr=True), "lr: a number is needed, got True"),
        (lambda p: reel.optim.Adam(p, clip_norm=True), "clip_norm: a number is needed, got True"),
        (lambda p: reel.optim.Adam(p, group_lr={"b": False}), r'group_lr\["b"\]: a number is needed, got False'),
        (lambda p: reel.optim.Adam(p).step({"W": p["W"]}), r"no gradient for b.*test_optim.py:\d+"),
        (lambda p: reel.optim.Adam(p).step({**p, "c": p["b"]}), "3 gradients for 2 parameters"),
        (lambda p: reel.optim.Adam(p).step({**p, "b": reel.ones(5)}), "b is f64.*, its gradient f32"),
        (lambda p: reel.optim.Adam(p).step(p["b"]), r"\[optimizer\] gradients: a tuple, list or dict of tensors is expected"),
        (lambda p: reel.optim.Adam(p).step(None), "a tuple, list or dict of tensors is expected, got None"),
        (lambda p: changed_state(p, more=p["b"]), "the state has more, which this optimizer lacks"),
        (lambda p: changed_state(p, steps="3"), r"\[optimizer\] steps: an integer of 0 or more is needed, got '3'"),
        (lambda p: changed_state(p, more=3), "the state has tensors by name, got 'more': 3"),
        (lambda p: changed_state(p, **{"optimizer.b.0": p["b"] * math.nan}), "optimizer.b.0 has an element that is NaN"),
        (lambda p: reel.optim.Adam(p).load_state_dict(None), "a dict as of state_dict.. is expected, got None"),
        (lambda p: reel.optim.Adam(p).step({**p, "b": None}), "no gradient for b. Hint: zeros"),
        (lambda p: reel.scan(lambda h, _: (reel.optim.SGD({"h": h}), None), p["b"], length=2), "has no value"),
    ],
)
def test_errors(call, words):
    with pytest.raises(reel.Error, match=words):
        call(parameters())


def test_schedules_equal_their_formulas():
    t = np.arange(60)
    warm = np.minimum(1, (t + 1) / 12)
    done = np.clip((t - 12) / 48, 0, 1)
    expected = {
        "constant": warm,
        "step": warm * 0.5 ** (t // 20),
        "cosine": warm * (0.1 + 0.9 * (1 + np.cos(np.pi * done)) / 2),
        "linear": warm * (1 - 0.9 * done),
    }
    for kind in reel.optim.Schedule.kinds:
        own = {"step": {"every": 20}, "constant": {}}.get(kind, {"floor": 0.1})
        schedule = reel.optim.Schedule(kind, 60, warmup=12, **own)
        assert np.allclose([schedule(int(i)) for i in t], expected[kind], rtol=1e-13)
    for bad, text in (
        ({"kind": "cosin"}, "kind: one of constant, step, cosine, linear is needed, got 'cosin'"),
        ({"kind": "cosine"}, "steps: an integer of 1 or more is needed, got 0"),
        ({"kind": "linear", "steps": 5, "warmup": 6}, "warmup: 0 to 5 is needed, got 6"),
        ({"kind": "linear", "steps": "5"}, "steps: an integer of 1 or more is needed, got '5'"),
        ({"kind": "linear", "steps": 5, "floor": "a"}, "floor: a number is needed, got 'a'"),
        ({"kind": "linear", "steps": 5, "floor": 2}, "floor: 0 to 1 is needed, got 2"),
    ):
        with pytest.raises(reel.SettingError, match=text):
            reel.optim.Schedule(**bad)
    with pytest.raises(reel.SettingError, match="weight_decay"):
        reel.optim.AdamW(parameters(), weight_decay=-1)


def test_the_rate_can_be_assigned():
    p = parameters()
    before = {name: value.numpy().copy() for name, value in p.items()}
    optimizer = reel.optim.SGD(p, 0.1, group_lr={"b": 0.01})
    optimizer.lr = 0.5
    assert optimizer.lr == 0.5 and optimizer.config["lr"] == 0.5 and "lr=0.5" in repr(optimizer)
    optimizer.step({name: reel.ones_like(value) for name, value in p.items()})
    for name, rate in (("W", 0.5), ("b", 0.01)):
        np.testing.assert_allclose(p[name].numpy(), before[name] - rate, rtol=1e-12)
    for bad, words in (("a", "lr: a number is needed, got 'a'"), (-1, "lr: a finite number of 0 or more .* got -1")):
        with pytest.raises(reel.SettingError, match=words):
            optimizer.lr = bad
    assert optimizer.lr == 0.5
    for kind in set(reel.optim.__all__) - {"Optimizer", "Schedule"}:
        with pytest.raises(AttributeError):
            getattr(reel.optim, kind)(p).learning_rate = 1


class Named(reel.optim.Adam):
    """A class of users, with an attribute."""

    def __init__(self, parameters):
        super().__init__(parameters, RATE)
        self.note = "mine"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("make", [Named, lambda p: reel.optim.SGD(p, RATE, momentum=0.9, group_lr={"b": 0.1})])
def test_copies_go_on_as_the_original(copied, make):
    p = parameters()
    optimizer = make(p)
    step = lambda o, t: o.step({name: reel.tensor(value) for name, value in gradients(t).items()})  # noqa: E731
    step(optimizer, 0)
    optimizer.lr = 0.02
    q, other = copied((p, optimizer))
    assert other.parameters is q and type(other) is type(optimizer) and other.config == optimizer.config
    assert getattr(other, "note", None) == getattr(optimizer, "note", None)
    step(optimizer, 1), step(other, 1)
    assert other.steps == 2 and all(np.array_equal(p[name].numpy(), q[name].numpy()) for name in p)
    p["b"] = reel.zeros(5, "f64")
    with pytest.raises(reel.Error, match="b: the dict has another tensor than the optimizer. Hint: assign"):
        copied(optimizer)


def test_copies_with_a_model_and_a_cell():
    model, cell = reel.Model(inputs=2, outputs=1, hidden=4), reel.cell("full_urnn", 2, 4)
    for whole in (model, cell):
        optimizer = reel.optim.Adam(whole, 0.1)
        other = copy.deepcopy(optimizer)
        ones = {name: reel.ones_like(value) for name, value in whole.parameters().items()}
        optimizer.step(ones), other.step(ones)
        assert other.parameters is not whole and other.steps == 1
        for name, value in other.parameters.parameters().items():
            assert np.array_equal(value.numpy(), whole.parameters()[name].numpy())


def test_completion_offers_what_users_have():
    assert dir(reel.optim) == sorted(reel.optim.__all__)


def test_no_gradient_goes_through_an_optimizer_so_it_is_refused():
    w, rule = reel.tensor([1.0, 1.0]), "computed in a function that is differentiated, and no gradient"

    def of_gradients(a):
        q = {"w": reel.tensor([1.0, 1.0])}
        reel.optim.SGD(q, 0.1).step(reel.grad(lambda q: reel.sum(a * q["w"] ** 2))(q))
        return reel.sum(q["w"])

    def of_parameters(p):
        reel.optim.SGD({"w": p}, 0.1)
        return reel.sum(p)

    def of_state(a):
        o = reel.optim.SGD({"w": reel.tensor([1.0, 1.0])}, 0.1, momentum=0.9)
        o.load_state_dict({"steps": 1, "optimizer.w.0": a * 2})
        return reel.sum(a)

    for f, what in ((of_gradients, "the gradient for w"), (of_parameters, "parameter w"), (of_state, "optimizer.w.0")):
        with pytest.raises(reel.Error, match=rf"\[optimizer\] {what} was {rule}"):
            reel.grad(f)(w)

    def of_constants(a):  # which the function does not compute
        q = {"w": reel.tensor([1.0, 1.0])}
        reel.optim.SGD(q, 0.5).step({"w": reel.tensor([1.0, 2.0])})
        return reel.sum(a * q["w"])

    assert reel.grad(of_constants)(w).tolist() == [0.5, 0]


def test_a_dict_whose_tensor_was_replaced_is_refused():
    p = {"w": reel.tensor([1.0]), "b": reel.tensor([1.0])}
    old, optimizer, g = dict(p), reel.optim.SGD(p, 0.5), {"w": reel.tensor([1.0]), "b": reel.tensor([1.0])}
    p["w"] = reel.tensor([3.0])
    with pytest.raises(reel.Error, match=r"\[optimizer\] w: the dict has another tensor than the optimizer. .*assign"):
        optimizer.step(g)
    assert old["b"].item() == old["w"].item() == 1 and optimizer.steps == 0
    p["w"] = old["w"]
    optimizer.step(g)
    assert old["w"].item() == 0.5


def test_names_with_a_nul_and_without_utf8():
    p = {"w\0a": reel.tensor([1.0]), "w\0b": reel.tensor([2.0])}
    o = reel.optim.SGD(p, 1.0, momentum=0.5)
    assert set(o.state_dict()) == {"steps", "optimizer.w\0a.0", "optimizer.w\0b.0"}
    with pytest.raises(reel.Error, match=r"\[optimizer\] the name of a parameter has no UTF-8: '.ud800'"):
        reel.optim.SGD({"\ud800": reel.tensor([1.0])})
