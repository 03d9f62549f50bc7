"""Reel's scan in PyTorch: functions and modules whose forward and backward are Reel's, on the CPU. What they take is not
copied, and what they return only where something else holds it, as the tape of a gradient does.

Gradients of any order flow: the backward pass is a function of Reel, too, and is differentiated like the forward pass.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from typing import Any, Callable, Sequence

import torch as _torch

from . import _reel
from ._reel import Error, Tensor
from ._restore import cell_arguments
from ._scan import scan as _scan_over_time
from ._tree import by_name, flatten


def to_reel(x: _torch.Tensor) -> Tensor:
    """A Reel tensor in the memory of a PyTorch tensor on the CPU; a copy if that is not contiguous."""
    if x.device.type != "cpu":
        raise Error(f"[torch] tensors on the CPU are expected, got one on {x.device}. Hint: x.cpu()")
    return _reel.from_dlpack(x.detach().resolve_conj().resolve_neg().contiguous())


def from_reel(x: Tensor) -> _torch.Tensor:
    """A PyTorch tensor in the memory of a Reel tensor."""
    return _torch.from_dlpack(x)


def _own(ys: Sequence[Tensor]) -> list[_torch.Tensor]:
    """PyTorch tensors in memory of their own, as PyTorch changes them in place: what a tape, an argument, f or another
    of ys holds, too, is copied."""
    holders = Counter(y._storage for y in ys)
    out = []
    for y in ys:
        out.append(from_reel(y).clone() if y._owners > holders[y._storage] else from_reel(y))
        holders[y._storage] -= 1
    return out


class _Call(_torch.autograd.Function):
    """Calls a function of Reel, which takes and returns lists of tensors; `record` makes the _Pullback of such a call."""

    @staticmethod
    def forward(ctx: Any, f: Callable | None, record: Callable, *xs: _torch.Tensor) -> tuple[_torch.Tensor, ...]:
        given = [to_reel(x) for x in xs]
        if any(ctx.needs_input_grad):
            ctx.pullback = record(given)
            values = ctx.pullback.values
        else:
            values = _reel._called(f, given)
        ctx.save_for_backward(*xs)
        ctx.set_materialize_grads(False)
        ys = tuple(_own(values))
        ctx.mark_non_differentiable(*[y for y in ys if not (y.is_floating_point() or y.is_complex())])
        return ys

    @staticmethod
    def backward(ctx: Any, *dys: _torch.Tensor | None) -> tuple[_torch.Tensor | None, ...]:
        xs = ctx.saved_tensors  # throws if one was changed in place
        pullback = ctx.pullback
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad[2:]) if needed]
        if _torch.is_grad_enabled():  # create_graph: the gradient is a function of xs and dys
            known = [dy for dy in dys if dy is not None]

            def record(given: list[Tensor]) -> Any:
                seeds = iter(given[len(xs) :])
                return _reel._Pullback(pullback, [None if dy is None else next(seeds) for dy in dys], wanted)

            dxs = _Call.apply(None, record, *xs, *known)
        else:
            seeds = [None if dy is None else to_reel(dy) for dy in dys]
            dxs = _own(pullback(seeds, wanted))
        out: list[_torch.Tensor | None] = [None] * (len(xs) + 2)
        for i, dx in zip(wanted, dxs):
            out[i + 2] = dx
        return tuple(out)


def _apply(f: Callable, xs: Sequence[_torch.Tensor]) -> tuple[_torch.Tensor, ...]:
    return _Call.apply(f, functools.partial(_reel._Pullback, f), *xs)


_is_compiling = getattr(getattr(_torch, "compiler", None), "is_compiling", lambda: False)  # PyTorch 2.0 has none


def _uncompiled(f: Callable) -> Callable:
    """f, which torch.compile calls as it is: what it would trace is not PyTorch's."""

    @functools.wraps(f)
    def called(*arguments: Any) -> Any:
        if _is_compiling():
            return _torch._disable_dynamo(f)(*arguments)
        return f(*arguments)

    return called


@_uncompiled
def call(f: Callable[[list[Tensor]], Sequence[Tensor]], *xs: _torch.Tensor) -> tuple[_torch.Tensor, ...]:
    """f([tensors of Reel]) -> [tensors of Reel], called with PyTorch's tensors, with gradients of any order."""
    return _apply(lambda given: list(f(given)), xs)


