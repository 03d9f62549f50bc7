"""Tensors from Python's numbers and lists, and from arrays."""

from __future__ import annotations

import copy
import itertools
import numbers
import sys
from typing import Any, Sequence

from . import _reel
from ._reel import DType, Error, Tensor


def tensor(data: Any, dtype: Any = None) -> Tensor:
    """A tensor with a copy of these numbers, lists of numbers, or of an array.

    Lists of Python's numbers become f32, c64, i32 or bool; arrays keep their dtype, and lists of tensors and arrays have
    the precision of the widest one. 64-bit integers become i32, smaller ones, too. Gradients go through the copy of a
    tensor, and through lists of tensors. Throws Error when a number does not fit i32, for complex numbers where the dtype
    is real, for elements that are wider than f64 and c128, and for a tensor of PyTorch that requires a gradient.
    """
    import numpy

    wanted = None if dtype is None else _reel._dtype(dtype)
    parts = data if isinstance(data, (list, tuple)) else [data]
    if data is None:
        raise Error("[tensor] data: numbers, lists of them or an array are expected, got None")
    if isinstance(data, Tensor):
        return _cast(data, wanted)
    if _reel._recording() and _has_tensor(data):
        return _stacked(data, wanted)
    _reel._refuse_gradient("tensor", data)
    _refuse_masked(data)
    try:
        array = numpy.asarray(data.resolve_conj().resolve_neg() if hasattr(data, "resolve_conj") else data)
    except ValueError as e:
        raise Error(f"[tensor] {e}") from None
    except TypeError as e:  # of PyTorch's tensors, JAX's tracers and others, most with a hint of their own
        narrow = any(f"ScalarType {name}" in str(e) for name in ("BFloat16", "Float8"))
        hint = ". Hint: convert it first, as by x.float()" if narrow else ""
        raise Error(f"[tensor] {e}{hint}") from None
    if wanted is not None:
        array, name = _numbers(array), _reel._numpy_name(wanted)
        if array.dtype.kind == "c" and name[0] != "c":
            raise Error(_COMPLEX.format(name))
    elif array.dtype.kind in "fc" and array.dtype.itemsize > (8 if array.dtype.kind == "f" else 16):
        wide = "f64" if array.dtype.kind == "f" else "c128"
        raise Error(f'[tensor] elements are {wide} or narrower, got {array.dtype}. Hint: dtype="{wide}"')
    elif array.dtype.kind == "f":
        name = "float64" if array.dtype.itemsize == 8 and _has_wide(parts) else "float32"
    elif array.dtype.kind == "c":
        name = "complex128" if array.dtype.itemsize == 16 and _has_wide(parts) else "complex64"
    elif array.dtype.kind in "iu":
        name = "int32"
    elif array.dtype.kind == "b":
        name = "bool"
    else:
        raise _no_numbers(array)
    if array.dtype.kind in "iuf" and name == "int32" and not numpy.can_cast(array.dtype, "int32"):
        outside = ~((array >= -(2**31)) & (array < 2**31)).ravel()
        if outside.any():
            i = int(outside.argmax())
            raise Error(f"[tensor] i32 holds -2147483648..2147483647, got {array.ravel()[i]} at element {i}")
    return _reel._copied(array.astype(name, copy=False))


def _refuse_masked(data: Any, function: str = "tensor") -> None:
    """What a masked array of NumPy has below its mask would count as numbers."""
    ma = sys.modules.get("numpy.ma")
    if ma is None:
        return
    if isinstance(data, (list, tuple)):
        if any(issubclass(kind, (list, tuple, ma.MaskedArray)) for kind in set(map(type, data))):
            for part in data:
                _refuse_masked(part, function)
    elif isinstance(data, ma.MaskedArray) and (count := ma.count_masked(data)):
        rule = f"{count} of {data.size} elements are masked, and have no numbers"
        raise Error(f"[{function}] {rule}. Hint: x.filled(0)")


def _no_numbers(array: Any) -> Error:
    return Error(f"[tensor] numbers are expected, got elements of type {array.dtype}")


