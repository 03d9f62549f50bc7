"""Statistical and utility functions of the standard."""

from __future__ import annotations

import builtins
import math
from typing import Any, Callable

from .. import _reel
from .._reel import DType, Tensor
from ._dtypes import bool, dtype_of, float32, float64, int32, isdtype, result_type


def _over(op: Callable, x: Tensor, axis: Any, keepdims: builtins.bool) -> Tensor:
    """A reduction over axes; None stands for all of them, () for none."""
    if axis is None:
        axis = tuple(range(x.ndim))
    _scalar_axis(x, axis)
    if axis == () or x.ndim == 0:
        return op(x.reshape((*x.shape, 1)), -1, False)
    return op(x, axis, keepdims)


def _scalar_axis(x: Tensor, axis: Any) -> None:
    """A scalar has no axis, but 0 and -1 stand for one, as in NumPy."""
    if x.ndim > 0 or axis is None:
        return
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for a in axes:
        if a not in (0, -1):
            raise IndexError(f"a scalar has no axis {a}")
    if len(axes) > 1:
        raise ValueError(f"an axis is given twice: {axis}")


def _count(x: Tensor, axis: Any) -> int:
    """How many elements go into one result."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return math.prod(x.shape[a] for a in axes) if x.ndim else 1


def _nan(x: Tensor, axes: Any, keep: builtins.bool) -> Tensor:
    return _reel.sum(x, axes, keep) * math.nan


def _numeric(x: Tensor, name: str, *kinds: str) -> Tensor:
    if not isdtype(dtype_of(x, name), kinds or "numeric"):
        raise TypeError(f"{name}: {' or '.join(kinds or ('numeric',))} elements are expected, got {x.dtype.name}")
    return x


def sum(
    x: Tensor, /, *, axis: int | tuple | None = None, dtype: DType | None = None, keepdims: builtins.bool = False
) -> Tensor:
    """The sum over these axes, or all of them, as `dtype`."""
    return _over(_reel.sum, _as(x, "sum", dtype), axis, keepdims)


def prod(
    x: Tensor, /, *, axis: int | tuple | None = None, dtype: DType | None = None, keepdims: builtins.bool = False
) -> Tensor:
    """The product over these axes, or all of them, as `dtype`."""
    return _over(_reel.prod, _as(x, "prod", dtype), axis, keepdims)


def _as(x: Tensor, name: str, dtype: DType | None) -> Tensor:
    if isdtype(_numeric(x, name).dtype, "complex floating") and dtype in (bool, int32, float32, float64):
        raise TypeError(f"{name}: {x.dtype.name} does not become {dtype.name}. Hint: take real()")
    return x if dtype in (None, x.dtype) else x.cast(dtype)


def mean(x: Tensor, /, *, axis: int | tuple | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The mean over these axes, or all of them; NaN of no elements."""
    _numeric(x, "mean", "real floating", "complex floating")
    return _over(_reel.mean if _count(x, axis) else _nan, x, axis, keepdims)


