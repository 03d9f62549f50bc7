"""What becomes of a step on its way to kernels."""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable

from . import _reel
from ._check import flag, integer, number
from ._reel import Cell, Error, Explanation, Tensor
from ._scan import _flat

RUNS = 20  # of which a measured time is the median


def explain(
    step: Callable | Cell,
    init: Any = None,
    xs: Any = None,
    *,
    length: int | None = None,
    batch: int = 20,
    backward: bool = False,
    measure: bool = False,
    rate: float = 0,
) -> Explanation:
    """What becomes of a step: the loop after each pass, what it keeps for the gradient, computes, reads and writes, its
    fusion groups, kernel calls and buffers. str() of the result is a text; a notebook shows a page with graphs.

    explain(step, init, xs) takes what scan() takes; explain(cell) runs a cell of reel.cell() on `length` steps of a
    `batch`. `backward` explains the gradient, too; `measure` runs the step and shows what each group takes; `rate` is
    that of products in Gflop/s, for the bound. Throws Error as scan() does.
    """
    length = None if length is None else integer("[explain] length", length, 0, error=Error)
    batch = integer("[explain] batch", batch, 1, error=Error)
    backward, rate = flag("[explain] backward", backward, error=Error), number("[explain] rate", rate)
    runs = RUNS if flag("[explain] measure", measure, error=Error) else 0
    if isinstance(step, Cell):
        if init is not None or xs is not None:
            raise Error("[explain] a cell takes batch and length, not a state and xs")
        return _reel._explain_cell(step, batch, 200 if length is None else length, backward, runs, rate)
    flat, states, inputs, _, _ = _flat(step, init, xs, "explain")
    steps = length if length is not None else (inputs[0].shape[0] if inputs and inputs[0].shape else 0)
    name = getattr(step, "__name__", type(step).__name__)
    title = f"{'step' if name == '<lambda>' else name}: {steps} steps"
    return _reel._explain(flat, title, states, inputs, steps, _named(step), backward, runs, rate, _folders(step))


def _named(step: Callable) -> list[tuple[str, Tensor]]:
    """The tensors that the step sees by a name, also as values of a dict."""
    try:
        seen = inspect.getclosurevars(step)
    except TypeError:  # no function of Python
        return []
    out = []
    for name, value in {**seen.globals, **seen.nonlocals}.items():
        if isinstance(value, Tensor):
            out.append((name, value))
        elif isinstance(value, dict):
            out += [(str(key), v) for key, v in value.items() if isinstance(v, Tensor)]
    return out


def _folders(step: Callable) -> list[str]:
    """Where the lines of the step may be found."""
    try:
        return [os.path.dirname(os.path.abspath(inspect.getfile(step)))]
    except TypeError:
        return []