def function(f: Callable) -> Callable:
    """f, a function of Reel's tensors, as a function of PyTorch's, with gradients of any order.

    Arguments and results are tensors, or tuples, lists and dicts of tensors.
    """

    @_uncompiled
    @functools.wraps(f)
    def called(*arguments: Any) -> Any:
        xs, rebuild = flatten(list(arguments), "torch", "args{}", _torch.Tensor)
        rebuilds: list[Callable] = []

        def flat(values: list[Tensor]) -> list[Tensor]:
            ys, rebuild_ys = flatten(f(*rebuild(values)), "torch", "the result{}")
            rebuilds.append(rebuild_ys)
            return ys

        ys = _apply(flat, xs)
        return rebuilds[0](ys)

    return called


class Scan(_torch.nn.Module):
    """A step of Reel as a module: wrap() makes one."""

    def __init__(
        self,
        step: Callable,
        parameters: Any = None,
        *,
        reverse: bool = False,
        checkpoint_every: int = 0,
    ) -> None:
        super().__init__()
        self._step, self._reverse, self._checkpoint_every = step, reverse, checkpoint_every
        tree = {} if parameters is None else parameters
        if isinstance(tree, _torch.nn.ParameterDict):
            tree = dict(tree)
        names = list(by_name(tree, "torch", "parameters: "))
        values, rebuild = flatten(tree, "torch", "parameters{}", _torch.Tensor)
        self._names = rebuild(names)
        for name, value in zip(names, values):
            _register(self, name, value if isinstance(value, _torch.nn.Parameter) else _torch.nn.Parameter(value))

    def forward(self, xs: Any, state: Any) -> tuple[Any, Any]:
        """xs [T, ...] and the first state -> (outputs [T, ...], last state); tensors, or tuples or dicts of tensors."""
        names, rebuild = flatten(self._names, "torch", "parameters{}", str)
        weights = rebuild([operator.attrgetter(name)(self) for name in names])

        def whole(xs: Any, state: Any, weights: Any) -> tuple[Any, Any]:
            def step(carried: Any, x_t: Any) -> tuple[Any, Any]:
                after, y = self._step(carried, x_t, *([weights] if weights else []))
                return after, y if isinstance(y, (Tensor, dict)) else tuple(y or ())

            last, ys = _scan_over_time(step, state, xs, reverse=self._reverse, checkpoint_every=self._checkpoint_every)
            return ys, last

        xs, state = (x if isinstance(x, (_torch.Tensor, dict)) else tuple(x) for x in (xs, state))
        return function(whole)(xs, state, weights)


def _register(module: _torch.nn.Module, name: str, value: _torch.nn.Parameter) -> None:
    """Makes a parameter of this name, in modules within the module where it has dots, as PyTorch allows none."""
    *path, last = name.split(".")
    try:
        for part in path:
            if part not in module._modules:
                module.add_module(part, _torch.nn.Module())
            module = module._modules[part]  # type: ignore[assignment]
        module.register_parameter(last, value)
    except KeyError as e:
        raise Error(f"[torch] PyTorch cannot name a parameter {name}: {e.args[0]}. Hint: another name") from None


def wrap(
    step: Callable,
    parameters: Any = None,
    *,
    reverse: bool = False,
    checkpoint_every: int = 0,
) -> Scan:
    """A module that runs state, y = step(state, x) over time, as reel.scan does.

    With `parameters`, a dict of PyTorch tensors, which may be nested, with lists and tuples, the step has a third
    argument, the same with Reel's tensors. They become parameters of the module, or of modules within it: those in
    "layers" of module.layers. state_dict() calls them as reel.optim does: "layers.0.w". module(xs, state) returns the
    outputs and the last state.
    """
    return Scan(step, parameters, reverse=reverse, checkpoint_every=checkpoint_every)


