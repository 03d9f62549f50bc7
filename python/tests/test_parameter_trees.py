"""Parameters in nested dicts, lists and tuples: optimisers, training and files call them by names with dots."""

import collections
import copy
import pickle

import numpy as np
import pytest

import reel

Layer = collections.namedtuple("Layer", "w b")
COPIES = [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]


def tree():
    """A network as users of JAX write it."""
    values = iter(reel.normal((8, 2, 3), seed=1, dtype="f64"))
    return {
        "enc": {"w": next(values), "b": next(values)},
        "layers": [{"w": next(values)}, (next(values), next(values))],
        "head": Layer(next(values), None),
    }


NAMES = ["enc.w", "enc.b", "layers.0.w", "layers.1.0", "layers.1.1", "head.w"]


def leaves(p):
    return [p["enc"]["w"], p["enc"]["b"], p["layers"][0]["w"], *p["layers"][1], p["head"].w]


def flat(p):
    return {name: reel.tensor(x) for name, x in zip(NAMES, leaves(p))}


def loss(p):
    return sum(reel.sum((k + 1) * (x - k) ** 2) for k, x in enumerate(leaves(p)))


def flat_loss(p):
    return sum(reel.sum((k + 1) * (p[name] - k) ** 2) for k, name in enumerate(NAMES))


def same(p, q):
    assert [x.tolist() for x in leaves(p)] == [q[name].tolist() for name in NAMES]


@pytest.mark.parametrize("kind", ["sgd", "rmsprop", "adam", "adamw", "amsgrad", "adagrad"])
def test_a_tree_is_updated_as_a_flat_dict_of_its_names(kind):
    p = tree()
    q, before = flat(p), leaves(p)
    one, two = (reel.optim.Optimizer(x, kind, 0.1, clip_norm=5, weight_decay=0.1) for x in (p, q))
    for _ in range(3):
        assert one.step(reel.grad(loss)(p)) == two.step(reel.grad(flat_loss)(q))
    same(p, q)
    assert all(x is y for x, y in zip(leaves(p), before)) and one.parameters is p
    assert list(one.state_dict()) == list(two.state_dict()) and "optimizer.layers.1.0.0" in one.state_dict()
    other = reel.optim.Optimizer(tree(), kind)
    other.load_state_dict(two.state_dict())
    assert other.steps == 3
    two.step(reel.grad(loss)(p))  # names are all that counts
    one.step(reel.grad(flat_loss)(q))


def test_a_list_of_tuples():
    p = [(reel.ones(2), reel.ones(1)), (reel.ones(2), None)]
    optimizer = reel.optim.SGD(p, 0.5, momentum=0.9)
    optimizer.step(reel.grad(lambda p: sum(reel.sum(x) for layer in p for x in layer if x is not None))(p))
    assert p[0][0].tolist() == p[1][0].tolist() == [0.5, 0.5] and p[0][1].tolist() == [0.5]
    assert list(optimizer.state_dict()) == ["steps", "optimizer.0.0.0", "optimizer.0.1.0", "optimizer.1.0.0"]


def test_rates_of_branches():
    """The longest group that fits counts; the name of a tensor is no branch."""
    p = tree()
    before, rates = flat(p), {"enc": 0.5, "layers": 0.25, "layers.1": 0.125, "layers.1.1": 0, "head.w": 2}
    optimizer = reel.optim.SGD(p, 1.0, group_lr=rates)
    optimizer.step({name: reel.ones_like(x) for name, x in before.items()})
    moved = [(before[name] - x).numpy() for name, x in flat(p).items()]
    for difference, rate in zip(moved, [0.5, 0.5, 0.25, 0.125, 0, 2]):
        np.testing.assert_allclose(difference, rate, rtol=1e-14)
    p = {"a": reel.zeros(1), "a.b": reel.zeros(1), "ab": reel.zeros(1)}
    reel.optim.SGD(p, 1.0, group_lr={"a": 0.5}).step({name: reel.ones(1) for name in p})
    assert [x.item() for x in p.values()] == [-0.5, -1, -1]
    with pytest.raises(reel.SettingError, match='no parameter is in group "lay"; the groups are enc.b, enc.w, head.w'):
        reel.optim.SGD(tree(), group_lr={"lay": 1})