def max(x: Tensor, /, *, axis: int | tuple | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest element over these axes, or all of them."""
    return _over(_reel.max, _numeric(x, "max", "integral", "real floating"), axis, keepdims)


def min(x: Tensor, /, *, axis: int | tuple | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest element over these axes, or all of them."""
    return _over(_reel.min, _numeric(x, "min", "integral", "real floating"), axis, keepdims)


def var(
    x: Tensor, /, *, axis: int | tuple | None = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """The variance over these axes, or all of them; NaN where the correction leaves nothing to divide by."""
    _numeric(x, "var", "real floating")
    if _count(x, axis) <= correction:
        return _over(_nan, x, axis, keepdims)
    return _over(lambda x, axes, keep: _reel.var(x, axes, keep, correction), x, axis, keepdims)


def std(
    x: Tensor, /, *, axis: int | tuple | None = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """The standard deviation over these axes, or all of them; its derivative is 0 where it is 0."""
    _numeric(x, "std", "real floating")
    if _count(x, axis) <= correction:
        return _over(_nan, x, axis, keepdims)
    return _over(lambda x, axes, keep: _reel.std_dev(x, axes, keep, correction), x, axis, keepdims)


def all(x: Tensor, /, *, axis: int | tuple | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all elements over these axes are true, or not 0."""
    return _over(_reel.all, x if dtype_of(x, "all") == bool else x != 0, axis, keepdims)


def any(x: Tensor, /, *, axis: int | tuple | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether any element over these axes is true, or not 0."""
    return _over(_reel.any, x if dtype_of(x, "any") == bool else x != 0, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: int | tuple | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The number of elements that are not 0, over these axes or all of them."""
    on = x if dtype_of(x, "count_nonzero") == bool else x != 0
    return sum(on.cast(int32), axis=axis, keepdims=keepdims)


def _cumulative(
    op: Callable, first: int, x: Tensor, name: str, axis: int | None, dtype: DType | None, include_initial: builtins.bool
) -> Tensor:
    """Of the elements up to each one; with include_initial what there is of none comes first."""
    x = _as(x, name, dtype)
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: an axis is needed for shape {x.shape}")
        axis = 0
    x = x.reshape(1) if x.ndim == 0 else x
    found = op(x, axis)
    if not include_initial:
        return found
    shape = list(x.shape)
    shape[axis] = 1
    return _reel.concat([_reel.full(tuple(shape), first, x.dtype), found], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: builtins.bool = False
) -> Tensor:
    """Sums of the elements up to each one; with include_initial a 0 comes first."""
    return _cumulative(_reel.cumsum, 0, x, "cumulative_sum", axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: builtins.bool = False
) -> Tensor:
    """Products of the elements up to each one; with include_initial a 1 comes first."""
    return _cumulative(_reel.cumprod, 1, x, "cumulative_prod", axis, dtype, include_initial)


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """The int32 indices that sort x along an axis; always stable. NaN is larger than any number."""
    return _reel.argsort(_numeric(x, "argsort", "integral", "real floating"), axis, descending)


def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """x sorted along an axis; always stable. NaN is larger than any number."""
    return _reel.sort(_numeric(x, "sort", "integral", "real floating"), axis, descending)


def _found(op: Callable, x: Tensor, axis: int | None, keepdims: builtins.bool) -> Tensor:
    rank = x.ndim
    _scalar_axis(x, axis)
    if axis is None or rank == 0:
        index = op(x.reshape(x.size), 0)
        return index.reshape((1,) * rank) if keepdims else index
    index = op(x, axis)
    return _reel.unsqueeze(index, axis) if keepdims else index


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The first index of the largest element along an axis, or of all of them."""
    return _found(_reel.argmax, _numeric(x, "argmax", "integral", "real floating"), axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The first index of the smallest element along an axis, or of all of them."""
    return _found(_reel.argmin, _numeric(x, "argmin", "integral", "real floating"), axis, keepdims)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The n-th differences of neighbours along an axis."""
    if n < 0:
        raise ValueError(f"diff: n is 0 or more, got {n}")
    parts = [part for part in (prepend, x, append) if part is not None]
    dtype = result_type(*parts)
    x = _reel.concat([part.cast(dtype) for part in parts], axis)
    for _ in range(n):
        size = x.shape[axis]
        x = _reel.slice(x, axis, 1, size) - _reel.slice(x, axis, 0, size - 1) if size else x
    return x


def isin(x1: Any, x2: Any, /, *, invert: builtins.bool = False) -> Tensor:
    """Which elements of x1 are among those of x2."""
    result_type(x1, x2)
    values = x2.reshape(x2.size) if isinstance(x2, Tensor) else _reel.full(1, x2, x1.dtype)
    points = x1 if isinstance(x1, Tensor) else _reel.full((), x1, values.dtype)
    dtype = result_type(points, values)
    found = any(_reel.unsqueeze(points.cast(dtype), -1) == values.cast(dtype), axis=-1)
    return ~found if invert else found


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where the elements of x2 go into the sorted vector x1; all pairs are compared."""
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side is "left" or "right", got {side!r}')
    if sorter is not None:
        x1 = _reel.index_select(x1, 0, sorter)
    points = _reel.unsqueeze(x2 if isinstance(x2, Tensor) else _reel.full((), x2, x1.dtype), -1)
    dtype = result_type(x1, points)
    x1, points = x1.cast(dtype), points.cast(dtype)
    below = x1 < points if side == "left" else x1 <= points
    if isdtype(dtype, "real floating"):  # NaN comes last
        last = _reel.is_nan(points)
        below = below | (last & ~_reel.is_nan(x1) if side == "left" else last)
    return _reel.sum(below.cast(int32), -1)
