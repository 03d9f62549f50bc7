"""Models: a stack of cells over time with a linear head, as the programs of Reel train them."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from . import _reel
from ._check import flag, integer, number, shown, text, warn_of_no_effect
from ._create import asarray
from ._files import load_trained, refuse_misfits, save_safetensors
from ._reel import DType, Error, SettingError, Tensor
from ._restore import assign

_MOST_LAYERS = 1000  # as in the programs


def layers_of(cell: str | Sequence[str], hidden: int | str | Sequence[int], layers: int) -> list[tuple[str, int]]:
    """The cell and the units of each layer, from bottom to top; `cell` and `hidden` are one for all, or one for each."""
    layers = integer("layers", layers, 1, _MOST_LAYERS)
    try:
        cells = cell.split(",") if isinstance(cell, str) else list(cell)
    except TypeError:
        cells = [cell]
    if not all(isinstance(name, str) for name in cells):
        raise SettingError(f"cell: a name or a list of names is needed, got {shown(cell)}")
    try:
        one = hasattr(hidden, "__index__")
        sizes = hidden.split(",") if isinstance(hidden, str) else [hidden] if one else list(hidden)  # type: ignore
    except TypeError:
        sizes = [hidden]
    lists = {len(several) for several in (cells, sizes) if len(several) != 1}
    if 0 in lists or len(lists) > 1:
        raise SettingError(f"hidden: {len(sizes)} sizes for {len(cells)} cells. Hint: one for each, or one for all")
    count = integer("layers", lists.pop() if lists else layers, 1, _MOST_LAYERS)
    if layers not in (1, count):
        raise SettingError(f"layers: cell and hidden have {count} layers, got {layers}. Hint: leave layers out")
    try:
        sizes = [int(n) if isinstance(n, str) else n for n in sizes]
    except ValueError:
        raise SettingError(f"hidden: integers are needed, got {hidden!r}") from None
    whole = [integer("hidden", n, 1) for n in sizes]
    return list(zip(cells * count if len(cells) == 1 else cells, whole * count if len(whole) == 1 else whole))


def settings_by_cell(cells: Sequence[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of each kind of cell. A name without its cell belongs to the only kind."""
    kinds = list(dict.fromkeys(cells))
    out: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    for name, value in settings.items():
        kind, dot, rest = name.partition(".")
        if dot and kind in out:
            if kinds == [kind] and rest in settings:
                raise SettingError(f"{rest}: is given twice, as {rest} and as {name}. Hint: leave one out")
            out[kind][rest] = value
        elif dot:
            raise SettingError(f"{name}: is a setting of {kind}, and the model has {', '.join(kinds)}")
        elif len(kinds) == 1:
            out[kinds[0]][name] = value
        else:
            raise SettingError(f"{name}: is a setting of one of {', '.join(kinds)}. Hint: \"{kinds[0]}.{name}\"")
    return out


