"""Optimisers and schedules: those of Reel's programs, with the same results. A step changes the parameters in place."""

from __future__ import annotations

import inspect
import math
from typing import Any, Iterator, Mapping, Union

from . import _reel
from ._check import flag, integer, number, shown, text, warn_of_no_effect
from ._model import Model
from ._reel import Cell, Error, SettingError, Tensor
from ._tree import BRANCHED, by_name, with_values

__all__ = ["Optimizer", "SGD", "RMSprop", "Adam", "AdamW", "AMSGrad", "Adagrad", "Schedule"]


# The options that only some kinds have, and which these are.
_ADAMS = ("adam", "adamw", "amsgrad")
_OWNERS = {
    "momentum": ("sgd",),
    "decay": ("rmsprop",),
    "rms_start": ("rmsprop",),
    "epsilon_inside": ("rmsprop",),
    "epsilon": ("rmsprop", "adagrad", *_ADAMS),
    "beta1": _ADAMS,
    "beta2": _ADAMS,
}


Tree = Union[Mapping[str, Any], list, tuple]  # of tensors


def __dir__() -> list[str]:
    return __all__


class Optimizer:
    """An optimiser by name: "sgd", "rmsprop", "adam", "adamw", "amsgrad" or "adagrad", with its class's options below.

    parameters: a Model, a Cell, or a dict of tensors by name, in which those of models and cells keep their
    constraints. Dicts, lists and tuples may be nested, as grad() takes them; a name is then "layers.0.w".
    lr: the learning rate; group_lr: those of groups that have their own, where a group is that of the model's table, or
    in a dict a name or what names begin with: {"layers": 1e-3, "layers.0": 0}, of which the longer one counts. clip_norm
    scales all gradients down to this joint norm, then clip_value clamps each element to +- this; 0: not. weight_decay
    pulls all parameters to 0 (but those that move on a manifold): g <- g + weight_decay p after clipping, or with
    "adamw" p <- (1 - lr weight_decay) p before its step; None: 0, with "adamw" 0.01, as in PyTorch.
    `lr` can be assigned. An optimiser can be copied and pickled, with its state, its parameters, and the models and
    cells that these are of.
    Throws SettingError for a value that does not fit. Warns of an option that this kind does not have.
    """

    __slots__ = ("parameters", "config", "_options", "_optimizer", "_owners", "__weakref__")

    def __init__(
        self,
        parameters: Model | Cell | Tree,
        kind: str,
        lr: float = 1e-3,
        *,
        momentum: float = 0,
        decay: float = 0.9,
        epsilon: float = 1e-8,
        epsilon_inside: bool = False,
        rms_start: float = 0,
        beta1: float = 0.9,
        beta2: float = 0.999,
        weight_decay: float | None = None,
        clip_norm: float = 0,
        clip_value: float = 0,
        group_lr: Mapping[str, float] | None = None,
    ) -> None:
        kind, lr = text("kind", kind), number("lr", lr)
        momentum, decay = number("momentum", momentum), number("decay", decay)
        epsilon, epsilon_inside = number("epsilon", epsilon), flag("epsilon_inside", epsilon_inside)
        rms_start, beta1, beta2 = number("rms_start", rms_start), number("beta1", beta1), number("beta2", beta2)
        clip_norm, clip_value = number("clip_norm", clip_norm), number("clip_value", clip_value)
        if not isinstance(group_lr or {}, Mapping):
            raise SettingError(f"group_lr: a dict of rates by group is needed, got {shown(group_lr)}")
        for group in group_lr or {}:
            if not isinstance(group, str):
                raise SettingError(f"group_lr: the name of a group is needed, got {shown(group)}")
        group_lr = {group: number(f'group_lr["{group}"]', rate) for group, rate in (group_lr or {}).items()}
        if weight_decay is None:
            weight_decay = 0.01 if kind == "adamw" else 0
        weight_decay = number("weight_decay", weight_decay)
        self.config: dict[str, Any] = {  # as the programs call their options
            "optimizer": kind,
            "lr": lr,
            "group-lr": ",".join(f"{group}={rate!r}" for group, rate in group_lr.items()),
            "momentum": momentum,
            "decay": decay,
            "rms-start": rms_start,
            "epsilon": epsilon,
            "epsilon-place": "inside" if epsilon_inside else "outside",
            "beta1": beta1,
            "beta2": beta2,
            "weight-decay": weight_decay,
            "clip-norm": clip_norm,
            "clip-value": clip_value,
        }
        options: dict[str, Any] = {
            "kind": kind,
            "lr": lr,
            "momentum": momentum,
            "decay": decay,
            "epsilon": epsilon,
            "epsilon_inside": epsilon_inside,
            "rms_start": rms_start,
            "beta1": beta1,
            "beta2": beta2,
            "weight_decay": weight_decay,
            "clip_norm": clip_norm,
            "clip_value": clip_value,
            "group_lr": group_lr,
        }
        self._make(parameters, options)
        usual = inspect.signature(Optimizer.__init__).parameters
        known = (
            (name, options[name], usual[name].default, kind in owners, f"{kind} has none, but {', '.join(owners)}")
            for name, owners in _OWNERS.items()
        )
        warn_of_no_effect(known, 2 if type(self) is Optimizer else 3)

    def _make(self, parameters: Model | Cell | Tree, options: dict[str, Any]) -> None:
        self.parameters, self._options = parameters, options
        tree = self._tree_by_name()
        target: Any = parameters if tree is None else tree
        self._optimizer = _reel._optimizer(getattr(target, "_model", target), **options)
        self._owners = dict(_owners(tree or {}))

    def _tree_by_name(self) -> dict[str, Tensor] | None:
        """The tensors of the tree as it is now; None for a Model or a Cell."""
        return by_name(self.parameters, "optimizer") if isinstance(self.parameters, BRANCHED) else None

    @property
    def lr(self) -> float:
        """The learning rate, but for the groups in group_lr."""
        return self._options["lr"]

    @lr.setter
    def lr(self, value: float) -> None:
        rate = number("lr", value)
        self._optimizer.set_lr(rate)
        self._options["lr"] = self.config["lr"] = rate

    def step(self, gradients: Tree, lr_factor: float = 1) -> float:
        """One update in place, with all learning rates times lr_factor. Returns the gradients' joint norm.

        gradients: one for each parameter, by name or nested, as grad() returns them. If the norm is NaN or infinite,
        nothing is updated.
        Throws Error when a gradient is missing or of another shape, or lr_factor is no finite number of 0 or more.
        """
        given = by_name(gradients, "optimizer", "gradients: ")
        return self._optimizer.step(given, number("lr_factor", lr_factor), self._tree_by_name())

    @property
    def steps(self) -> int:
        """How many updates were made."""
        return self._optimizer.steps

    def state_dict(self) -> dict[str, Any]:
        """What the next step depends on besides the parameters: "steps", and tensors that the optimiser goes on using.

        They are called optimizer.NAME.k, as in a run's checkpoint: with k = 0, sgd's velocity, the mean of squares of
        rmsprop and adagrad, the mean of adam's (adamw's, amsgrad's) gradients, whose mean of squares is 1 and the
        largest 2.
        """
        return {"steps": self.steps, **self._optimizer.state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes a copy of such a state. Throws Error when something is missing, unknown, of another shape, or NaN."""
        if not isinstance(state, Mapping):
            raise Error(f"[optimizer] state: a dict as of state_dict() is expected, got {shown(state)}")
        if "steps" not in state:
            raise Error("[optimizer] the state lacks steps")
        steps = integer("[optimizer] steps", state["steps"], 0, error=Error)
        tensors = {k: v for k, v in state.items() if k != "steps"}
        for name, value in tensors.items():
            if not isinstance(name, str) or not isinstance(value, Tensor):
                raise Error(f"[optimizer] the state has tensors by name, got {name!r}: {shown(value)}")
        self._optimizer.load_state(tensors, steps)

    def __getstate__(self) -> dict[str, Any]:
        whole, tree = self.parameters, self._tree_by_name()
        self._optimizer.refuse_others(whole.parameters() if isinstance(whole, (Model, Cell)) else tree or {})
        return {
            "parameters": whole,
            "owners": self._owners,
            "config": self.config,
            "options": self._options,
            "state": self.state_dict(),
            "own": dict(getattr(self, "__dict__", {})),  # of a class of users
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.config = dict(state["config"])
        parameters = state["parameters"]
        if owners := state.get("owners"):  # with their constraints
            owned = {name: owner.parameters()[own] for name, (owner, own) in owners.items()}
            parameters = with_values(parameters, owned)
        self._make(parameters, dict(state["options"]))
        self.load_state_dict(state["state"])
        for name, value in state["own"].items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        kind, lr, count = self.config["optimizer"], self.config["lr"], len(self._optimizer.names)
        return f"{type(self).__name__}(kind={kind!r}, lr={lr}, parameters={count}, steps={self.steps})"


def _owners(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, tuple[Model | Cell, str]]]:
    """Which of the tensors are parameters of which model or cell, and how that calls them."""
    names: dict[int, dict[Any, str]] = {}  # of an owner's parameters, by their memory
    for name, value in tensors.items():
        owner: Any = _reel._owner_of(value)
        if owner is None:
            continue
        if id(owner) not in names:
            names[id(owner)] = {p._storage: own for own, p in owner.parameters().items()}
        if own := names[id(owner)].get(value._storage):
            yield name, (owner, own)


class SGD(Optimizer):
    """v <- momentum v + g; p <- p - lr v."""

    __slots__ = ()

    def __init__(self, parameters: Any, lr: float = 1e-3, *, momentum: float = 0, **options: Any) -> None:
        super().__init__(parameters, "sgd", lr, momentum=momentum, **options)


class RMSprop(Optimizer):
    """s <- decay s + (1 - decay) g^2; p <- p - lr g / (sqrt(s) + epsilon), or epsilon_inside the root as TensorFlow 1.

    rms_start is the first s: 0 as in PyTorch, 1 as in TensorFlow 1.
    """

    __slots__ = ()

    def __init__(
        self,
        parameters: Any,
        lr: float = 1e-3,
        *,
        decay: float = 0.9,
        epsilon: float = 1e-8,
        epsilon_inside: bool = False,
        rms_start: float = 0,
        **options: Any,
    ) -> None:
        options.update(decay=decay, epsilon=epsilon, epsilon_inside=epsilon_inside, rms_start=rms_start)
        super().__init__(parameters, "rmsprop", lr, **options)


class Adam(Optimizer):
    """m <- beta1 m + (1 - beta1) g; v <- beta2 v + (1 - beta2) g^2; p <- p - lr m' / (sqrt(v') + epsilon).

    At step t = 1, 2, ... m' = m / (1 - beta1^t) and v' = v / (1 - beta2^t).
    """

    __slots__ = ()

    def __init__(
        self,
        parameters: Any,
        lr: float = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Any,
    ) -> None:
        super().__init__(parameters, "adam", lr, beta1=beta1, beta2=beta2, epsilon=epsilon, **options)


class AdamW(Optimizer):
    """Adam after p <- (1 - lr weight_decay) p (Loshchilov & Hutter 2019)."""

    __slots__ = ()

    def __init__(
        self,
        parameters: Any,
        lr: float = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        **options: Any,
    ) -> None:
        options.update(beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay)
        super().__init__(parameters, "adamw", lr, **options)


class AMSGrad(Optimizer):
    """Adam with the largest v so far in place of v."""

    __slots__ = ()

    def __init__(
        self,
        parameters: Any,
        lr: float = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Any,
    ) -> None:
        super().__init__(parameters, "amsgrad", lr, beta1=beta1, beta2=beta2, epsilon=epsilon, **options)


class Adagrad(Optimizer):
    """s <- s + g^2; p <- p - lr g / (sqrt(s) + epsilon)."""

    __slots__ = ()

    def __init__(self, parameters: Any, lr: float = 1e-3, *, epsilon: float = 1e-8, **options: Any) -> None:
        super().__init__(parameters, "adagrad", lr, epsilon=epsilon, **options)


class Schedule:
    """A factor on the learning rates, by the number of the update: reel.train(..., schedule=Schedule("cosine", steps)).

    kind: "constant"; "step", times `factor` every `every` updates; "cosine" or "linear", which fall from 1 to `floor`
    after `steps` updates. Over the first `warmup` updates the factor rises to that in equal parts.
    Throws SettingError for a value that does not fit. Warns of an option that this kind does not have.
    """

    kinds = ("constant", "step", "cosine", "linear")

    def __init__(
        self,
        kind: str,
        steps: int = 0,
        *,
        warmup: int = 0,
        floor: float = 0,
        every: int = 1000,
        factor: float = 0.5,
    ) -> None:
        if kind not in self.kinds:
            raise SettingError(f"kind: one of {', '.join(self.kinds)} is needed, got {kind!r}")
        falls = kind in ("cosine", "linear")
        steps, warmup, every = (
            integer(name, value, low)
            for name, value, low in (("steps", steps, 1 if falls else 0), ("warmup", warmup, 0), ("every", every, 1))
        )
        floor, factor = number("floor", floor), number("factor", factor)
        for name, value, low, high in (
            ("warmup", warmup, 0, steps if falls else math.inf),
            ("floor", floor, 0, 1),
            ("factor", factor, 0, 1),
        ):
            if not low <= value <= high:
                raise SettingError(f"{name}: {low} to {high} is needed, got {value}")
        self._options = (kind, steps, warmup, floor, every, factor)
        only = f"it is for {{}}, and kind is {kind}"
        options = (
            ("floor", floor, 0, falls, only.format("cosine, linear")),
            ("every", every, 1000, kind == "step", only.format("step")),
            ("factor", factor, 0.5, kind == "step", only.format("step")),
        )
        warn_of_no_effect(options, 2)

    @property
    def config(self) -> dict[str, Any]:
        """The options as the programs call them, which have no number of steps of their own."""
        kind, steps, warmup, floor, every, factor = self._options
        own = {"schedule-steps": steps} if kind in ("cosine", "linear") else {}
        options = {"warmup": warmup, "lr-floor": floor, "lr-every": every, "lr-factor": factor}
        return {"schedule": kind, **own, **options}

    def __call__(self, step: int) -> float:
        """The factor of an update, counted from 0. Throws Error for what is no such number."""
        return _reel._schedule_factor(integer("[schedule] step", step, 0, error=Error), *self._options)

    def __repr__(self) -> str:
        return "Schedule({!r}, {}, warmup={}, floor={}, every={}, factor={})".format(*self._options)
