"""Creation functions of the standard."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

from .. import _reel
from .._check import kind_of, shown
from .._create import asarray as _shared
from .._create import tensor as _tensor
from .._reel import DType, Tensor
from ._dtypes import bool, check_device, complex64, complex_of, copied, float32, float64, int32, isdtype, result_type


def _of_number(value: Any) -> DType:
    """The default dtype of a number of Python."""
    if isinstance(value, builtins.bool):
        return bool
    return int32 if isinstance(value, int) else complex64 if isinstance(value, complex) else float32


def asarray(
    obj: Any, /, *, dtype: DType | None = None, device: str | None = None, copy: builtins.bool | None = None
) -> Tensor:
    """A tensor of numbers, nested sequences of them, or an array, whose memory is shared unless a copy is needed.

    With copy=False, ValueError where it is needed: for another dtype than Reel's, or memory that is read-only or not
    contiguous.
    """
    check_device(device)
    array = isinstance(obj, Tensor) or hasattr(obj, "__dlpack__")
    if copy is False and not array:
        raise ValueError("asarray: numbers of Python are always copied; got copy=False")
    if not array or copy:
        return _tensor(obj, dtype)
    return _unless_copied("asarray", obj, _shared(obj, dtype), copy)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: builtins.bool | None = None) -> Tensor:
    """A tensor that shares the memory of an array of another library, unless a copy is needed: see asarray()."""
    check_device(device)
    made = _reel.from_dlpack(x)
    return copied(made) if copy else _unless_copied("from_dlpack", x, made, copy)


def _unless_copied(name: str, obj: Any, made: Tensor, copy: builtins.bool | None) -> Tensor:
    """The tensor made of an array; ValueError if that was a copy and none is wanted."""
    if copy is False and made is not obj and made.size and _address(made) != _address(obj):
        dtype = getattr(obj, "dtype", "?")
        given = f"{kind_of(obj)} of {getattr(dtype, 'name', dtype)}"
        raise ValueError(
            f"{name}: a copy is needed where an array is not {made.dtype.name} in contiguous, writable memory, got "
            f"{given} and copy=False"
        )
    return made


def _address(array: Any) -> int:
    """Where its elements are; 0 if it does not say."""
    import numpy

    if isinstance(array, Tensor):
        array = array.numpy()
    try:
        view = array if hasattr(array, "__array_interface__") else numpy.from_dlpack(array)
        return view.__array_interface__["data"][0]
    except (AttributeError, BufferError, RuntimeError, TypeError):
        return 0


def full(shape: Any, fill_value: Any, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """A tensor of one value."""
    check_device(device)
    if isinstance(fill_value, Tensor):
        dtype = fill_value.dtype if dtype is None else dtype
        fill_value = _shared(fill_value, dtype)  # refuses a complex number where the dtype is real
    return _reel.full(shape, fill_value, _of_number(fill_value) if dtype is None else dtype)


def empty(shape: Any, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """The same as zeros()."""
    return full(shape, 0.0, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """A tensor of zeros."""
    return full(shape, 0.0, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """A tensor of ones."""
    return full(shape, 1.0, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """A tensor of one value with x's shape, and its dtype if none is given."""
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """The same as zeros_like()."""
    return full_like(x, 0.0, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """Zeros with x's shape, and its dtype if none is given."""
    return full_like(x, 0.0, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """Ones with x's shape, and its dtype if none is given."""
    return full_like(x, 1.0, dtype=dtype, device=device)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: DType | None = None, device: str | None = None
) -> Tensor:
    """start, start + step, ... below stop; ValueError for integers that do not fit int32."""
    check_device(device)
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = int32 if all(isinstance(v, int) for v in (start, stop, step)) else float32
    if step == 0:
        raise ValueError("arange: the step is not 0")
    n = builtins.max(0, math.ceil((stop - start) / step))
    if dtype == int32:
        _check_fit("arange", *((start, start + (n - 1) * step) if n else ()))
        return _reel.arange(n) * step + start
    return (_reel.arange(n, float64) * step + start).cast(dtype)


def _check_fit(name: str, *elements: Any) -> None:
    """ValueError for a number that int32 does not hold."""
    for v in elements:
        if not -(2**31) <= v < 2**31:
            raise ValueError(f"{name}: the elements must fit int32, got {v}. Hint: dtype=float64")


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    """num numbers from start to stop, at equal distances; without stop if not endpoint. Integers are rounded down.

    ValueError for integers that do not fit int32.
    """
    check_device(device)
    if not hasattr(num, "__index__"):
        raise TypeError(f"linspace: num is an integer, got {shown(num)}")
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"linspace: num is 0 or more, got {num}")
    complex_ends = isinstance(start, complex) or isinstance(stop, complex)
    if dtype is None:
        dtype = complex64 if complex_ends else float32
    divisions = num - 1 if endpoint else num
    if dtype == int32 and not complex_ends and num > 0:
        _check_fit("linspace", start, stop if endpoint and num > 1 else start + (num - 1) * ((stop - start) / num))
    steps = _reel.arange(num, float64) / builtins.max(1, divisions)
    if complex_ends or isdtype(dtype, "complex floating"):
        steps = steps.cast(complex_of(float64))
    values = steps * (stop - start) + start
    if endpoint and num > 1:  # exactly, whatever was rounded
        values = _reel.concat([values[:-1], _reel.full(1, stop, values.dtype)])
    return (_reel.floor(values) if dtype == int32 else values).cast(dtype)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None, device: str | None = None
) -> Tensor:
    """Ones on a diagonal of a matrix, zeros elsewhere."""
    check_device(device)
    columns = _reel.arange(n_rows if n_cols is None else n_cols)
    on = columns == _reel.unsqueeze(_reel.arange(n_rows) + k, 1)
    return on.cast(float32 if dtype is None else dtype)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Grids of the coordinates in these vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing is "xy" or "ij", got {indexing!r}')
    if any(x.ndim != 1 for x in arrays):
        raise ValueError("meshgrid: vectors are expected")
    if len(arrays) > 1:
        result_type(*arrays)
    axes = list(range(len(arrays)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    shape = [1] * len(arrays)
    for axis, x in zip(axes, arrays):
        shape[axis] = x.size
    grids = []
    for axis, x in zip(axes, arrays):
        view = [1] * len(arrays)
        view[axis] = x.size
        grids.append(_reel.expand(x.reshape(view), shape))
    return tuple(grids)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, zeros above it."""
    return _triangle(x, k, lower=True)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, zeros below it."""
    return _triangle(x, k, lower=False)


def _triangle(x: Tensor, k: int, lower: builtins.bool) -> Tensor:
    if x.ndim < 2:
        raise ValueError(f"a matrix is expected, got shape {x.shape}")
    rows, columns = x.shape[-2:]
    column, row = _reel.arange(columns), _reel.unsqueeze(_reel.arange(rows) + k, 1)
    return _reel.where(column <= row if lower else column >= row, x, zeros_like(x))
