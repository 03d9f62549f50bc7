"""Tensors in nested tuples, lists and dicts, as functions take and return them."""

from __future__ import annotations

import collections
import functools
import sys
from typing import Any, Callable, Iterator, Mapping

from ._check import kind_of
from ._create import tensor
from ._reel import Error, Tensor

BRANCHED = (dict, tuple, list, Mapping)  # what has branches with names; the first three are found faster


def _is_array(tree: Any) -> bool:
    """Of NumPy, which `import reel` does not load."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(tree, (numpy.ndarray, numpy.generic))


def _is_tensor(tree: Any) -> bool:
    return isinstance(tree, Tensor) or _is_array(tree)


def flatten(tree: Any, what: str, name: str, leaf: type = Tensor) -> tuple[list, Callable[[list], Any]]:
    """The tensors of a tree in order, and a function that puts others in their places. None has no tensors.

    A leaf is a tensor of Reel, for which a NumPy array may stand, or one of another library. Throws Error for anything
    else; the message calls the tree `name`, with the place of that part for {}: "the state{}".
    """
    leaves: list = []
    rebuild = _collect(tree, leaves, what, name, "", leaf)
    return leaves, lambda values: rebuild(iter(values))


def places(tree: Any, place: str = "", keep_none: bool = False) -> Iterator[str]:
    """Where in a tree its leaves are, in flatten's order: ['a'][0]."""
    if isinstance(tree, BRANCHED):
        for key, branch in tree.items() if isinstance(tree, Mapping) else enumerate(tree):
            yield from places(branch, f"{place}[{key!r}]", keep_none)
    elif keep_none or tree is not None:
        yield place


def by_name(tree: Any, what: str, name: str = "", keep_none: bool = False) -> dict[str, Any]:
    """The leaves of a tree by their names, the keys on the way with dots between them: layers.0.w.

    They are in flatten's order, and can be anything but None, or even that with `keep_none`. Throws Error where two
    have one name, and for a tree that is a leaf itself; the message begins with `name`: "gradients: ".
    """
    if not isinstance(tree, BRANCHED):
        raise Error(f"[{what}] {name}a tuple, list or dict of tensors is expected, got {kind_of(tree)}")
    if isinstance(tree, dict) and set(map(type, tree.values())) <= {Tensor} and set(map(type, tree)) <= {str}:
        return dict(tree)  # as below, but faster
    names: list[str] = []
    leaves: list = []
    _collect_names(tree, "", names, leaves, keep_none)
    out = dict(zip(names, leaves))
    if len(out) < len(names):
        twice = next(called for called, count in collections.Counter(names).items() if count > 1)
        where = zip(names, places(tree, keep_none=keep_none))
        first, second = [place for called, place in where if called == twice][:2]
        raise Error(f"[{what}] {name}{first} and {second} are both called {twice}. Hint: another key for one of them")
    return out


def with_values(tree: Any, values: Mapping[str, Any], prefix: str = "") -> Any:
    """The tree with these leaves, by their names, in place of its own; those that are not given stay.

    Dicts and lists change in place, so whoever else has them has the new leaves, too; tuples are made anew.
    """
    made = {}
    for key, name, branch in _items(tree, prefix):
        inner = isinstance(branch, BRANCHED)
        made[key] = with_values(branch, values, name + ".") if inner else values.get(name, branch)
    if isinstance(tree, tuple):
        return type(tree)(**made) if hasattr(tree, "_fields") else type(tree)(made.values())
    for key, value in made.items():
        tree[key] = value
    return tree


def flatten_like(tree: Any, like: Any, what: str, name: str, zeros: bool = False) -> list:
    """The tensors of a tree in the order in which flatten(like) has them: dicts go by their keys.

    Throws Error when the tree has other keys or another structure; the message calls it `name`, as flatten's. A list may
    stand for a tuple. With `zeros`, None stands for any part, and is given once for each of its tensors.
    """
    leaves: list = []
    _follow(tree, like, leaves, what, name, "", zeros)
    return leaves