class Model:
    """Symbols or numbers in, `layers` cells over time, and a linear head.

    vocabulary: how many different symbols there are; the input is i32 [T, B]. Or inputs: how many numbers each step
    has; the input is [T, B, inputs]. outputs: how many numbers come out, at every step [T, B, outputs], or with
    every_step=False after the last one [B, outputs]. cell, hidden and **settings are those of reel.cell(); where a
    setting has the name of an argument here, write it with the cell's: **{"srnn.layers": 2}. cell=["gru", "srnn"] and
    hidden=[64, 128] make a layer of each, from bottom to top, with settings like "gru.biases". input and
    embedding are for symbols: "embedding", trained, of that width (0: as in the cell's paper), or "one-hot". head_init
    says how the head starts: "linear" as torch.nn.Linear, "glorot-normal" or "glorot-uniform" with bias 0, or "eunn",
    uniform in +-sqrt(6 / (inputs of the first cell + outputs)) with bias 0.01. dropout is between layers, in training
    only. variational_dropout drops the same values at all steps. layer_norm normalises the input of each layer above
    the first, and with residual each of these adds its input to its output. A bidirectional model also reads each
    sequence from its end, in every layer. zoneout is the share of a state that keeps its value at a step of training;
    outside of training states move to the mean. checkpoint_every=n keeps only every n-th state for the gradient, to
    save memory.
    Parameters have the names and, for a seed, the initial values that the programs give them.
    Throws SettingError for a value that does not fit. Warns of an option that has no effect beside others.
    """

    def __init__(
        self,
        *,
        outputs: int,
        inputs: int = 0,
        vocabulary: int = 0,
        cell: str | Sequence[str] = "srnn",
        hidden: int | Sequence[int] = 128,
        layers: int = 1,
        every_step: bool = True,
        dropout: float = 0,
        input: str = "embedding",
        embedding: int = 0,
        head_init: str = "linear",
        bidirectional: bool = False,
        layer_norm: bool = False,
        residual: bool = False,
        variational_dropout: bool = False,
        zoneout: float = 0,
        checkpoint_every: int = 0,
        seed: int = 1,
        dtype: Any = "f32",
        **settings: Any,
    ) -> None:
        vocabulary, inputs = integer("vocabulary", vocabulary, 0), integer("inputs", inputs, 0)
        outputs, embedding = integer("outputs", outputs, 1), integer("embedding", embedding, 0)
        checkpoint_every = integer("checkpoint_every", checkpoint_every, 0)
        seed = integer("seed", seed, 0, 2**64 - 1)
        dropout, zoneout = number("dropout", dropout), number("zoneout", zoneout)
        every_step, bidirectional = flag("every_step", every_step), flag("bidirectional", bidirectional)
        layer_norm, residual = flag("layer_norm", layer_norm), flag("residual", residual)
        variational_dropout = flag("variational_dropout", variational_dropout)
        input, head_init = text("input", input), text("head_init", head_init)
        stack = layers_of(cell, hidden, layers)
        cells, sizes = [c for c, _ in stack], [n for _, n in stack]
        self._settings = settings_by_cell(cells, settings)
        self._arguments = (
            vocabulary,
            inputs,
            outputs,
            every_step,
            [(c, n, self._settings[c]) for c, n in stack],
            input,
            embedding,
            head_init,
            bidirectional,
            layer_norm,
            residual,
            dropout,
            variational_dropout,
            zoneout,
            checkpoint_every,
            seed,
            dtype,
        )
        self._model = _reel._model(*self._arguments)
        several, symbols = len(stack) > 1, vocabulary > 0
        one, numbers = "it works between layers, and there is one. Hint: layers=2", "the inputs are numbers"
        idle = "dropout is 0" if several else one
        options = (
            ("layer_norm", layer_norm, False, several, one),
            ("residual", residual, False, several, one),
            ("dropout", dropout, 0, several, one),
            ("variational_dropout", variational_dropout, False, several and dropout > 0, idle),
            ("input", input, "embedding", symbols, numbers),
            ("embedding", embedding, 0, symbols and input == "embedding", "input is one-hot" if symbols else numbers),
        )
        unread = (
            (name if len(self._settings) == 1 else f"{c}.{name}", own[name], None, False, why)
            for c, own in self._settings.items()
            for name, why in _reel._without_effect(c, own)
        )
        warn_of_no_effect([*options, *unread], 2)
        self._arguments = (*self._arguments[:-1], self.dtype.name)
        self.config: dict[str, Any] = {
            **({"vocabulary": vocabulary} if vocabulary else {"inputs": inputs}),
            "outputs": outputs,
            "every-step": every_step,
            "cell": cells[0] if len(self._settings) == 1 else ",".join(cells),
            "hidden": sizes[0] if len(set(sizes)) == 1 else ",".join(map(str, sizes)),
            "layers": len(stack),
            "zoneout": zoneout,
            "dropout": dropout,
            "input": input,
            "embedding": embedding,
            "head-init": head_init,
            "bidirectional": bidirectional,
            "layer-norm": layer_norm,
            "residual": residual,
            "variational-dropout": variational_dropout,
            "checkpoint-every": checkpoint_every,
            "seed": seed,
            "dtype": "f64" if self.dtype == DType.f64 else "f32",
        }
        self.settings = (
            self._settings[cells[0]]
            if len(self._settings) == 1
            else {f"{c}.{name}": value for c, own in self._settings.items() for name, value in own.items()}
        )

    def __call__(
        self,
        x: Any,
        state: Sequence[Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        step: int | None = None,
        *,
        lengths: Any = None,
    ) -> Any:
        """Outputs [T, B, outputs], or [B, outputs] with every_step=False, for x i32 [T, B] or [T, B, inputs].

        With `state`, which an earlier call has returned, or () to start fresh: (outputs, the last state); bidirectional
        models and cells without states read whole sequences and refuse it. `parameters` replace the model's own, by
        name, for gradients with respect to them. `step` is the number of the training step: with it there is dropout,
        which is a function of the model's seed and of this number. With `lengths`, integers [B], sequence b has
        lengths[b] steps and the rest is padding, over which states hold still: the last output is that of each
        sequence's own end.
        """
        states = None if state is None else _states(state)
        number = None if step is None else integer("[model] step", step, 0, error=Error)
        ends = None if lengths is None else asarray(lengths)
        y, last = self._model.call(asarray(x), states, _by_name(parameters), number, ends)
        return y if state is None else (y, last)

    def parameters(self) -> dict[str, Tensor]:
        """The trained parameters by name. Tensor.assign(), load() and optimisers change them."""
        return self._model.parameters(self)

    def constants(self) -> dict[str, Tensor]:
        """The parameters that are not trained, such as permutations; files have them, too."""
        return self._model.constants()

    def initial(self, batch: int) -> list[Tensor]:
        """The state before the first step, of all cells from bottom to top; each tensor is [batch, width]."""
        return self._model.initial(integer("[model] batch", batch, 0, error=Error))

    def penalty(self, parameters: Mapping[str, Any] | None = None) -> Tensor | None:
        """The scalar that the cells add to the loss in training; None for cells that add nothing."""
        return self._model.penalty(_by_name(parameters))

    def updated(self) -> None:
        """Projects the parameters onto their constraints. Optimisers call it; call it after changes of your own."""
        self._model.updated()

    @property
    def count(self) -> int:
        """How many real numbers are trained."""
        return self._model.count

    @property
    def dtype(self) -> DType:
        """The dtype of outputs and of real parameters."""
        return self._model.dtype

    def load(self, path: str | os.PathLike) -> Model:
        """Takes the parameters from a safetensors file: one of save(), or a run's best or checkpoint file.

        Throws Error with the path and what does not fit, or where the run has done no update; then nothing has changed.
        """
        self._take(load_trained(path), os.fspath(path))
        return self

    def save(self, path: str | os.PathLike) -> None:
        """Writes the parameters to a safetensors file, which is replaced as a whole."""
        save_safetensors(path, {**self.parameters(), **self.constants()})

    def _take(self, tensors: Mapping[str, Tensor], path: str) -> None:
        own = {**self.parameters(), **self.constants()}
        refuse_misfits(path, tensors, own, "the model", "print(model) shows its parameters")
        assign(own, tensors)

    def __reduce__(self) -> tuple:
        """The parameters are there before the attributes of a class of users, such as an optimiser of them."""
        return _unfilled, (type(self), self._arguments), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "_model"}
        return {**state, "_values": {**self.parameters(), **self.constants()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        values = state.pop("_values")
        self.__dict__.update(state)
        if "_model" not in self.__dict__:  # pickled before there was __reduce__
            self._model = _reel._model(*self._arguments)
        assign({**self.parameters(), **self.constants()}, values)

    def __repr__(self) -> str:
        return self._model.table().rstrip("\n")


def _unfilled(kind: type[Model], arguments: tuple) -> Model:
    """A model that lacks all but its parameters, which have their initial values."""
    made = kind.__new__(kind)
    made._model = _reel._model(*arguments)
    return made


def _states(given: Any) -> list[Tensor]:
    try:
        parts = list(given)
    except TypeError:
        raise Error(f"[model] state: a list of tensors is expected, got {shown(given)}") from None
    return [_tensor(f"state[{i}]", part) for i, part in enumerate(parts)]


def _by_name(given: Any) -> dict[str, Tensor] | None:
    """What is given for parameters of the model."""
    if given is None:
        return None
    try:
        values = dict(given)
    except (TypeError, ValueError):
        raise Error(f"[model] parameters: a dict of tensors by name is expected, got {shown(given)}") from None
    for name in values:
        if not isinstance(name, str):
            raise Error(f"[model] parameters: their names are strings, got {shown(name)}")
    return {name: _tensor(f'parameters["{name}"]', value) for name, value in values.items()}


def _tensor(what: str, given: Any) -> Tensor:
    """A tensor, or an array that stands for one."""
    if not any(hasattr(given, name) for name in ("__array__", "__dlpack__")):
        raise Error(f"[model] {what}: a tensor is expected, got {shown(given)}")
    return asarray(given)
