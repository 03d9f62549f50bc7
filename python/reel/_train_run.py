"""The folder of a training: its config at the start, who holds it, and its record at the end."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping

from . import _reel
from ._lock import locked
from ._model import Model
from ._reel import Error
from ._run import MODEL, Run
from ._tree import by_name
from .optim import Optimizer, Schedule

if TYPE_CHECKING:
    from ._train import History, _Learner


class Diverged(Exception):
    """What is not finite, and the number of the update, from 1."""

    def __init__(self, text: str, step: int) -> None:
        super().__init__(text)
        self.step = step


def made(
    run: Any, learner: _Learner, optimizer: Optimizer, schedule: Callable | None, options: Mapping[str, Any]
) -> Run | None:
    """The folder, with a config of the model, the optimiser, the schedule and these options, as the programs call them."""
    if run is None or isinstance(run, Run):
        return run
    config: dict[str, Any] = {} if learner.model is None else dict(learner.model.config)
    config.update(**optimizer.config, **_schedule(schedule), **options)
    if learner.model is not None:
        config.update({cell: own for cell, own in learner.model._settings.items() if own})
    return Run.create(run, config)


def _schedule(schedule: Callable | None) -> dict[str, Any]:
    if schedule is None:
        schedule = Schedule("constant")
    if isinstance(schedule, Schedule):
        return schedule.config
    return {"schedule": getattr(schedule, "__name__", type(schedule).__name__)}


@contextlib.contextmanager
def held(run: Run | None, model: Model | None) -> Iterator[None]:
    """Has the folder for this training, with the model that `predict` needs, unless it holds a run already."""
    if run is None:
        yield
        return
    with locked(run.path) as run._lock:
        try:
            if has := run._results():
                raise Error(f"[{run.path}] holds a run already: {has}. Hint: another folder")
            if model is not None and not run._has(MODEL):
                run.write_model(model)
            yield
        finally:
            run._lock = None


def record(learner: _Learner, history: History, optimizer: Optimizer, problem: BaseException | None) -> dict[str, Any]:
    """The contents of run.json, with the names that the programs use."""
    import shlex
    import sys

    from . import __version__

    config = {} if learner.model is None else learner.model.config
    count = sum(p.size * (1 + p.dtype.name.startswith("c")) for p in by_name(learner.parameters, "train").values())
    last = {name: values[-1] if values else math.nan for name, values in history.metrics.items()}
    out = {
        "task": "",
        "cell": config.get("cell", ""),
        "parameters": count if learner.model is None else learner.model.count,
        "seed": config.get("seed"),
        "steps": optimizer.steps,
        "baseline": None,
        "train_loss": last["train_loss"],
        "valid_loss": last["valid_loss"],
        "accuracy": last["accuracy"],
        "seconds": history.seconds,
        "steps_per_second": history.steps / max(history.seconds, 1e-9),
        "update_seconds": None,
        "device": "cpu",
        "threads": _reel.threads(),
        "finished": problem is None and history.stopped != "interrupted",
        "version": __version__,
        **{key: value for key, value in _reel._provenance().items() if value},
        "command": shlex.join(sys.argv),
        **({"plugins": plugins} if (plugins := _reel._plugins()) else {}),
    }
    if isinstance(problem, Diverged):
        out["diverged_at_step"] = problem.step
    elif problem:
        out["error"] = " ".join(f"{type(problem).__name__}: {problem}".split())
    return out
