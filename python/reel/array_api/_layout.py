"""Manipulation and indexing functions of the standard."""

from __future__ import annotations

import builtins
from typing import Any, Iterable, Sequence

from .. import _reel
from .._create import tensor
from .._reel import Tensor
from ._dtypes import copied, dtype_of, result_type


def _axes(axis: Any, rank: int) -> list[int]:
    """Axes counted from the front; IndexError for one that is not there."""
    given = [axis] if isinstance(axis, int) else list(axis)
    for a in given:
        if not -rank <= a < rank:
            raise IndexError(f"axis {a} is not one of {rank} axes")
    out = [a % rank for a in given]
    if len(set(out)) < len(out):
        raise ValueError(f"an axis is given twice: {given}")
    return out


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that these broadcast to."""
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if out[i] != 1 and n not in (1, out[i]):
                raise ValueError(f"broadcast_shapes: {n} does not broadcast with {out[i]}; got {shapes}")
            out[i] = n if out[i] == 1 else out[i]
    return tuple(out)


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """The elements repeated to this shape."""
    return _reel.expand(x, shape)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Tensors repeated to the shape that they broadcast to."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(_reel.expand(x, shape) for x in arrays)


def _of_one_dtype(arrays: Iterable[Tensor], name: str) -> list[Tensor]:
    """The tensors, with the dtype that they promote to."""
    parts = list(arrays)
    dtype = result_type(*(dtype_of(x, name) for x in parts))
    return [x.cast(dtype) for x in parts]


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors one after the other along an axis; None flattens them first."""
    parts = _of_one_dtype(arrays, "concat")
    if axis is None:
        return _reel.concat([x.reshape(x.size) for x in parts], 0)
    return _reel.concat(parts, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    return _reel.movedim(_reel.stack(_of_one_dtype(arrays, "stack")), 0, axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of a tensor along an axis, which goes."""
    return tuple(_reel.unstack(x, axis))


def expand_dims(x: Tensor, /, axis: int | tuple) -> Tensor:
    """The tensor with new axes of extent 1 at these places of the result."""
    new = _axes(axis, x.ndim + (1 if isinstance(axis, int) else len(axis)))
    rest = iter(x.shape)
    return x.reshape([1 if i in new else next(rest) for i in range(x.ndim + len(new))])


def squeeze(x: Tensor, /, axis: int | tuple) -> Tensor:
    """The tensor without these axes, whose extents are 1."""
    gone = _axes(axis, x.ndim)
    if any(x.shape[a] != 1 for a in gone):
        raise ValueError(f"squeeze: an axis has not extent 1; got axis {axis}, shape {x.shape}")
    return x.reshape([n for i, n in enumerate(x.shape) if i not in gone])


def reshape(x: Tensor, /, shape: int | Sequence[int], *, copy: builtins.bool | None = None) -> Tensor:
    """The elements in another shape; one extent may be -1."""
    return (copied(x) if copy else x).reshape(shape)


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """The tensor with its axes in this order."""
    return _reel.permute(x, _axes(axes, x.ndim)) if x.ndim else +x


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The tensor with its last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: two axes or more are expected, got shape {x.shape}")
    return _reel.movedim(x, -1, -2)


def moveaxis(x: Tensor, source: int | tuple, destination: int | tuple, /) -> Tensor:
    """The tensor with some axes moved to other places; the others keep their order."""
    old, new = _axes(source, x.ndim), _axes(destination, x.ndim)
    if len(old) != len(new):
        raise ValueError(f"moveaxis: as many axes are expected in both; got {source} and {destination}")
    to = dict(zip(new, old))
    rest = iter([a for a in range(x.ndim) if a not in to.values()])
    return permute_dims(x, [to[i] if i in to else next(rest) for i in range(x.ndim)])


def flip(x: Tensor, /, *, axis: int | tuple | None = None) -> Tensor:
    """The elements in reverse order along these axes, or all of them."""
    for a in _axes(range(x.ndim) if axis is None else axis, x.ndim):
        x = _reel.flip(x, a)
    return x


def roll(x: Tensor, /, shift: int | tuple, *, axis: int | tuple | None = None) -> Tensor:
    """The elements moved along these axes, around the end; None rolls the flattened tensor. Several shifts of an axis add
    up."""
    if axis is None:
        shifts = shift if isinstance(shift, tuple) else (shift,)
        return _reel.roll(x.reshape(x.size), sum(shifts), 0).reshape(x.shape)
    axes = (axis,) if isinstance(axis, int) else axis
    shifts = (shift,) if isinstance(shift, int) else shift
    if 1 not in (len(axes), len(shifts)) and len(axes) != len(shifts):
        raise ValueError(f"roll: as many shifts as axes are expected, or one of either; got {shift} and {axis}")
    n = builtins.max(len(axes), len(shifts))
    for a, s in zip(axes * n if len(axes) == 1 else axes, shifts * n if len(shifts) == 1 else shifts):
        x = _reel.roll(x, s, a)
    return x


def tile(x: Tensor, repetitions: int | Sequence[int], /) -> Tensor:
    """The tensor side by side, so many times along each axis; one number is for the last axis."""
    repetitions = (repetitions,) if isinstance(repetitions, int) else repetitions
    rank = max(x.ndim, len(repetitions))
    counts = [1] * (rank - len(repetitions)) + list(repetitions)
    return _reel.tile(x.reshape([1] * (rank - x.ndim) + list(x.shape)), counts)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element so many times in a row, along an axis or of the flattened tensor."""
    if axis is None:
        x, axis = x.reshape(x.size), 0
    if isinstance(repeats, int):
        return _reel.repeat(x, repeats, axis)
    n = x.shape[axis]
    if repeats.size != 1 and repeats.shape != (n,):
        raise ValueError(f"repeat: one count or {n} are expected, got shape {repeats.shape}")
    counts = repeats.tolist() if repeats.shape == (n,) else [repeats.reshape(()).item()] * n
    if any(count < 0 for count in counts):
        raise ValueError(f"repeat: counts are 0 or more, got {builtins.min(counts)}")
    rows = [row for row, count in enumerate(counts) for _ in range(count)]
    return _reel.index_select(x, axis, tensor(rows, "i32"))


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements at these indices along an axis; negative ones count from the end."""
    axis = 0 if axis is None and x.ndim == 1 else axis
    if axis is None:
        raise ValueError(f"take: an axis is needed for shape {x.shape}")
    return _reel.index_select(x, axis, _positive(indices, x.shape[axis]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The element at each index along an axis; the other axes broadcast."""
    axis = _axes(axis, x.ndim)[0]
    others = broadcast_shapes(
        *([1 if i == axis else n for i, n in enumerate(shape)] for shape in (x.shape, indices.shape))
    )

    def shape(t: Tensor) -> list[int]:
        return [t.shape[axis] if i == axis else n for i, n in enumerate(others)]

    index = _positive(indices, x.shape[axis])
    return _reel.take_along(_reel.expand(x, shape(x)), _reel.expand(index, shape(index)), axis)


def _positive(indices: Tensor, n: int) -> Tensor:
    """Indices that are in an axis of n, counted from its start; others stay, for the error that names them."""
    return _reel.where((indices < 0) & (indices >= -n), indices + n, indices)
