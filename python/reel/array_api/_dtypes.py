"""dtypes of the standard, and how they promote."""

from __future__ import annotations

import builtins
import dataclasses
import sys
from typing import Any

from .._check import kind_of, shown
from .._create import tensor
from .._reel import DType, Tensor

bool = DType.boolean
int32 = DType.i32
float32, float64 = DType.f32, DType.f64
complex64, complex128 = DType.c64, DType.c128

_KINDS = {
    "bool": (bool,),
    "signed integer": (int32,),
    "unsigned integer": (),
    "integral": (int32,),
    "real floating": (float32, float64),
    "complex floating": (complex64, complex128),
    "numeric": (int32, float32, float64, complex64, complex128),
}
_NAMES = {"bool": bool, "int32": int32, "float32": float32, "float64": float64}
_NAMES |= {"complex64": complex64, "complex128": complex128}
_REAL = {complex64: float32, complex128: float64}
_COMPLEX = {float32: complex64, float64: complex128}


def real_of(dtype: DType) -> DType:
    """The dtype of a complex number's parts."""
    return _REAL.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """The complex dtype of this precision."""
    return _COMPLEX.get(dtype, dtype)


def isdtype(dtype: DType, kind: DType | str | tuple) -> builtins.bool:
    """Whether a dtype is of a kind: "numeric", "real floating" and the like, a dtype, or any of a tuple of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: a kind is one of {', '.join(_KINDS)}; got {kind!r}")
        return dtype in _KINDS[kind]
    return dtype == kind


def _promote(a: DType, b: DType) -> DType:
    if a == b:
        return a
    floating = _KINDS["real floating"] + _KINDS["complex floating"]
    if a not in floating or b not in floating:
        raise TypeError(f"result_type: {a.name} and {b.name} do not promote. Hint: astype() one of them")
    real = float64 if float64 in (real_of(a), real_of(b)) else float32
    return complex_of(real) if a in _REAL or b in _REAL else real


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of a result of these tensors, dtypes and numbers of Python; TypeError when there is none."""
    given = [x.dtype if isinstance(x, Tensor) else x for x in arrays_and_dtypes]
    dtypes = [x for x in given if isinstance(x, DType)]
    if not dtypes:
        raise ValueError("result_type: at least one tensor or dtype is needed")
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = _promote(dtype, other)
    for number in given:
        if not isinstance(number, DType):
            dtype = with_number(dtype, number)
    return dtype


def with_number(dtype: DType, number: Any) -> DType:
    """The dtype of a tensor and a number of Python; TypeError where the standard leaves it undefined."""
    if not isinstance(number, (int, float, complex)):
        raise TypeError(f"a tensor of Reel or a number is expected, got {shown(number)}")
    own = dtype.name
    if isinstance(number, builtins.bool):
        good = dtype == bool
    elif isinstance(number, int):
        good = dtype != bool
    elif isinstance(number, float):
        good = dtype not in (bool, int32)
    else:
        good, dtype = dtype not in (bool, int32), complex_of(dtype)
    if not good:
        raise TypeError(f"{number!r} does not go with a tensor of {own}. Hint: astype() the tensor")
    return dtype


def dtype_of(x: Any, name: str) -> DType:
    """The dtype of a function's argument; TypeError unless it is a tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: a tensor of Reel is expected, got {kind_of(x)}. Hint: asarray(x)")
    return x.dtype


def can_cast(from_: DType | Tensor, to: DType, /) -> builtins.bool:
    """Whether a dtype promotes to another one."""
    try:
        return result_type(from_, to) == to
    except TypeError:
        return False


def astype(x: Tensor, dtype: DType, /, *, copy: builtins.bool = True, device: str | None = None) -> Tensor:
    """The same elements as another dtype; TypeError from a complex to a real one."""
    check_device(device)
    if x.dtype in _REAL and dtype not in _REAL and dtype != bool:
        raise TypeError(f"astype: {x.dtype.name} does not become {dtype.name}. Hint: take real()")
    if x.dtype == dtype:
        return copied(x) if copy else x
    return x != 0 if dtype == bool else x.cast(dtype)


def copied(x: Tensor) -> Tensor:
    """A tensor with memory of its own."""
    return tensor(x, x.dtype)


def check_device(device: str | None) -> None:
    """ValueError for a device that is not there."""
    if device not in (None, "cpu"):
        raise ValueError(f'the device is "cpu", got {device!r}')


@dataclasses.dataclass(frozen=True)
class finfo_object:
    """What finfo() returns."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclasses.dataclass(frozen=True)
class iinfo_object:
    """What iinfo() returns."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: DType | Tensor, /) -> finfo_object:
    """The limits of a floating dtype; for a complex one, those of its parts."""
    dtype = real_of(type.dtype if isinstance(type, Tensor) else type)
    if dtype == float32:
        largest = (2 - 2.0**-23) * 2.0**127
        return finfo_object(32, 2.0**-23, largest, -largest, 2.0**-126, dtype)
    if dtype == float64:
        f = sys.float_info
        return finfo_object(64, f.epsilon, f.max, -f.max, f.min, dtype)
    raise TypeError(f"finfo: a floating dtype is expected, got {dtype}")


def iinfo(type: DType | Tensor, /) -> iinfo_object:
    """The limits of int32, the one integer dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    if dtype != int32:
        raise TypeError(f"iinfo: int32 is expected, got {dtype}")
    return iinfo_object(32, 2**31 - 1, -(2**31), dtype)


class _Info:
    """What this namespace has."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 8}

    def default_device(self) -> str:
        return "cpu"

    def devices(self) -> tuple[str, ...]:
        return ("cpu",)

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        check_device(device)
        return {"real floating": float32, "complex floating": complex64, "integral": int32, "indexing": int32}

    def dtypes(self, *, device: str | None = None, kind: str | tuple | None = None) -> dict[str, DType]:
        check_device(device)
        return {name: d for name, d in _NAMES.items() if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> _Info:
    """What this namespace has: dtypes, devices, capabilities."""
    return _Info()
