"""Tensors in nested tuples, lists and dicts, as functions take and return them."""

from __future__ import annotations

from typing import Any, Callable

from ._reel import Error, Tensor


def flatten(tree: Any, what: str) -> tuple[list[Tensor], Callable[[list], Any]]:
    """The tensors of a tree in order, and a function that puts others in their places. None has no tensors."""
    if isinstance(tree, Tensor):
        return [tree], lambda leaves: leaves[0]
    if tree is None:
        return [], lambda leaves: None
    if isinstance(tree, dict):
        keys, branches = list(tree), [flatten(v, what) for v in tree.values()]
        make = lambda values: dict(zip(keys, values))  # noqa: E731
    elif isinstance(tree, (tuple, list)):
        branches, kind = [flatten(v, what) for v in tree], type(tree)
        make = (lambda values: kind(*values)) if hasattr(tree, "_fields") else kind  # a named tuple, or not
    else:
        raise Error(f"[{what}] a tensor, or a tuple, list or dict of tensors is expected, got {type(tree).__name__}")
    sizes = [len(leaves) for leaves, _ in branches]

    def rebuild(leaves: list) -> Any:
        values, first = [], 0
        for size, (_, rebuild_branch) in zip(sizes, branches):
            values.append(rebuild_branch(leaves[first : first + size]))
            first += size
        return make(values)

    return [leaf for leaves, _ in branches for leaf in leaves], rebuild
