"""A training loop: batches, gradients, updates, validation, and what is left of it."""

from __future__ import annotations

import math
import os
import time
from typing import Any, Callable, Iterable, Mapping

from ._autodiff import value_and_grad
from ._batches import again_and_again, batch_size, checked_batch, entries, groups, is_batch, length, stream
from ._check import integer, kind_of, shown
from ._create import tensor
from ._metrics import Metrics
from ._model import Model
from ._progress import Progress
from ._reel import Error, Tensor
from ._restore import assign
from ._run import Run
from ._train_run import Diverged, held, made, record
from ._tree import BRANCHED, by_name, flatten
from .optim import Optimizer, RMSprop, Tree


class History:
    """What train() returns.

    losses: that of each update. metrics: a row for each validation, see Metrics. steps: the updates made. best,
    best_step and best_loss: the parameters with the lowest validation loss, nested as those that were trained; None, None
    and infinity without validation.
    stopped: "steps", "batches" when these ran out, "patience" or "interrupted". seconds: how long it took.
    """

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.metrics = Metrics()
        self.steps = 0
        self.best: Any = None
        self.best_step: int | None = None
        self.best_loss = math.inf
        self.stopped = "steps"
        self.seconds = 0.0

    def to_pandas(self) -> Any:
        """The metrics as a pandas.DataFrame."""
        return self.metrics.to_pandas()

    def __repr__(self) -> str:
        last = f", last loss {self.losses[-1]:.4g}" if self.losses else ""
        best = "" if self.best_step is None else f", valid_loss {self.best_loss:.4g} at step {self.best_step}"
        return f"History(steps={self.steps}, stopped={self.stopped!r}, seconds={self.seconds:.1f}{last}{best})"


