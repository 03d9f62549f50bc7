"""Tensors in nested tuples, lists and dicts, as functions take and return them."""

from __future__ import annotations

from typing import Any, Callable, Iterator

from ._reel import Error, Tensor


def flatten(tree: Any, what: str, leaf: type = Tensor) -> tuple[list, Callable[[list], Any]]:
    """The tensors of a tree in order, and a function that puts others in their places. None has no tensors.

    A leaf is a tensor of Reel, or of another library.
    """
    leaves: list = []
    rebuild = _collect(tree, leaves, what, leaf)
    return leaves, lambda values: rebuild(iter(values))


def _collect(tree: Any, leaves: list, what: str, leaf: type) -> Callable[[Iterator], Any]:
    """Appends the tensors of a tree; returns a function that makes such a tree of the next tensors."""
    if isinstance(tree, leaf):
        leaves.append(tree)
        return next
    if tree is None:
        return lambda values: None
    if isinstance(tree, dict):
        branches = [(key, _collect(branch, leaves, what, leaf)) for key, branch in tree.items()]
        return lambda values: {key: branch(values) for key, branch in branches}
    if isinstance(tree, (tuple, list)):
        parts, kind = [_collect(branch, leaves, what, leaf) for branch in tree], type(tree)
        if hasattr(tree, "_fields"):  # a named tuple
            return lambda values: kind(*[part(values) for part in parts])
        return lambda values: kind([part(values) for part in parts])
    raise Error(f"[{what}] a tensor, or a tuple, list or dict of tensors is expected, got {type(tree).__name__}")
