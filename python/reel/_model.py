"""Models: a stack of cells over time with a linear head, as the programs of Reel train them."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from . import _reel
from ._create import asarray
from ._files import load_safetensors, save_safetensors
from ._reel import DType, Error, Tensor


class Model:
    """Symbols or numbers in, `layers` cells over time, and a linear head.

    vocabulary: how many different symbols there are; the input is i32 [T, B]. Or inputs: how many numbers each step
    has; the input is [T, B, inputs]. outputs: how many numbers come out, at every step [T, B, outputs], or with
    every_step=False after the last one [B, outputs]. cell, hidden and **settings are those of reel.cell(); where a
    setting has the name of an argument here, write it with the cell's: **{"srnn.layers": 2}. input and
    embedding are for symbols: "embedding", trained, of that width (0: as in the cell's paper), or "one-hot". dropout is
    between layers, in training only. variational_dropout drops the same values at all steps. layer_norm normalises the
    input of each layer above the first, and with residual each of these adds its input to its output. A bidirectional
    model also reads each sequence from its end, in every layer. checkpoint_every=n keeps only every n-th state for the
    gradient, to save memory.
    Parameters have the names and, for a seed, the initial values that the programs give them.
    Throws SettingError for a value that does not fit.
    """

    def __init__(
        self,
        *,
        outputs: int,
        inputs: int = 0,
        vocabulary: int = 0,
        cell: str = "srnn",
        hidden: int = 128,
        layers: int = 1,
        every_step: bool = True,
        dropout: float = 0,
        input: str = "embedding",
        embedding: int = 0,
        bidirectional: bool = False,
        layer_norm: bool = False,
        residual: bool = False,
        variational_dropout: bool = False,
        checkpoint_every: int = 0,
        seed: int = 1,
        dtype: Any = "f32",
        **settings: Any,
    ) -> None:
        self._model = _reel._model(
            vocabulary,
            inputs,
            outputs,
            every_step,
            cell,
            hidden,
            layers,
            input,
            embedding,
            bidirectional,
            layer_norm,
            residual,
            dropout,
            variational_dropout,
            checkpoint_every,
            seed,
            dtype,
            **settings,
        )
        self.config: dict[str, Any] = {
            **({"vocabulary": vocabulary} if vocabulary else {"inputs": inputs}),
            "outputs": outputs,
            "every-step": every_step,
            "cell": cell,
            "hidden": hidden,
            "layers": layers,
            "dropout": dropout,
            "input": input,
            "embedding": embedding,
            "bidirectional": bidirectional,
            "layer-norm": layer_norm,
            "residual": residual,
            "variational-dropout": variational_dropout,
            "checkpoint-every": checkpoint_every,
            "seed": seed,
            "dtype": "f64" if self.dtype == DType.f64 else "f32",
        }
        self.settings = {name.removeprefix(cell + "."): value for name, value in settings.items()}

    def __call__(
        self,
        x: Any,
        state: Sequence[Tensor] | None = None,
        parameters: Mapping[str, Tensor] | None = None,
        step: int | None = None,
    ) -> Any:
        """Outputs [T, B, outputs], or [B, outputs] with every_step=False, for x i32 [T, B] or [T, B, inputs].

        With `state`, which an earlier call has returned, or () to start fresh: (outputs, the last state). `parameters`
        replace the model's own, by name, for gradients with respect to them. `step` is the number of the training step:
        with it there is dropout, which is a function of the model's seed and of this number.
        """
        values = None if parameters is None else dict(parameters)
        y, last = self._model.call(asarray(x), list(state or ()), values, step)
        return y if state is None else (y, last)

    def parameters(self) -> dict[str, Tensor]:
        """The trained parameters by name. Tensor.assign(), load() and optimisers change them."""
        return self._model.parameters()

    def constants(self) -> dict[str, Tensor]:
        """The parameters that are not trained, such as permutations; files have them, too."""
        return self._model.constants()

    def initial(self, batch: int) -> list[Tensor]:
        """The state before the first step, of all cells from bottom to top; each tensor is [batch, width]."""
        return self._model.initial(batch)

    def penalty(self, parameters: Mapping[str, Tensor] | None = None) -> Tensor | None:
        """The scalar that the cells add to the loss in training; None for cells that add nothing."""
        return self._model.penalty(None if parameters is None else dict(parameters))

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

        Throws Error with the path and what does not fit; then nothing has changed.
        """
        self._take(load_safetensors(path), os.fspath(path))
        return self

    def save(self, path: str | os.PathLike) -> None:
        """Writes the parameters to a safetensors file, which is replaced as a whole."""
        save_safetensors(path, {**self.parameters(), **self.constants()})

    def _take(self, tensors: Mapping[str, Tensor], path: str) -> None:
        own = {**self.parameters(), **self.constants()}
        missing = [name for name in own if name not in tensors]
        extra = [n for n in tensors if n not in own and not n.startswith(("optimizer.", "carry."))]
        if missing or extra:
            said = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(extra)}"] * bool(extra)
            raise Error(
                f"[{path}] does not fit the model: {' and '.join(said)}. Hint: print(model) shows its parameters"
            )
        for name, place in own.items():
            found = tensors[name]
            if (found.shape, found.dtype) != (place.shape, place.dtype):
                raise Error(
                    f"[{path}] does not fit the model: {name} is {found.dtype.name} {found.shape}, the model has "
                    f"{place.dtype.name} {place.shape}"
                )
        for name, place in own.items():
            place.assign(tensors[name])

    def __repr__(self) -> str:
        return self._model.table().rstrip("\n")