@pytest.mark.parametrize(
    "make",
    [
        reel.optim.SGD,
        lambda p: reel.save_safetensors("/nowhere", p),
        lambda p: reel.train(p, [(reel.ones(1), reel.ones(1))], lambda p, x, y: reel.sum(x)),
    ],
)
def test_two_tensors_of_one_name_are_refused(make):
    for p, words in (
        ({"a.b": reel.ones(1), "a": {"b": reel.ones(1)}}, r"\['a.b'\] and \['a'\]\['b'\] are both called a.b. Hint"),
        ({"a": [reel.ones(1)], "a.0": reel.ones(1)}, r"\['a'\]\[0\] and \['a.0'\] are both called a.0. Hint"),
        ({"1": reel.ones(1), 1: reel.ones(1)}, r"\['1'\] and \[1\] are both called 1. Hint"),
    ):
        with pytest.raises(reel.Error, match=words):
            make(p)


def test_gradients_of_another_structure():
    p = tree()
    optimizer = reel.optim.SGD(p, 0.1)
    g = reel.grad(loss)(p)
    for wrong, words in (
        ({**g, "enc": g["enc"]["w"]}, r"\[optimizer\] there is no gradient for enc.w. Hint: zeros"),
        ({**g, "enc": {**g["enc"], "b": None}}, "there is no gradient for enc.b"),
        (
            {**g, "enc": {**g["enc"], "c": g["enc"]["b"]}},
            "7 gradients for 6 parameters: none of these is called 'enc.c'",
        ),
        ({**g, "layers": g["layers"][:1]}, "there is no gradient for layers.1.0"),
        ({**g, "enc": {**g["enc"], "b": 1.0}}, "the gradient for enc.b must be a tensor, got float"),
        ({**g, "enc": {**g["enc"], "b": reel.ones(1)}}, "enc.b is f64.* its gradient f32"),
    ):
        with pytest.raises(reel.Error, match=words):
            optimizer.step(wrong)
    with pytest.raises(reel.Error, match="parameter enc.w must be a tensor, got float"):
        reel.optim.SGD({"enc": {"w": 1.0}})
    for owner in (reel.cell("gru", 2, 3), reel.Model(inputs=2, outputs=1)):
        with pytest.raises(reel.Error, match=r"parameter enc.0 must be a tensor, got .*. Hint: x.parameters\(\)"):
            reel.optim.SGD({"enc": [owner]})
    p["enc"]["w"] = reel.ones((2, 3), "f64")
    with pytest.raises(reel.Error, match="enc.w: the dict has another tensor than the optimizer. Hint: assign"):
        optimizer.step(g)


@pytest.mark.parametrize("copied", COPIES)
def test_copies_go_on_as_the_original(copied):
    p = tree()
    optimizer = reel.optim.Adam(p, 0.1, group_lr={"layers": 0.3})
    optimizer.step(reel.grad(loss)(p))
    q, other = copied((p, optimizer))
    assert other.parameters is q and isinstance(q["head"], Layer)
    for o, tensors in ((optimizer, p), (other, q)):
        o.step(reel.grad(loss)(tensors))
    same(p, flat(q))


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("name, constrained", [("full_urnn", "W"), ("ornn", "U")])  # a retraction and a projection
def test_copies_keep_the_constraints_of_cells(copied, name, constrained):
    cell = reel.cell(name, 2, 4, dtype="f64")
    p = {"rnn": cell.parameters(), "heads": [(reel.ones((1, 4), "f64"),)]}
    optimizer = reel.optim.RMSprop(p, 0.5)
    gradient = {
        "rnn": {name: reel.normal(x.shape, seed=1, dtype="f64").cast(x.dtype) for name, x in p["rnn"].items()},
        "heads": [(reel.ones((1, 4), "f64"),)],
    }
    optimizer.step(gradient)
    q, other = copied((p, optimizer))
    assert other.parameters is q
    optimizer.step(gradient), other.step(gradient)
    columns = q["rnn"][constrained].numpy()
    np.testing.assert_allclose((np.abs(columns) ** 2).sum(0), 1, rtol=1e-12)
    for one, two in zip((*p["rnn"].values(), p["heads"][0][0]), (*q["rnn"].values(), q["heads"][0][0])):
        assert one.tolist() == two.tolist()
    shallow = copy.copy(other)
    shallow.step(gradient)
    np.testing.assert_allclose((np.abs(q["rnn"][constrained].numpy()) ** 2).sum(0), 1, rtol=1e-12)


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_parameters_in_tuples_keeps_their_constraints(copied):
    cell = reel.cell("ornn", 2, 4, dtype="f64")
    optimizer = copied(reel.optim.SGD(Layer(cell.parameters()["U"], (cell.parameters()["b"],)), 0.5))
    optimizer.step(Layer(reel.ones_like(cell.parameters()["U"]), (reel.ones_like(cell.parameters()["b"]),)))
    assert isinstance(optimizer.parameters, Layer)
    np.testing.assert_allclose((optimizer.parameters.w.numpy() ** 2).sum(0), 1, rtol=1e-12)
    assert not np.array_equal(optimizer.parameters.w.numpy(), cell.parameters()["U"].numpy())


