"""Elementwise functions of the standard: Reel's ops with its names, dtypes and promotion."""

from __future__ import annotations

import math
from typing import Any, Callable

from .. import _reel
from .._reel import DType, Tensor
from ._dtypes import bool, dtype_of, int32, isdtype, result_type, with_number


def both(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two operands, one of which may be a number of Python, with the dtype of their result."""
    dtype = result_type(x1, x2)
    return _operand(x1, dtype), _operand(x2, dtype)


def _operand(x: Any, dtype: DType) -> Tensor:
    if not isinstance(x, Tensor):
        return _reel.full((), x, dtype)
    return x if x.dtype == dtype else x.cast(dtype)


def _named(f: Callable, name: str, doc: str) -> Callable:
    f.__name__ = f.__qualname__ = name
    f.__doc__ = doc
    return f


def _check(x: Tensor, name: str, *kinds: str) -> Tensor:
    if not isdtype(dtype_of(x, name), kinds):
        raise TypeError(f"{name}: {' or '.join(kinds)} elements are expected, got {x.dtype.name}")
    return x


def _unary(name: str, op: Callable, *kinds: str) -> Callable:
    def function(x: Tensor, /) -> Tensor:
        return op(_check(x, name, *kinds))

    return _named(function, name, f"{name} of each element; TypeError unless its dtype is {' or '.join(kinds)}.")


def _whole(name: str, op: Callable) -> Callable:
    """A function that leaves integers as they are."""

    def function(x: Tensor, /) -> Tensor:
        return +_check(x, name, "integral", "real floating") if dtype_of(x, name) == int32 else op(x)

    return _named(function, name, f"{name} of each element; integers stay as they are.")


def _binary(name: str, op: Callable, *kinds: str) -> Callable:
    def function(x1: Any, x2: Any, /) -> Tensor:
        a, b = both(x1, x2)
        return op(_check(a, name, *kinds), b)

    return _named(function, name, f"{name} of each pair of elements; shapes broadcast and dtypes promote.")


_FLOAT = ("real floating", "complex floating")
_REAL = ("integral", "real floating")
_ANY = ("bool", "numeric")

acos, asin, atan = (_unary(n, getattr(_reel, n), *_FLOAT) for n in ("acos", "asin", "atan"))
cos, sin, tan = (_unary(n, getattr(_reel, n), *_FLOAT) for n in ("cos", "sin", "tan"))
cosh, sinh, tanh = (_unary(n, getattr(_reel, n), *_FLOAT) for n in ("cosh", "sinh", "tanh"))
exp, expm1, log, log1p = (_unary(n, getattr(_reel, n), *_FLOAT) for n in ("exp", "expm1", "log", "log1p"))
sqrt, reciprocal = _unary("sqrt", _reel.sqrt, *_FLOAT), _unary("reciprocal", _reel.reciprocal, *_FLOAT)
log2 = _unary("log2", lambda x: _reel.log(x) / math.log(2), *_FLOAT)
log10 = _unary("log10", lambda x: _reel.log(x) / math.log(10), *_FLOAT)
abs = _unary("abs", _reel.abs, "numeric")
negative = _unary("negative", _reel.neg, "numeric")
positive = _unary("positive", lambda x: +x, "numeric")
sign = _unary("sign", lambda x: _reel.where(x == 0, x - x, _reel.sign(x)), "numeric")  # of -0 it is +0
square = _unary("square", lambda x: x * x, "numeric")
conj = _unary("conj", lambda x: _reel.conj(x) if isdtype(x.dtype, "complex floating") else +x, "numeric")
real = _unary("real", lambda x: _reel.real(x) if isdtype(x.dtype, "complex floating") else +x, "numeric")
imag = _unary("imag", _reel.imag, "complex floating")
logical_not = _unary("logical_not", _reel.logical_not, "bool")
bitwise_invert = _unary("bitwise_invert", lambda x: ~x, "bool", "integral")
floor, ceil, trunc = (_whole(n, getattr(_reel, n)) for n in ("floor", "ceil", "trunc"))


def _by_parts(x: Tensor) -> Tensor:
    if isdtype(x.dtype, "complex floating"):
        return _reel.complex(_reel.round(_reel.real(x)), _reel.round(_reel.imag(x)))
    return _reel.round(x)


round = _whole("round", _by_parts)


def _of_floats(name: str, op: Callable, otherwise: float) -> Callable:
    def function(x: Tensor, /) -> Tensor:
        _check(x, name, "numeric")
        return _reel.full(x.shape, otherwise, bool) if x.dtype == int32 else op(x)

    return _named(function, name, f"{name} of each element: bool.")


isnan = _of_floats("isnan", _reel.is_nan, 0)
isinf = _of_floats("isinf", _reel.is_inf, 0)
isfinite = _of_floats("isfinite", _reel.is_finite, 1)


def _signbit(x: Tensor) -> Tensor:
    return (x < 0) | ((x == 0) & (1 / x < 0))


signbit = _unary("signbit", _signbit, "real floating")
copysign = _binary("copysign", lambda a, b: _reel.where(_signbit(b), -_reel.abs(a), _reel.abs(a)), "real floating")

add = _binary("add", _reel.add, "numeric")
subtract = _binary("subtract", _reel.subtract, "numeric")
multiply = _binary("multiply", _reel.multiply, "numeric")
divide = _binary("divide", _reel.divide, *_FLOAT)
floor_divide = _binary("floor_divide", lambda a, b: a // b, *_REAL)
remainder = _binary("remainder", lambda a, b: a % b, *_REAL)
pow = _binary("pow", lambda a, b: a**b, "numeric")
atan2, hypot = _binary("atan2", _reel.atan2, "real floating"), _binary("hypot", _reel.hypot, "real floating")
maximum, minimum = _binary("maximum", _reel.maximum, *_REAL), _binary("minimum", _reel.minimum, *_REAL)
equal, not_equal = _binary("equal", _reel.equal, *_ANY), _binary("not_equal", _reel.not_equal, *_ANY)
less, less_equal = _binary("less", _reel.less, *_REAL), _binary("less_equal", _reel.less_equal, *_REAL)
greater = _binary("greater", _reel.greater, *_REAL)
greater_equal = _binary("greater_equal", _reel.greater_equal, *_REAL)
logical_and = _binary("logical_and", _reel.logical_and, "bool")
logical_or = _binary("logical_or", _reel.logical_or, "bool")
logical_xor = _binary("logical_xor", _reel.logical_xor, "bool")
bitwise_and = _binary("bitwise_and", _reel.logical_and, "bool")
bitwise_or = _binary("bitwise_or", _reel.logical_or, "bool")
bitwise_xor = _binary("bitwise_xor", _reel.logical_xor, "bool")


def _log_of_sum(a: Tensor, b: Tensor) -> Tensor:
    finite, below = _reel.is_finite(a) & _reel.is_finite(b), a <= b  # maximum() of equals has half of each derivative
    largest = _reel.where(finite, _reel.where(below, b, a), _reel.maximum(a, b))
    apart = _reel.where(a == b, 0.0, _reel.minimum(a, b) - largest)
    apart = _reel.where(finite, _reel.where(below, a - b, b - a), apart)
    return largest + _reel.log1p(_reel.exp(apart))


logaddexp = _binary("logaddexp", _log_of_sum, "real floating")


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Elements below min become min and those above max become max; shapes broadcast, and the dtype is x's."""
    _check(x, "clip", *_REAL)
    for bound, op in ((min, _reel.maximum), (max, _reel.minimum)):
        if bound is None:
            continue
        if not isinstance(bound, Tensor):
            with_number(x.dtype, bound)
        elif isdtype(bound.dtype, "integral") != isdtype(x.dtype, "integral"):
            raise TypeError(f"clip: bounds of {bound.dtype.name} do not go with {x.dtype.name}")
        x = op(x, _operand(bound, x.dtype))
    return +x


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition holds, otherwise x2; shapes broadcast and dtypes promote."""
    a, b = both(x1, x2)
    return _reel.where(_check(condition, "where", "bool"), a, b)
