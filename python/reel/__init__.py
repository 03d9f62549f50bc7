"""Tensors, gradients of any order, and recurrent networks whose steps are written in Python and run without it."""

import atexit as _atexit
import copyreg as _copyreg
import os as _os
import sys as _sys
import threading as _threading
import typing as _typing

from ._load import extension as _extension

_reel = _extension()
_reel._set_folders(
    _os.path.dirname(_os.path.abspath(__file__)) + _os.sep,
    [_os.path.dirname(_os.__file__) + _os.sep, _os.path.join(_sys.prefix, "bin", "")],
)

_atexit.register(lambda: _reel._end_threads(_threading.active_count() > 1))

# "X as X" tells type checkers that users may have the name from here; "import *" does, too.
from ._reel import *  # noqa: F401,F403,E402  ops, cells, Tensor
from ._reel import Error, OutOfMemory, SettingError, DType, Tensor, from_dlpack  # noqa: E402
from . import _array_function as _numpy  # noqa: E402
from ._autodiff import (  # noqa: E402
    check_grads as check_grads,
    grad as grad,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from ._create import asarray as asarray, tensor as tensor  # noqa: E402
from ._explain import explain as explain  # noqa: E402
from ._files import (  # noqa: E402
    load_metadata as load_metadata,
    load_safetensors as load_safetensors,
    save_safetensors as save_safetensors,
)
from ._metrics import Metrics as Metrics  # noqa: E402
from ._model import Model as Model  # noqa: E402
from ._run import Run as Run  # noqa: E402
from ._scan import scan as scan, unroll as unroll  # noqa: E402
from ._train import History as History, train as train  # noqa: E402
from . import optim as optim  # noqa: E402

setattr(Tensor, "__array_function__", _numpy.array_function)
setattr(Tensor, "_data", property(_numpy.masked_data))
setattr(DType, "dtype", property(_numpy.numpy_dtype))

# Compiled functions are pickled and copied by their names, as Python's are.
_copyreg.pickle(type(_reel.tanh), lambda f: f.__qualname__)  # type: ignore[arg-type]

for _path in _os.environ.get("REEL_PLUGINS", "").split(":"):
    try:
        if _path:
            _reel.load_plugin(_path)
    except Error as _e:
        raise ImportError(f"REEL_PLUGINS: {_e}") from None

f32, f64, c64, c128, i32, bool_ = DType.f32, DType.f64, DType.c64, DType.c128, DType.i32, DType.boolean
__version__ = "0.1.0"


if _typing.TYPE_CHECKING:
    from . import array_api as array_api, torch as torch
else:
    _ELSEWHERE = {  # names of other libraries
        "cat": "concat",
        "checkpoint": "scan(..., checkpoint_every=n)",
        "clip": "clamp",
        "concatenate": "concat",
        "detach": "stop_gradient",
        "gather": "take_along",
        "log_sigmoid": "-softplus(-x)",
        "logsigmoid": "-softplus(-x)",
        "topk": "top_k",
    }

    def __getattr__(name: str):
        if name in ("torch", "array_api"):  # only when it is asked for, as reel.torch imports PyTorch
            import importlib

            return importlib.import_module("." + name, __name__)
        hint = f". Hint: {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