class _Learner:
    """A model or a tree of parameters, with the loss of a batch."""

    def __init__(self, model: Any, loss: Callable, accuracy: Callable | None, carry: bool) -> None:
        self.model = model if isinstance(model, Model) else None
        if self.model is None and not isinstance(model, BRANCHED):
            raise Error(f"[train] a Model, or a tuple, list or dict of tensors is expected, got {kind_of(model)}")
        if carry and self.model is None:
            raise Error("[train] carry is for a Model. Hint: keep states of your own in the batches")
        if carry and self.model is not None and (what := self.model._model.without_states):
            raise Error(f"[train] carry: {what} reads whole sequences, no state goes on. Hint: leave carry out")
        self.parameters: Any = model if self.model is None else self.model.parameters()
        self.loss, self.accuracy, self.carry = loss, accuracy, carry
        self.state: Any = ()
        self._differentiated = value_and_grad(self._objective, has_aux=True)

    def forget_state(self) -> None:
        """The next batch continues none."""
        self.state = ()

    def everything(self) -> Any:
        """All that a file of parameters has."""
        return self.parameters if self.model is None else {**self.parameters, **self.model.constants()}

    def _objective(self, p: Any, x: Any, y: Any, lengths: Any, step: int) -> tuple[Tensor, tuple[Tensor, Any]]:
        if self.model is None:
            value = _real(self.loss(p, x, y))
            return value, (value, ())
        outputs, state = self._outputs(x, self.state, parameters=p, step=step, lengths=lengths)
        value, penalty = _real(self.loss(outputs, y)), self.model.penalty(p)
        return (value if penalty is None else value + penalty), (value, state)

    def _outputs(self, x: Any, state: Any, **options: Any) -> tuple[Tensor, Any]:
        """The model's outputs, and the last state where it carries over."""
        assert self.model is not None
        return self.model(x, state=state, **options) if self.carry else (self.model(x, **options), ())

    def gradient(self, batch: tuple, step: int) -> tuple[float, dict[str, Tensor]]:
        (_, (value, state)), gradient = self._differentiated(self.parameters, *self.checked(batch), step)
        if self.carry:
            self.state = state
        return value.item(), by_name(gradient, "train")

    def checked(self, batch: tuple) -> tuple:
        """x, y and lengths, which are for a Model."""
        if batch[2] is not None and self.model is None:
            raise Error("[train] lengths in a batch are for a Model. Hint: put them into x, as a tuple")
        return batch

    def examples(self, batch: tuple) -> int:
        """How many sequences a batch has; for a function, the extent of the first axis of y, or of x if y has none."""
        x, y, _ = batch
        return (batch_size(y, 0) or batch_size(x, 0) if self.model is None else batch_size(x, 1)) or 1

    def mean_gradient(self, batches: Iterable, count: int, step: int) -> tuple[float, dict[str, Tensor], int]:
        """The means over at most `count` batches, each weighted by the size of its y, and how many examples these have;
        step: that of the first one. A batch may be overwritten when the next one is taken."""
        if count == 1:
            (batch,) = batches
            return *self.gradient(batch, step), self.examples(batch)
        loss, total, examples, seen, whole = 0.0, {}, 0, 0, 1
        for k, batch in enumerate(batches):
            size = entries(batch[1])
            if k == 0:
                whole = count * size or 1  # if there are `count` of this size, else the means are scaled at the end
            value, gradient = self.gradient(batch, step + k)
            loss += size / whole * value
            if not math.isfinite(loss):
                return loss, gradient, examples
            part = {name: g * (size / whole) for name, g in gradient.items()}
            total = {name: total[name] + g for name, g in part.items()} if total else part
            seen, examples = seen + size, examples + self.examples(batch)
        if seen == 0:
            raise Error(f"[train] accumulate: an update needs elements in y, got none in the batches from {step} on")
        if seen != whole:
            loss, total = loss * (whole / seen), {name: g * (whole / seen) for name, g in total.items()}
        return loss, total, examples

    def evaluate(self, batches: Iterable) -> tuple[float, float]:
        """The means of loss and accuracy over all entries of y, or of its first tensor."""
        total, loss, accuracy, state = 0, 0.0, 0.0, ()
        for batch in batches:
            x, y, lengths = self.checked(checked_batch(batch))
            given: tuple = (self.parameters, x, y)
            if self.model is not None:
                outputs, state = self._outputs(x, state, lengths=lengths)
                given = (outputs, y)
            n = entries(y)
            total, loss = total + n, loss + n * float(self.loss(*given))
            accuracy += n * float(self.accuracy(*given)) if self.accuracy else math.nan
        if total == 0:
            raise Error("[train] there is no batch to validate on")
        return loss / total, accuracy / total