def _collect(tree: Any, leaves: list, what: str, name: str, place: str, leaf: type) -> Callable[[Iterator], Any]:
    """Appends the tensors of a tree; returns a function that makes such a tree of the next tensors."""
    if leaf is Tensor and _is_array(tree):
        tree = tensor(tree)
    if isinstance(tree, leaf):
        leaves.append(tree)
        return next
    if tree is None:
        return lambda values: None
    if isinstance(tree, Mapping):
        branches = [(key, _collect(x, leaves, what, name, f"{place}[{key!r}]", leaf)) for key, x in tree.items()]
        make = _maker(tree)
        return lambda values: make({key: branch(values) for key, branch in branches})
    if isinstance(tree, (tuple, list)):
        parts = [_collect(x, leaves, what, name, f"{place}[{i}]", leaf) for i, x in enumerate(tree)]
        kind = type(tree)
        if hasattr(tree, "_fields"):  # a named tuple
            return lambda values: kind(*[part(values) for part in parts])
        return lambda values: kind([part(values) for part in parts])
    hint = ""
    if leaf is Tensor and isinstance(tree, (int, float, complex)):
        hint = f". Hint: reel.tensor({tree!r})"
    elif leaf is Tensor and hasattr(tree, "__dlpack__"):
        hint = ". Hint: reel.asarray(x)"
    rule = "a tensor, or a tuple, list or dict of tensors is expected"
    raise Error(f"[{what}] {name.format(place)}: {rule}, got {kind_of(tree)}{hint}")


def _items(tree: Any, prefix: str) -> Iterator[tuple[Any, str, Any]]:
    """The branches with their keys and names; the keys of a named tuple are its fields."""
    items = tree.items() if isinstance(tree, (dict, Mapping)) else zip(getattr(tree, "_fields", range(len(tree))), tree)
    for key, branch in items:
        yield key, prefix + (key if isinstance(key, str) else str(key)), branch


def _collect_names(tree: Any, prefix: str, names: list[str], leaves: list, keep_none: bool) -> None:
    """Appends the names and the leaves of a tree."""
    for _, name, branch in _items(tree, prefix):
        if not isinstance(branch, Tensor) and isinstance(branch, BRANCHED):
            _collect_names(branch, name + ".", names, leaves, keep_none)
        elif keep_none or branch is not None:
            names.append(name)
            leaves.append(branch)


def _maker(tree: Mapping) -> Callable[[dict], Any]:
    """What makes a dict of the same type, if that is made of a dict, as OrderedDict is."""
    kind = type(tree)
    if kind is dict:
        return lambda plain: plain
    make = functools.partial(kind, tree.default_factory) if isinstance(tree, collections.defaultdict) else kind

    def made(plain: dict) -> Any:
        try:
            own = make(plain)
            same = list(own) == list(plain) and all(own[key] is value for key, value in plain.items())
        except Exception:  # of a constructor with other arguments
            return plain
        return own if same else plain

    return made


def _follow(tree: Any, like: Any, leaves: list, what: str, name: str, place: str, zeros: bool) -> None:
    """Appends the tensors of a tree in the order of `like`; they are at this place of the whole one."""
    if zeros and tree is None:
        leaves.extend([None] * len(flatten(like, what, name)[0]))
    elif _is_tensor(like) and _is_tensor(tree):
        leaves.append(tree if isinstance(tree, Tensor) else tensor(tree))
    elif isinstance(like, Mapping) and isinstance(tree, Mapping):
        if tree.keys() != like.keys():
            raise Error(f"[{what}] {name.format(place)} must have the keys {_keys(like)}, got {_keys(tree)}")
        for key, branch in like.items():
            _follow(tree[key], branch, leaves, what, name, f"{place}[{key!r}]", zeros)
    elif isinstance(like, (tuple, list)) and isinstance(tree, (tuple, list)) and _same_fields(tree, like):
        if len(tree) != len(like):
            raise Error(f"[{what}] {name.format(place)} must be a {type(like).__name__} of {len(like)}, got {len(tree)}")
        for i, branch in enumerate(like):
            _follow(tree[i], branch, leaves, what, name, f"{place}[{i}]", zeros)
    elif not (like is None and tree is None):
        raise Error(f"[{what}] {name.format(place)} must be {_kind(like)}, got {_kind(tree)}")


def _keys(tree: Mapping) -> str:
    return ", ".join(map(repr, tree)) or "none"


def _same_fields(tree: Any, like: Any) -> bool:
    """Named tuples go by their positions, so two of them need the same names."""
    return getattr(tree, "_fields", None) in (None, getattr(like, "_fields", None))


def _kind(tree: Any) -> str:
    if tree is None:
        return "None"
    if _is_tensor(tree):
        return "a tensor"
    return f"a {type(tree).__name__ if isinstance(tree, (tuple, list, dict)) else kind_of(tree)}"