def _numbers(array: Any) -> Any:
    """An array whose elements are numbers: also those of Python that fit no dtype of NumPy, which become floating."""
    if array.dtype.kind in "biufc":
        return array
    if array.dtype.kind != "O" or not all(isinstance(x, numbers.Number) for x in array.flat):
        raise _no_numbers(array)
    try:
        return array.astype("c16" if any(isinstance(x, complex) for x in array.flat) else "f8")
    except OverflowError as e:
        raise Error(f"[tensor] {e}") from None


def _cast(x: Tensor, dtype: DType | None) -> Tensor:
    """A copy of a tensor."""
    if dtype is None or dtype == x.dtype:
        return copy.copy(x)
    if x.dtype in _KINDS[3] and dtype not in _KINDS[3]:
        raise Error(_COMPLEX.format(_reel._numpy_name(dtype)))
    return _reel._cast_to_i32(x) if dtype == DType.i32 else x.cast(dtype)


def _has_buffer(data: Any) -> bool:
    """Is it an array of the standard library, or the like? Its numbers have a type, too."""
    try:
        memoryview(data)
    except TypeError:
        return False
    return True


def _has_tensor(data: Any) -> bool:
    return isinstance(data, Tensor) or isinstance(data, (list, tuple)) and any(map(_has_tensor, data))


def _has_wide(parts: Sequence) -> bool:
    """Is an f64 or c128 among these, or in lists among them? Python's own numbers have no precision to keep."""
    types = set(map(type, parts))
    if types <= {bool, int, float, complex}:
        return False
    if types <= {list, tuple}:
        return _has_wide([*itertools.chain.from_iterable(parts)])
    return any(_has_wide(part) if isinstance(part, (list, tuple)) else _is_wide(part) for part in parts)


def _is_wide(data: Any) -> bool:
    import numpy

    dtype = getattr(data, "dtype", None)
    if not isinstance(dtype, (numpy.dtype, DType)) and not str(dtype).startswith("torch."):
        if not hasattr(data, "__array__"):
            return _has_buffer(data) and memoryview(data).format[-1:] == "d"
        dtype = numpy.asarray(data).dtype  # of a DataFrame, whose columns may have several
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.") in _WIDE


def _stacked(data: list | tuple, dtype: DType | None) -> Tensor:
    """Lists of tensors and numbers as one tensor, by ops that are recorded."""
    leaves: list = []

    def collect(part: Any) -> None:
        if isinstance(part, (list, tuple)):
            for element in part:
                collect(element)
        else:
            leaves.append(part)

    collect(data)
    if dtype is None:
        found = {tensor(x).dtype if not isinstance(x, Tensor) else x.dtype for x in leaves}
        kind = _KINDS[max(k for k, kind in enumerate(_KINDS) if found.intersection(kind))]
        dtype = kind[-1] if _has_wide(leaves) else kind[0]
    rest = iter(leaves)

    def stack(part: Any) -> Tensor:
        if isinstance(part, (list, tuple)):
            return _reel.stack([stack(element) for element in part])
        leaf = next(rest)
        return _cast(leaf, dtype) if isinstance(leaf, Tensor) else tensor(leaf, dtype)

    return stack(data)


def asarray(data: Any, dtype: Any = None) -> Tensor:
    """The same without a copy where the memory can be shared: see from_dlpack."""
    if isinstance(data, Tensor):
        wanted = data.dtype if dtype is None else _reel._dtype(dtype)
        return data if data.dtype == wanted else _cast(data, wanted)
    if not hasattr(data, "dtype") and _has_buffer(data):
        import numpy

        data = numpy.asarray(data)
    if hasattr(data, "__dlpack__") or hasattr(data, "__array_interface__"):
        _reel._refuse_gradient("asarray", data)
        _refuse_masked(data)
        shared = None
        if str(getattr(data, "dtype", "")).removeprefix("torch.") in _SHARED:
            shared = _reel._shared(data)
        if shared is not None and (dtype is None or shared.dtype == _reel._dtype(dtype)):
            return shared
    return tensor(data, dtype)


_COMPLEX = "[tensor] complex numbers do not become {}. Hint: reel.real(x)"
_KINDS = ((DType.boolean,), (DType.i32,), (DType.f32, DType.f64), (DType.c64, DType.c128))
_WIDE = {"f64", "c128", "float64", "complex128"}
_SHARED = {"float32", "float64", "complex64", "complex128", "int32", "bool"}
