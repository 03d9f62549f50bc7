"""Gradients of functions of tensors."""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable

from . import _reel
from ._check import kind_of, shown
from ._reel import DType, Error, Tensor
from ._tree import flatten, flatten_like, places


def value_and_grad(f: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns f's value and its gradient with respect to the arguments at `argnums`.

    The arguments are tensors, or tuples, lists and dicts of tensors; the gradient has the same structure. f returns a
    scalar tensor of f32 or f64, with has_aux a pair of it and anything else: (value, aux), gradient. Convention for
    complex x: dL/dRe x + i dL/dIm x. Gradients of gradients, of any order, nest: grad(grad(f)). f computes in the thread
    that calls it: what other threads compute meanwhile counts as constant.
    Throws Error when the value is no scalar or an op on the way has no derivative.
    """
    numbers, single = _numbers(argnums)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        for n in numbers:
            if not -len(args) <= n < len(args):
                raise Error(f"[grad] argument {n} is asked for, but there are {len(args)}")
        if len({n % len(args) for n in numbers}) < len(numbers):
            raise Error(f"[grad] argnums: each argument once is expected, got {argnums}")
        wanted = {n: args[n] for n in numbers}
        xs, rebuild = flatten(wanted, "grad", "args{}")
        _refuse_integers("grad", xs, wanted, "an argument that argnums leaves out")
        extra: list = []

        def flat(leaves: list[Tensor]) -> list[Tensor]:
            given = list(args)
            for n, value in rebuild(leaves).items():
                given[n] = value
            result = f(*given, **kwargs)
            if has_aux:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise Error("[grad] with has_aux the function returns a pair (value, aux)")
                result, aux = result
                extra.append(aux)
            if not isinstance(result, Tensor):
                pair = isinstance(result, tuple) and not has_aux
                hint = ". Hint: has_aux=True, for a function that returns (value, anything else)" if pair else ""
                raise Error(f"[grad] the function must return a scalar tensor, got {kind_of(result)}{hint}")
            if result.dtype.name.startswith("c"):
                hint = "Hint: reel.real() or reel.abs()"
                raise Error(f"[grad] the function must return a real scalar, got a complex one. {hint}")
            return [result]

        values, gradients = _reel._value_and_grad(flat, xs)
        if values[0].dtype.name not in ("f32", "f64"):
            got = f"{values[0].dtype.name.removesuffix('ean')} {values[0].shape}, whose gradient would be 0"
            hint = "Hint: f32 or f64 on the whole way; argmax(), all() and comparisons have no derivative"
            raise Error(f"[grad] the function must return a real scalar, got {got}. {hint}")
        value = (values[0], extra[0]) if has_aux else values[0]
        gradient = tuple(rebuild(gradients).values())
        return value, gradient[0] if single else gradient

    return differentiated


def _refuse_integers(name: str, xs: list[Tensor], arguments: Any, hint: str) -> None:
    for i, x in enumerate(xs):
        if x.dtype in (DType.i32, DType.boolean):
            where = f"args{list(places(arguments))[i]} is {x.dtype.name.removesuffix('ean')} {x.shape}"
            raise Error(f"[{name}] {where}; only floating point has gradients. Hint: {hint}")


def _numbers(argnums: Any) -> tuple[tuple[int, ...], bool]:
    """The numbers of the arguments, and whether it is a single one."""
    try:
        return (operator.index(argnums),), True
    except TypeError:
        pass
    try:
        return tuple(operator.index(n) for n in argnums), False
    except TypeError:
        raise Error(f"[grad] argnums: an integer or a tuple of them is expected, got {shown(argnums)}") from None


def grad(f: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of f with respect to the arguments at `argnums`; see value_and_grad.

    With has_aux it returns (gradient, aux). What other threads compute for f counts as constant.
    """
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def vjp(f: Callable, *args: Any) -> tuple[Any, Callable]:
    """f(*args), and a function from cotangents of its results to a tuple of gradients of the arguments.

    That function can be called any number of times. Cotangents have the structure of the results, and a dict its keys,
    in any order; one that is None counts as zeros.
    """
    xs, rebuild = flatten(list(args), "vjp", "args{}")
    _refuse_integers("vjp", xs, list(args), "a function of the others: lambda x: f(x, i)")
    shape: list = []

    def flat(leaves: list[Tensor]) -> list[Tensor]:
        ys, rebuild_ys = flatten(f(*rebuild(leaves)), "vjp", "the result{}")
        shape.append(rebuild_ys)
        return ys

    pullback = _reel._Pullback(flat, xs)
    values = pullback.values

    def gradients(cotangents: Any) -> tuple:
        if len(values) == 1 and isinstance(cotangents, Tensor):
            return tuple(rebuild(pullback([cotangents])))
        given = flatten_like(cotangents, shape[0](values), "vjp", "the cotangent{}", zeros=True)
        return tuple(rebuild(pullback(given)))

    return shape[0](values), gradients


def check_grads(f: Callable, *args: Any, order: int = 2, tolerance: float = 1e-6, seed: int = 1) -> None:
    """Throws Error if a derivative of f at args is not what central differences give along random directions: the
    gradient and, with order 2, the gradient of its slope.

    args and results are tensors of f64 or c128, or tuples, lists and dicts of them; integers and booleans among them stay
    as they are. The message says which tensor of args it is, and the error relative to the size of the derivative; near
    a minimum, where it is about 0, to the slopes 1e-3 away. What differences lose by rounding is taken off first: 1e-11 of
    the sum of the magnitudes of the results.
    Differences across a kink of f, as relu has at 0, are no derivatives: keep args 1e-3 away from it.
    """
    xs, rebuild = flatten(list(args), "check_grads", "args{}")

    def flat(leaves: list[Tensor]) -> list[Tensor]:
        return flatten(f(*rebuild(leaves)), "check_grads", "the result{}")[0]

    _reel._check_grads(flat, xs, order, tolerance, seed)
