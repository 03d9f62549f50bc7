"""Tuples, lists and dicts of tensors: what functions get and return has the types of what was given."""

import collections
import types

import pytest

import reel


class Params(dict):
    def norm(self):
        return reel.sum(self["a"] * self["b"])


class Named(dict):
    """Is not made of a dict."""

    def __init__(self, name, **values):
        super().__init__(values)
        self.name = name


def values():
    return {"b": reel.tensor([1.0, 2.0]), "a": reel.tensor([3.0, 4.0])}


@pytest.mark.parametrize(
    "given, kind",
    [
        (values(), dict),
        (Params(values()), Params),
        (collections.OrderedDict(values()), collections.OrderedDict),
        (collections.defaultdict(list, values()), collections.defaultdict),
        (collections.Counter(values()), collections.Counter),
        (Named("n", **values()), dict),
        (types.MappingProxyType(values()), types.MappingProxyType),
    ],
)
def test_dicts_keep_their_types(given, kind):
    seen = []

    def loss(p):
        seen.append(p)
        return reel.sum(p["a"] * p["b"])

    gradient = reel.grad(loss)(given)
    result, back = reel.vjp(lambda p: p, given)
    last, ys = reel.scan(lambda h, x: (h, h), given, length=2)
    trees = (seen[0], gradient, result, *back(values()), last, ys)
    assert [type(tree) for tree in trees] == [kind] * 6
    assert all(list(tree) == ["b", "a"] for tree in trees)
    assert gradient["a"].tolist() == [1, 2] and gradient["b"].tolist() == [3, 4]
    if kind is collections.defaultdict:
        assert last.default_factory is list


def test_methods_of_a_dict_of_ones_own():
    assert reel.grad(Params.norm)(Params(values()))["b"].tolist() == [3, 4]
    nested = {"inner": [Params(values())]}
    assert reel.grad(lambda p: p["inner"][0].norm())(nested)["inner"][0].norm().item() == 11