def train(
    model: Model | Tree,
    batches: Iterable | Callable[[int], tuple],
    loss: Callable[..., Tensor],
    *,
    steps: int | None = None,
    optimizer: Optimizer | None = None,
    schedule: Callable[[int], float] | None = None,
    valid: Any = None,
    valid_every: int | None = None,
    accuracy: Callable[..., Any] | None = None,
    patience: int = 0,
    restore_best: bool = True,
    carry: bool = False,
    accumulate: int = 1,
    progress: bool = True,
    run: str | os.PathLike | Run | None = None,
) -> History:
    """Trains in place and returns a History.

    model: a Model, with loss(outputs, y) and accuracy(outputs, y); or a dict of tensors, nested or not, for a function of
    your own, with loss(parameters, x, y) and accuracy(parameters, x, y). A loss is a scalar tensor, an accuracy a number.
    batches: (x, y) for each update, arrays or tensors, or (x, y, lengths) for a Model, whose sequences then have these
    lengths; an iterable, started over while steps remain unless it is an iterator, from which only the batches of these
    steps are taken; or a function of the number of the update, from 0. steps: how many updates; None: once through
    batches.
    optimizer: by default RMSprop(model). It counts the updates, so another call goes on with its numbers, and with the
    batches where they are a function; an iterable starts again. schedule: a function from the number of the update to a
    factor on the learning rates, such as reel.optim.Schedule.
    accumulate: so many batches make one update, by the mean of their gradients, weighted by the sizes of y, or of its
    first tensor: a large batch in the memory of a small one. A function of batches then gets the number of the batch.
    valid: a batch, which is a tuple, or a list of batches, validated on every `valid_every` updates and at the end; by
    default a twentieth of the steps, 100 where their number is not known. patience: stop after so many validations
    without a lower loss; 0: never. With restore_best the model has the parameters of the lowest validation loss at the end, else the last.
    carry: each batch goes on where the one before ended, so that states carry over; the first batch of each call, and of
    an iterable that starts over, has initial states. Not for bidirectional models, nor for cells without states.
    run: the folder of a new run, to write metrics, parameters and results to; or a Run that Run.create() has made, with
    nothing in it but its config. Meanwhile no other process can write there. progress: lines on stderr.
    Ctrl-C ends it after the latest update, and what there is is returned. Throws Error when the loss or a gradient is
    not finite; then the parameters are those of the update before. Exceptions of your functions pass through; `run` then
    has the parameters, too, the best or the last ones.
    """
    learner = _Learner(model, loss, accuracy, carry)
    optimizer = RMSprop(model) if optimizer is None else optimizer
    if not isinstance(optimizer, Optimizer):
        hint = "Hint: reel.optim.Adam(model)"
        raise Error(f"[train] optimizer: one of reel.optim is needed, got {shown(optimizer)}. {hint}")
    if optimizer.parameters is not model:
        raise Error("[train] the optimizer has other parameters than the model. Hint: reel.optim.Adam(model)")
    if others := optimizer._optimizer.others(by_name(learner.parameters, "train")):
        raise Error(
            f"[train] {', '.join(others)}: the dict has another tensor than the optimizer, which would go on with its "
            "own. Hint: assign() keeps a tensor and changes its elements; or make a new optimizer"
        )
    steps = None if steps is None else integer("[train] steps", steps, 0, error=Error)
    valid_every = None if valid_every is None else integer("[train] valid_every", valid_every, 1, error=Error)
    patience = integer("[train] patience", patience, 0, error=Error)
    accumulate = integer("[train] accumulate", accumulate, 1, error=Error)
    if not callable(loss):
        raise Error(f"[train] loss: a function is needed, got {shown(loss)}")
    if not callable(batches) and not _iterable(batches):
        raise Error(f"[train] batches: an iterable or a function is needed, got {shown(batches)}")
    if isinstance(batches, tuple) and len(batches) in (2, 3) and not all(map(is_batch, batches)):
        raise Error("[train] batches: an iterable of batches (x, y) is needed, got what seems to be one. Hint: [(x, y)]")
    if valid is not None and not _iterable(valid):
        raise Error(f"[train] valid: a batch or a list of batches is needed, got {shown(valid)}")
    if patience > 0 and valid is None:
        raise Error("[train] patience needs valid, whose loss it waits for")
    if steps is None and callable(batches):
        raise Error("[train] a function makes batches without end. Hint: steps=1000")
    once = steps is None
    wanted = length(batches) if steps is None else steps * accumulate  # batches
    if steps is None and wanted is not None:
        steps = -(-wanted // accumulate)  # expected: some loaders have more batches than they say, or fewer
    validation = again_and_again(valid)
    every = valid_every or max(1, (steps or 2000) // 20)

    history, first, start = History(), optimizer.steps, time.monotonic()
    config = {
        **({} if steps is None else {"steps": steps}),
        "accumulate": accumulate,
        "valid-every": valid_every or 0,
        "patience": patience,
        "carry": carry,
    }
    folder = made(run, learner, optimizer, schedule, config)
    view = Progress(progress, first, steps)
    examples = waited = 0
    since: list[tuple[float, float]] = []  # losses and norms of gradients since the last row

    def validate() -> None:
        nonlocal waited
        row = dict(zip(("train_loss", "grad_norm"), (sum(c) / len(c) for c in zip(*since))))
        if validation is not None:
            row["valid_loss"], row["accuracy"] = learner.evaluate(validation)
            if not math.isfinite(row["valid_loss"]):
                raise Diverged(f"the validation loss became {row['valid_loss']}", optimizer.steps)
        row.update(step=optimizer.steps, examples=examples, seconds=time.monotonic() - start)
        history.metrics.add(**row)  # before the best parameters, whose step then has a row, also after Ctrl-C
        since.clear()
        if folder:
            folder.write_metrics(history.metrics)
        waited += 1
        if row.get("valid_loss", math.inf) < history.best_loss:
            values, rebuild = flatten(learner.everything(), "train", "parameters{}")
            best = rebuild([tensor(value) for value in values])
            history.best, history.best_step, history.best_loss = best, row["step"], row["valid_loss"]
            waited = 0
            if folder:
                folder.write_best(best, row["step"], row["valid_loss"])
        view.validated(row)

    def end(problem: BaseException | None = None) -> None:
        """Writes down what there is, and the exception that ended the training, if any."""
        view.done()
        history.steps, history.seconds = optimizer.steps - first, time.monotonic() - start
        if folder:
            if history.best is None and not isinstance(problem, Diverged):
                folder.write_best(learner.everything(), optimizer.steps, math.nan)
            elif history.best and history.best_step and history.stopped == "interrupted":  # maybe while they were written
                folder.write_metrics(history.metrics)
                folder.write_best(history.best, history.best_step, history.best_loss)
            folder.write_record(record(learner, history, optimizer, problem))

    with held(folder, learner.model):
        try:
            taken = stream(batches, first * accumulate, wanted, once, history, learner.forget_state)
            for group in groups(taken, accumulate):
                step = optimizer.steps
                value, gradient, count = learner.mean_gradient(group, accumulate, step * accumulate)
                if not math.isfinite(value):
                    raise Diverged(f"the loss became {value}", step + 1)
                norm = optimizer.step(gradient, _factor(schedule, step))
                if not math.isfinite(norm):
                    raise Diverged(f"the gradient's norm became {norm}", step + 1)
                history.losses.append(value)
                since.append((value, norm))
                examples += count
                view.update(optimizer.steps, value)
                if (optimizer.steps - first) % every == 0:
                    validate()
                    if 0 < patience <= waited:
                        history.stopped = "patience"
                        break
            if since:
                validate()
        except KeyboardInterrupt:
            history.stopped = "interrupted"
        except BaseException as e:
            try:
                end(e)
            except Exception as unwritten:  # what ended the training matters more
                view.say(f"[train] the end of the run is not written down: {unwritten}")
            if isinstance(e, Diverged):
                raise Error(f"[train] {e} at step {e.step}. Hint: a lower lr, or clip_norm=1") from None
            raise
        end()
    if restore_best and history.best is not None:
        assign(by_name(learner.everything(), "train"), by_name(history.best, "train"))
    return history


def _iterable(given: Any) -> bool:
    return hasattr(given, "__iter__") or hasattr(given, "__getitem__")


def _real(loss: Any) -> Any:
    """The loss, unless it is complex. value_and_grad() looks at the rest."""
    if isinstance(loss, Tensor) and loss.dtype.name.startswith("c"):
        raise Error(f"[train] loss: a real scalar is needed, got {loss.dtype.name} {loss.shape}. Hint: reel.real(), or reel.abs()")
    return loss


def _factor(schedule: Callable[[int], float] | None, step: int) -> float:
    """The factor on the learning rates at an update."""
    if schedule is None:
        return 1
    factor = float(schedule(step))
    if not 0 <= factor < math.inf:
        raise Error(f"[train] the schedule must give a finite number, 0 or more, got {factor} for update {step}")
    return factor
