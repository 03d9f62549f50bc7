"""Fourier transforms of the standard: those along one axis, frequencies and shifts."""

from __future__ import annotations

import builtins
from typing import Any, Callable

from .. import _reel
from .._reel import DType, Tensor
from ._dtypes import check_device, complex_of, float32, float64, isdtype
from ._layout import roll

__all__ = ["fft", "ifft", "rfft", "irfft", "fftfreq", "rfftfreq", "fftshift", "ifftshift"]


def _transform(op: Callable, x: Tensor, kind: str, n: int | None, axis: int, norm: str) -> Tensor:
    if not isdtype(x.dtype, kind):
        raise TypeError(f"{op.__name__}: {kind} elements are expected, got {x.dtype.name}")
    return op(x, n, axis, norm)


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The Fourier transform along an axis."""
    return _transform(_reel.fft, x.cast(complex_of(x.dtype)), "complex floating", n, axis, norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse Fourier transform along an axis."""
    return _transform(_reel.ifft, x.cast(complex_of(x.dtype)), "complex floating", n, axis, norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The Fourier transform of real values: frequencies 0 and above."""
    return _transform(_reel.rfft, x, "real floating", n, axis, norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of rfft()."""
    return _transform(_reel.irfft, x.cast(complex_of(x.dtype)), "complex floating", n, axis, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """The frequencies of fft()'s result, in cycles per unit of d, the distance of two values."""
    check_device(device)
    k = _reel.arange(n)
    k = _reel.where(k < (n + 1) // 2, k, k - n)
    return (k.cast(float64) / (n * d)).cast(float32 if dtype is None else dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """The frequencies of rfft()'s result."""
    check_device(device)
    return (_reel.arange(n // 2 + 1, float64) / (n * d)).cast(float32 if dtype is None else dtype)


def _shifted(x: Tensor, axes: Any, inverse: builtins.bool) -> Tensor:
    over = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    shifts = tuple(-(x.shape[a] // 2) if inverse else x.shape[a] // 2 for a in over)
    return roll(x, shifts, axis=over)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The elements with frequency 0 in the middle."""
    return _shifted(x, axes, inverse=False)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The inverse of fftshift()."""
    return _shifted(x, axes, inverse=True)
