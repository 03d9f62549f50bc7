"""The batches of a training loop, as users give them."""

from __future__ import annotations

import itertools
from numbers import Number
from typing import TYPE_CHECKING, Any, Callable, Iterator

from ._create import asarray
from ._reel import Error, Tensor

if TYPE_CHECKING:
    from ._train import History


def _tensors(tree: Any) -> Any:
    if isinstance(tree, tuple):
        return tuple(_tensors(branch) for branch in tree)
    if isinstance(tree, dict):
        return {name: _tensors(branch) for name, branch in tree.items()}
    return asarray(tree)


def is_batch(batch: Any) -> bool:
    return isinstance(batch, (tuple, list)) and len(batch) in (2, 3)


def checked_batch(batch: Any) -> tuple[Any, Any, Tensor | None]:
    """x, y, and the lengths of the sequences or None."""
    if not is_batch(batch):
        count = f" of {len(batch)}" if isinstance(batch, (tuple, list)) else ""
        raise Error(f"[train] a batch is a pair (x, y), or (x, y, lengths), got {type(batch).__name__}{count}")
    lengths = asarray(batch[2]) if len(batch) == 3 and batch[2] is not None else None
    return _tensors(batch[0]), _tensors(batch[1]), lengths


def again_and_again(valid: Any) -> Any:
    """Batches that can be gone through again and again."""
    if valid is None:
        return None
    if isinstance(valid, tuple) and len(valid) in (2, 3):
        if not all(map(_like_batch, valid)):
            return [valid]
        if len(valid) == 2:
            raise Error("[train] valid: a tuple of pairs may be one batch or two. Hint: [batch], or list(batches)")
    return list(valid) if hasattr(valid, "__next__") else valid


def _like_batch(part: Any) -> bool:
    """Whether a part of a batch may as well be a batch itself."""
    return is_batch(part) and not any(isinstance(x, Number) for x in part)


def batch_size(x: Any, axis: int) -> int:
    """The extent of this axis of the first tensor; 0 without it."""
    first = _first(x)
    return first.shape[axis] if first is not None and first.ndim > axis else 0


def entries(y: Any) -> int:
    """The size of the first tensor; 1 without any."""
    first = _first(y)
    return 1 if first is None else first.size


def _first(tree: Any) -> Tensor | None:
    """The first tensor of a tuple or a dict: others, such as masks and weights, go with it."""
    while isinstance(tree, (tuple, dict)) and tree:
        tree = next(iter(tree.values())) if isinstance(tree, dict) else tree[0]
    return tree if isinstance(tree, Tensor) else None


def groups(batches: Iterator, size: int) -> Iterator[Iterator]:
    """The batches of each update, each made when it is taken; the last one has what is left."""
    for batch in batches:
        yield itertools.chain([batch], itertools.islice(batches, size - 1))


def length(batches: Any) -> int | None:
    """How many there are, as far as they say."""
    try:
        return len(batches)
    except (TypeError, NotImplementedError):  # also of a DataLoader around an iterable
        return None


def stream(
    batches: Any, first: int, count: int | None, once: bool, history: History, start_over: Callable[[], None]
) -> Iterator[tuple[Any, Any, Tensor | None]]:
    """So many batches, and none is taken beyond them; once: all of one pass, `count` is what is expected. start_over is
    called before an iterable is gone through again."""
    if callable(batches):
        yield from (checked_batch(batches(first + i)) for i in range(count or 0))
        return
    made, again = 0, True
    while again and (once or made != count):
        before, one_pass = made, iter(batches)
        if made:
            start_over()
        if once and not hasattr(batches, "__iter__"):  # by numbers, beyond the last of which there may be batches
            one_pass = itertools.islice(one_pass, count)
        for batch in one_pass:
            yield checked_batch(batch)
            made += 1
            if made == count and not once:
                return
        again = not once and made > before and one_pass is not batches
    if made != count:
        history.stopped = "batches"