class Learner(reel.Model):
    """A class of users, with an optimiser of its own parameters."""

    def __init__(self):
        super().__init__(inputs=2, outputs=1, cell="ornn", hidden=4, dtype="f64")
        self.optimizers = [reel.optim.Adam(self.parameters(), 0.1), reel.optim.Adam(self, 0.1)]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_a_model_with_its_optimizers(copied):
    model = Learner()
    ones = {name: reel.ones_like(x) for name, x in model.parameters().items()}
    other = copied(model)
    for one, two in zip(model.optimizers, other.optimizers):
        one.step(ones), two.step(ones)
        for name, x in model.parameters().items():
            assert other.parameters()[name].tolist() == x.tolist()
    older = Learner.__new__(Learner)  # as pickles of older versions are read
    older.__setstate__(model.__getstate__())
    assert all(older.parameters()[name].tolist() == x.tolist() for name, x in model.parameters().items())


def batch(i):
    x = reel.uniform((4, 2, 3), seed=1, stream=i, dtype="f64")
    return x, reel.sum(x, (1, 2))


def error(p, x, y):
    return reel.mse(sum(reel.sum(x * w, (1, 2)) for w in leaves(p)), y)


def flat_error(p, x, y):
    return reel.mse(sum(reel.sum(x * p[name], (1, 2)) for name in NAMES), y)


def test_training_and_its_files(tmp_path):
    p = tree()
    q = flat(p)
    histories = []
    for name, parameters, f in (("tree", p, error), ("flat", q, flat_error)):
        options = {"optimizer": reel.optim.Adam(parameters, 0.1), "valid": batch(99), "valid_every": 2}
        histories.append(
            reel.train(parameters, batch, f, steps=6, accumulate=2, progress=False, run=tmp_path / name, **options)
        )
    one, two = histories
    assert one.losses == two.losses and one.best_loss == two.best_loss
    same(p, q), same(one.best, two.best)
    assert isinstance(one.best["head"], Layer) and one.best["head"].b is None
    runs = [reel.Run(tmp_path / name) for name in ("tree", "flat")]
    assert list(runs[0].best()) == NAMES and runs[0].record["parameters"] == runs[1].record["parameters"] == 36
    assert all(x.tolist() == runs[1].best()[name].tolist() for name, x in runs[0].best().items())


def test_a_tree_is_saved_by_its_names_and_loaded_as_one(tmp_path):
    p, path = tree(), tmp_path / "p.safetensors"
    del p["enc"]["b"]
    with pytest.raises(reel.Error, match="head.b must be a tensor, .* got NoneType"):
        reel.save_safetensors(path, p)
    p["head"] = p["head"]._replace(b=reel.ones(1))
    reel.save_safetensors(path, p)
    assert list(reel.load_safetensors(path)) == ["enc.w", "layers.0.w", "layers.1.0", "layers.1.1", "head.w", "head.b"]
    q = reel.load_safetensors(path, like=p)
    assert isinstance(q["head"], Layer) and isinstance(q["layers"][1], tuple)
    for one, two in (
        (p["enc"]["w"], q["enc"]["w"]),
        (p["layers"][1][1], q["layers"][1][1]),
        (p["head"].b, q["head"].b),
    ):
        assert one.tolist() == two.tolist()
    for like, words in (
        (tree(), r"p.safetensors\] does not fit like: lacks enc.b and has head.b. Hint"),
        ({**p, "enc": {"w": reel.ones(2)}}, r"does not fit like: enc.w is f64 \(2, 3\), like has f32 \(2,\)"),
        (reel.ones(2), r"\[load_safetensors\] like: a tuple, list or dict of tensors is expected, got reel.Tensor"),
        ({"enc": 1.0}, r"\[load_safetensors\] like\['enc'\]: a tensor, .* got float"),
    ):
        with pytest.raises(reel.Error, match=words):
            reel.load_safetensors(path, like=like)
