"""NumPy's functions of tensors, such as np.concatenate([x, y]): they work, but no gradient goes through them."""

from __future__ import annotations

import threading
from typing import Any, Callable, Iterable

from . import _reel
from ._reel import DType, Error, Tensor

_OURS = {"clip": "clamp", "concatenate": "concat", "amax": "max", "amin": "min"}
_CONSTANT = {"zeros_like", "ones_like", "empty_like", "full_like"}  # only of the shape of a tensor
_within = threading.local()  # NumPy's functions call others of NumPy


def array_function(self: Tensor, f: Callable, types: Iterable[type], args: tuple, kwargs: dict) -> Any:
    """What NumPy calls for its functions other than ufuncs: the same as without this method, but an array that is
    computed from a tensor with a gradient is refused."""
    import numpy

    work = getattr(f, "_implementation", None)
    if work is None or not all(issubclass(kind, (Tensor, numpy.ndarray)) for kind in types):
        return NotImplemented
    if not _reel._recording() or getattr(_within, "one", False):
        return work(*args, **kwargs)
    _within.one = True
    try:
        result = work(*args, **kwargs)
    finally:
        _within.one = False
    name = f.__name__
    if name not in _CONSTANT and _has_floats(result) and _is_recorded([args, kwargs]):
        ours = _OURS.get(name, name)
        hint = f"reel.{ours}, or " if hasattr(_reel, ours) else ""
        rule = "NumPy's function has no gradient, and a tensor was computed in a function that is differentiated"
        raise Error(f"[{name}] {rule}. Hint: {hint}x.numpy(), which counts as constant")
    return result


def numpy_dtype(self: DType) -> Any:
    """What NumPy asks for where it is given a dtype: numpy.zeros(3, x.dtype)."""
    import numpy

    return numpy.dtype(_reel._numpy_name(self))


def masked_data(self: Tensor) -> Any:
    """What NumPy's masked arrays ask an operand for, before they take it as an array: masked * tensor."""
    if _reel._recording() and _is_recorded(self):
        rule = "NumPy's masked arrays have no gradient, and a tensor was computed in a function that is differentiated"
        raise Error(f"[numpy.ma] {rule}. Hint: reel.tensor(masked.filled(0)), or x.numpy(), which counts as constant")
    raise AttributeError("a tensor has no _data")


def _has_floats(result: Any) -> bool:
    import numpy

    if isinstance(result, (list, tuple)):
        return any(map(_has_floats, result))
    return isinstance(result, (numpy.ndarray, numpy.generic)) and result.dtype.kind in "fcO"


def _is_recorded(tree: Any) -> bool:
    if isinstance(tree, (list, tuple)):
        return any(map(_is_recorded, tree))
    if isinstance(tree, dict):
        return _is_recorded(list(tree.values()))
    return isinstance(tree, Tensor) and tree.dtype.name[0] in "fc" and _reel._recorded(tree)
