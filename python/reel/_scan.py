"""Loops over time with a step written in Python."""

from __future__ import annotations

import operator
from typing import Any, Callable

from . import _reel
from ._check import flag, kind_of
from ._reel import Error, Tensor
from ._tree import flatten, flatten_like


def scan(
    step: Callable,
    init: Any,
    xs: Any = None,
    *,
    reverse: bool = False,
    length: int | None = None,
    checkpoint_every: int = 0,
) -> tuple[Any, Any]:
    """Runs state, y = step(state, x) over the leading axis of xs, and returns the last state and all y, stacked.

    init, xs, the state and y are tensors, or tuples, lists and dicts of tensors; the state keeps its structure, dtypes
    and shapes, and a dict its keys, in any order. The step is called once, with tensors that have no values, and all
    time steps then run without Python. Tensors that it uses besides its arguments, such as weights, have gradients,
    too. `length` says how many steps to run when there are no xs; `reverse` runs from the last one to the first;
    `checkpoint_every=n` saves only every n-th state for the gradient. Throws Error when xs differ in length or the step
    looks at a value.
    """
    return _run("scan", _reel._scan, step, init, xs, reverse, length, checkpoint_every)


def unroll(
    step: Callable, init: Any, xs: Any = None, *, reverse: bool = False, length: int | None = None
) -> tuple[Any, Any]:
    """The same result as scan() by a plain loop, which calls the step for each time step, with values."""
    return _run("unroll", _unrolled, step, init, xs, reverse, length, 0)


def _unrolled(*args: Any) -> tuple[list[Tensor], list[Tensor]]:
    """The last states are copies, as those of scan() are: a step may return its state, or a tensor from outside."""
    last, ys = _reel._unroll(*args)
    return [_reel.stack([x])[0] for x in last], ys


def _flat(step: Callable, init: Any, xs: Any, name: str) -> tuple[Callable, list, list, Callable, list[Callable]]:
    """The step on lists of tensors, these lists, and what gives states and outputs their structure again; that of the
    outputs is known once the step has been called."""
    states, rebuild_state = flatten(init, name, "init{}")
    inputs, rebuild_x = flatten(xs, name, "xs{}")
    rebuild_y: list[Callable] = []
    first_y: list = []  # of unroll(), which calls the step again

    def flat(state: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        result = step(rebuild_state(state), rebuild_x(x))
        if not isinstance(result, tuple) or len(result) != 2:
            got = f"a tuple of {len(result)}" if isinstance(result, tuple) else f"a {kind_of(result)}"
            hint = ". Hint: a tuple, (state, y)" if isinstance(result, list) else ""
            raise Error(f"[{name}] the step must return a pair (state, y); y may be None; got {got}{hint}")
        after = flatten_like(result[0], init, name, "the state{} that the step returns")
        if rebuild_y:
            return after, flatten_like(result[1], first_y[0], name, "y{}, as at the first time step,")
        ys, rebuild = flatten(result[1], name, "y{}")
        rebuild_y.append(rebuild)
        first_y.append(result[1])
        return after, ys

    return flat, states, inputs, rebuild_state, rebuild_y


def _steps(what: str, name: str, n: Any) -> int:
    try:
        if isinstance(n, bool):
            raise TypeError
        n = operator.index(n)
    except TypeError:
        raise Error(f"[{what}] {name} is an integer, got {n!r}") from None
    if n < 0:
        raise Error(f"[{what}] {name} is 0 or more steps, got {n}")
    return n


def _run(
    name: str,
    runner: Callable,
    step: Callable,
    init: Any,
    xs: Any,
    reverse: bool,
    length: int | None,
    checkpoint_every: int,
) -> tuple[Any, Any]:
    every = _steps(name, "checkpoint_every", checkpoint_every)
    backwards = flag(f"[{name}] reverse", reverse, error=Error)
    steps = -1 if length is None else _steps(name, "length", length)
    flat, states, inputs, rebuild_state, rebuild_y = _flat(step, init, xs, name)
    last, ys = runner(flat, states, inputs, backwards, steps, every)
    return rebuild_state(last), rebuild_y[0](ys) if rebuild_y else None