class Cell(_torch.nn.Module):
    """A cell of Reel over a whole sequence, with parameters of PyTorch: Cell("srnn", 2, 128, width=16).

    cells() of the package lists names and settings. The parameters share the memory of the cell's, so optimisers of
    PyTorch train them; call updated() after each step of a cell whose parameters have constraints.
    """

    def __init__(
        self,
        name: str,
        input_size: int,
        hidden_size: int,
        *,
        seed: int = 1,
        dtype: _torch.dtype = _torch.float32,
        checkpoint_every: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__()
        self._checkpoint_every = checkpoint_every
        self._take(_reel.cell(name, input_size, hidden_size, seed, dtype, **settings))
        for key in self.cell.parameters():
            self.register_parameter(_plain(key), _torch.nn.Parameter(self._own[key]))
        for key in self.cell.constants():
            self.register_buffer(_plain(key), self._own[key])

    def _take(self, cell: Any) -> None:
        """Sets the cell. Its tensors, as PyTorch's, are what the module's parameters and buffers are at first."""
        self.cell = cell
        self._own = {key: from_reel(x) for key, x in (cell.parameters() | cell.constants()).items()}

    def _match(self) -> None:
        """Makes the cell again when the parameters have another precision than it has, as after double()."""
        precisions = {_PRECISIONS.get(p.dtype, str(p.dtype)) for p in self.parameters()}
        if precisions == {self.cell.dtype.name}:
            return
        if len(precisions) != 1 or not precisions <= {"f32", "f64"}:
            found = ", ".join(dict.fromkeys(str(p.dtype) for p in self.parameters()))
            raise Error(
                f"[torch] the parameters of {self.cell.name} must be of one precision, f32 or f64, got {found}. "
                "Hint: Cell(..., dtype=torch.float64); double() leaves complex parameters as they are"
            )
        name, i, n, seed, _, settings, _ = cell_arguments(self.cell)
        self._take(_reel.cell(name, i, n, seed, precisions.pop(), **settings))
        with _torch.no_grad():
            for key, own in self._own.items():
                own.copy_(getattr(self, _plain(key)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_own"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._take(self.cell)
        with _torch.no_grad():
            for key, own in self._own.items():  # the memory is shared again
                x = getattr(self, _plain(key))
                if (x.dtype, x.device) != (own.dtype, own.device):
                    continue
                own.copy_(x)
                if isinstance(x, _torch.nn.Parameter):
                    x.data = own
                else:
                    self._buffers[_plain(key)] = own

    def forward(
        self,
        xs: _torch.Tensor,
        state: Sequence[_torch.Tensor] | None = None,
        *,
        table: _torch.Tensor | None = None,
        lengths: _torch.Tensor | Sequence[int] | None = None,
        every_step: bool = True,
    ) -> tuple[_torch.Tensor, tuple[_torch.Tensor, ...]]:
        """xs [T, B, input_size] -> outputs [T, B, output_size] and the last state, a tuple of tensors [B, ...].

        With a table [symbols, input_size], as the weight of nn.Embedding, xs are symbols [T, B] that index its rows.
        This is faster than looking them up first. With lengths, integers [B], sequence b has lengths[b] steps and the
        rest is padding, over which its state holds still. every_step=False gives the last output alone,
        [B, output_size].
        """
        options = {"every_step": every_step, "checkpoint_every": self._checkpoint_every}

        def whole(xs: Tensor, state: Any, table: Any, ends: Any, parameters: dict[str, Tensor]) -> tuple[Any, Any]:
            return self.cell.run(xs, state, parameters, table=table, lengths=ends, **options)

        ends = None if lengths is None else _counts(_torch.as_tensor(lengths))
        if table is not None:
            xs = _symbols(xs, table)
        hs, last = function(whole)(xs, None if state is None else list(state), table, ends, self.by_name())
        return hs, tuple(last)

    def by_name(self) -> dict[str, _torch.Tensor]:
        """The parameters by Reel's names, as cell.run(parameters=...) takes them in a function of Reel's tensors.

        Buffers are among them where they are not the cell's own any more, as after load_state_dict(assign=True).
        """
        self._match()
        given = {key: getattr(self, _plain(key)) for key in self._own}
        return {key: x for key, x in given.items() if isinstance(x, _torch.nn.Parameter) or x is not self._own[key]}

    def updated(self) -> None:
        """Projects the parameters onto their constraints."""
        self._match()
        pairs = [(own, getattr(self, _plain(key))) for key, own in self._own.items()]
        apart = [(own, x) for own, x in pairs if own.data_ptr() != x.data_ptr()]
        with _torch.no_grad():
            for own, x in apart:
                own.copy_(x)
            self.cell.updated()
            for own, x in apart:
                x.copy_(own)

    def load_from(self, module: _torch.nn.Module | dict[str, _torch.Tensor], layer: int = 0) -> None:
        """Takes the parameters of a layer of nn.RNN, nn.LSTM or nn.GRU, or of its state dict, with biases.

        For the cells "rnn", "lstm" and "gru" with the settings they have by default. The activation of "rnn" must be the
        module's nonlinearity, which a state dict does not tell. A bidirectional layer needs two cells, and one state
        dict for each.
        """
        given = module if isinstance(module, dict) else module.state_dict()
        if self.cell.name not in _LAYOUTS:
            raise Error(f"[load_from] the cell is one of {', '.join(_LAYOUTS)}, got {self.cell.name}")
        if f"weight_ih_l{layer}_reverse" in given:
            raise Error(
                "[load_from] the layer is bidirectional, a cell has one direction. Hint: a cell for each, and the state "
                "dict without the names that end in _reverse, or of these alone, without this ending"
            )
        theirs = getattr(module, "nonlinearity", None)
        own = self.cell._settings.get("activation", "tanh")
        if self.cell.name == "rnn" and theirs not in (None, own):
            raise Error(f"[load_from] the cell has {own}, nn.RNN has {theirs}. Hint: Cell(..., activation={theirs!r})")
        prefixes, gates = _LAYOUTS[self.cell.name]
        wanted = {}
        for prefix, theirs in zip(prefixes, ("weight_ih", "weight_hh", "bias_ih", "bias_hh")):
            key = f"{theirs}_l{layer}"
            if key not in given:
                raise Error(f"[load_from] there is no {key}; known are {', '.join(given)}")
            if given[key].shape[0] != len(gates) * self.cell.hidden_size:
                raise Error(
                    f"[load_from] {key} is {tuple(given[key].shape)}; {len(gates)} gates of "
                    f"{self.cell.hidden_size} units are expected"
                )
            for gate, part in zip(gates, given[key].chunk(len(gates))):
                wanted[prefix + gate] = part
        own = {key: _plain(key) for key in self.cell.parameters()}
        if wanted.keys() != own.keys():
            raise Error(f"[load_from] the cell has the parameters {', '.join(own)}; PyTorch's have {', '.join(wanted)}")
        with _torch.no_grad():
            for key, value in wanted.items():
                parameter = getattr(self, own[key])
                if parameter.shape != value.shape:
                    raise Error(f"[load_from] {key} is {tuple(parameter.shape)}, got {tuple(value.shape)}")
                parameter.copy_(value)

    def extra_repr(self) -> str:
        return f"{self.cell.name}, input_size={self.cell.input_size}, hidden_size={self.cell.hidden_size}"


def _plain(name: str) -> str:
    """A parameter's name in PyTorch, where it has no dots."""
    return name.replace(".", "_")


def _symbols(xs: _torch.Tensor, table: _torch.Tensor) -> _torch.Tensor:
    """Symbols of any integer type as Reel's, which are i32."""
    if xs.is_floating_point() or xs.is_complex() or xs.dtype == _torch.bool:
        raise Error(f"[torch] with a table the input must be symbols, integers [T, B], got {xs.dtype}")
    if xs.dtype != _torch.int32 and xs.numel() > 0:
        low, high = (int(x) for x in xs.aminmax())
        if low < 0 or high >= len(table):
            raise Error(f"[torch] symbols from 0 to {len(table) - 1} index the table, got {low} to {high}")
    return xs.to(_torch.int32)


def _counts(lengths: _torch.Tensor) -> _torch.Tensor:
    """Lengths of any integer type as Reel's, which are i32."""
    if lengths.numel() == 0:
        return lengths.to(_torch.int32)
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == _torch.bool:
        raise Error(f"[torch] lengths must be integers [B], got {lengths.dtype}. Hint: lengths.int() drops fractions")
    ends = lengths.to(_torch.int32)
    if (ends != lengths).any():
        raise Error(f"[torch] lengths are i32, below {2**31}, got {int(lengths[ends != lengths][0])}")
    return ends


# The precision that a cell with parameters of this dtype has.
_PRECISIONS = {_torch.float32: "f32", _torch.complex64: "f32", _torch.float64: "f64", _torch.complex128: "f64"}

# Reel's names of PyTorch's four parameters, and of the gates in PyTorch's order.
_LAYOUTS = {
    "rnn": (("U", "W", "b", "b2"), ("",)),
    "lstm": (("W", "R", "b", "b2"), ("_i", "_f", "_g", "_o")),
    "gru": (("U", "W", "b", "b2"), ("_r", "_z", "_c")),
}
