"""Run folders, as the programs of Reel and reel.train() write them."""

from __future__ import annotations

import math
import os
from typing import Any, Mapping

from . import _metrics, _reel
from ._check import integer, number, path as checked, plain, said_before, shown
from ._files import is_untrained, load_metadata, load_safetensors, load_trained, save_safetensors
from ._lock import Lock
from ._metrics import Metrics
from ._model import Model, layers_of
from ._reel import Error, SettingError, Tensor
from ._tree import by_name

CONFIG, METRICS, RECORD, MODEL = "config.toml", "metrics.csv", "run.json", "model.json"
BEST, CHECKPOINT = "best.safetensors", "checkpoint.safetensors"
_MARK = "# Made by Python's reel.Run"  # the programs look for it in the first line of config.toml
# Which of the programs' tasks have outputs at every step; the others have a model of their own.
_EVERY_STEP = {
    **dict.fromkeys(("copying", "charlm", "denoising", "music", "paths", "speech"), True),
    **dict.fromkeys(("adding", "mnist"), False),
}


class Run:
    """A folder that a program of Reel or reel.train() has written. Files are read when they are asked for.

    Throws Error when the folder holds no run; its members do when a file is missing or damaged.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = checked(path)
        self._lock: Lock | None = None  # while reel.train() writes here
        if not os.path.isdir(self.path):
            raise Error(f"[{self.path}] is not a folder. Hint: programs write runs/TASK-CELL-DATE, or what --out says")
        if not self._has(CONFIG):
            raise Error(f"[{self.path}] is not the folder of a run: no {CONFIG}")

    @classmethod
    def create(cls, path: str | os.PathLike, config: Mapping[str, Any] | None = None) -> Run:
        """Makes the folder of a new run with its config.toml, of text, numbers, booleans and dicts of them.

        Throws Error when it holds a run or cannot be written.
        """
        folder, text = checked(path), _toml(config or {})
        config_file = os.path.join(folder, CONFIG)
        try:
            os.makedirs(folder, exist_ok=True)
            has = [name for name in (CONFIG, METRICS, CHECKPOINT) if os.path.lexists(os.path.join(folder, name))]
            if not has and not _makes_file(config_file):
                has = [CONFIG]
        except OSError as e:
            raise Error(f"[{folder}] cannot be made: {e.strerror}") from None
        if has:
            raise Error(f"[{folder}] holds a run already: {has[0]}. Hint: another folder")
        try:
            _reel._write_atomically(config_file, f"{_MARK}\n{text}")
        except BaseException:
            os.unlink(config_file)
            raise
        run = cls(folder)
        run.write_metrics(Metrics())
        return run

    @property
    def config(self) -> dict[str, Any]:
        """The options of the run, from config.toml; the cell's settings are in a dict of its name."""
        try:
            import tomllib
        except ImportError:  # Python 3.10
            import tomli as tomllib
        try:
            return tomllib.loads(self._read(CONFIG))
        except tomllib.TOMLDecodeError as e:
            raise Error(f"[{self._file(CONFIG)}] is damaged: {e}") from None

    @property
    def metrics(self) -> Metrics:
        """metrics.csv as lists by column, a row for each validation; .to_pandas() makes a DataFrame."""
        return _metrics.parse(self._file(METRICS), self._read(METRICS))

    @property
    def record(self) -> dict[str, Any]:
        """run.json, which is written at the end: task, cell, parameters, losses, speed, version, command and others."""
        return self._json(RECORD, "it is written when the run ends")

    def best(self) -> dict[str, Tensor]:
        """The parameters with the lowest validation loss, by name."""
        return load_safetensors(self._best_file())

    def checkpoint(self) -> dict[str, Tensor]:
        """The last parameters of a program's run, and what its optimiser and its carried states need to go on."""
        return load_safetensors(self._checkpoint_file())

    def _best_file(self) -> str:
        self._require(BEST, self._parameters_elsewhere(CHECKPOINT, "checkpoint() has the last parameters"))
        return self._file(BEST)

    def _checkpoint_file(self) -> str:
        hint = "reel.train() writes none; best() has the parameters"
        self._require(CHECKPOINT, self._parameters_elsewhere(BEST, hint))
        return self._file(CHECKPOINT)

    def _parameters_elsewhere(self, other: str, hint: str) -> str:
        """The hint if the other file is there, otherwise why the folder has no parameters at all, as far as it tells."""
        try:
            if self._has(other):
                return "the run has done no update" if is_untrained(load_metadata(self._file(other))) else hint
            diverged = self._has(RECORD) and "diverged_at_step" in self.record
            validated = self._has(METRICS) and self.metrics["step"]
        except Error:  # damaged
            return "the folder has no parameters"
        why = ": the run diverged" if diverged else "" if validated else ": the run ended before its first validation"
        return "the folder has no parameters" + why

    def model(self, which: str | None = None, **changes: Any) -> Model:
        """The trained model, made of config and weights: which is "best" or "checkpoint", by default the best if there.

        `changes` are arguments of Model that the folder does not tell or tells wrong. With every_step=None, the folder
        says whether outputs are at every step. The inputs and outputs of a `table` model are standardised: the program
        predict works in the table's own units. Throws Error for a task whose model is no stack of cells (bAbI), for
        weights that do not fit, and for initial values, where the run has done no update.
        """
        config = self.config
        if which not in (None, "best", "checkpoint"):
            raise Error(f'[run] which is "best" or "checkpoint", got {which!r}')
        which = which or ("best" if self._has(BEST) else "checkpoint")
        path = self._best_file() if which == "best" else self._checkpoint_file()
        weights = load_trained(path)
        if "cell" not in config:
            raise Error(f"[{self._file(CONFIG)}] names no cell, so no model is made. Hint: best(), checkpoint()")
        if "head.V" not in weights or not any(n.startswith(("cell.", "cell1.")) for n in weights):
            raise Error(
                f"[{path}] has weights of a model that is no stack of cells with a head: {', '.join(list(weights)[:4])}"
                ", .... Hint: best() or checkpoint() has the tensors, and reel.cell() the cells"
            )
        names = ("cell", "hidden", "layers", "bidirectional", "dropout", "input", "seed", "dtype")
        options: dict[str, Any] = {name: config[name] for name in names if name in config}
        for name in ("layer-norm", "residual", "variational-dropout"):
            options[name.replace("-", "_")] = config.get(name, False)
        options["head_init"] = config.get("head-init", "linear")
        options["zoneout"] = config.get("zoneout", 0)
        options["checkpoint_every"] = config.get("checkpoint-every", 0)
        options["outputs"] = weights["head.V"].shape[0]
        stack = layers_of(options["cell"], options.get("hidden", 128), options.get("layers", 1))
        self._require_cells([cell for cell, _ in stack])
        settings = {f"{c}.{name}": v for c in dict.fromkeys(c for c, _ in stack) for name, v in config.get(c, {}).items()}
        if "embedding" in weights:
            options["vocabulary"], options["embedding"] = weights["embedding"].shape
        else:
            width = _input_size(*stack[0], config.get(stack[0][0], {}), weights)
            options["vocabulary" if options.get("input") == "one-hot" and "inputs" not in config else "inputs"] = width
        if {"inputs", "vocabulary"} & changes.keys():
            options = {k: v for k, v in options.items() if k not in ("inputs", "vocabulary")}
        if "every_step" not in changes:
            options["every_step"] = self._every_step(config)
        with said_before():
            model = Model(**{**options, **settings, **changes})
        model._take(weights, path)
        return model

    def _require_cells(self, cells: list[str]) -> None:
        """Names the plugins that the run had, if a cell is not there without them."""
        unknown = [cell for cell in cells if cell not in _reel.cells()]
        plugins = self.record.get("plugins") if unknown and self._has(RECORD) else None
        if plugins:
            said = ", ".join(f"reel.load_plugin({path!r})" for path in plugins)
            raise SettingError(f'cell: there is no cell "{unknown[0]}"; the run had plugins. Hint: {said}')

    def _every_step(self, config: Mapping[str, Any]) -> bool:
        if "every-step" in config:
            return config["every-step"]
        if self._has(MODEL):
            return self._json(MODEL)["every_step"]
        task = self.record.get("task") if self._has(RECORD) else None
        if task not in _EVERY_STEP:
            said = f"the task is {task!r}" if task else f"there is no {RECORD} yet"
            raise Error(
                f"[{self.path}] does not tell whether outputs are at every step: {said}. "
                "Hint: model(every_step=True), or False"
            )
        return _EVERY_STEP[task]

    def _json(self, name: str, hint: str = "") -> dict[str, Any]:
        import json

        try:
            found = json.loads(self._read(name, hint))
        except ValueError as e:
            raise Error(f"[{self._file(name)}] is damaged: {e}") from None
        if not isinstance(found, dict):
            raise Error(f"[{self._file(name)}] is damaged: it is not a JSON object")
        return found

    def _results(self) -> str:
        """The first file with something of a run in it, besides its config; empty if there is none."""
        found = (name for name in (BEST, CHECKPOINT, RECORD) if self._has(name))
        return next(found, METRICS if self._has(METRICS) and self.metrics["step"] else "")

    def write_model(self, model: Model) -> None:
        """Replaces model.json, with which the program `predict` makes the model."""
        model._model.save_config(self._place(MODEL), str(self.config.get("task", "")))

    def write_metrics(self, metrics: Metrics) -> None:
        """Replaces metrics.csv."""
        _reel._write_atomically(self._place(METRICS), _metrics.text_of(metrics))

    def write_best(self, parameters: Any, step: int, valid_loss: float) -> None:
        """Replaces best.safetensors by the parameters of a validation, in a dict or nested ones."""
        texts = {"step": str(integer("step", step, 0)), "valid_loss": repr(plain(number("valid_loss", valid_loss)))}
        save_safetensors(self._place(BEST), by_name(parameters, "write_best"), texts)

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Replaces run.json; NaN and infinity become null, as JSON has neither."""
        import json

        text = json.dumps(_json_of(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        text = text.encode(errors="replace").decode()  # the command may have paths that are no UTF-8
        _reel._write_atomically(self._place(RECORD), text)

    def _file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _place(self, name: str) -> str:
        """The path of a file to be written. Throws Error if another folder has taken the place of the run's."""
        if self._lock:
            self._lock.require_held()
        return self._file(name)

    def _has(self, name: str) -> bool:
        return os.path.exists(self._file(name))

    def _require(self, name: str, hint: str) -> None:
        if not self._has(name):
            raise Error(f"[{self._file(name)}] is not there. Hint: {hint}")

    def _read(self, name: str, hint: str = "the folder is damaged or not that of a run") -> str:
        self._require(name, hint)
        try:
            with open(self._file(name), encoding="utf-8", newline="") as file:
                return file.read()
        except OSError as e:
            raise Error(f"[{self._file(name)}] cannot be read: {e.strerror}") from None
        except UnicodeDecodeError:
            raise Error(f"[{self._file(name)}] is damaged: it is no UTF-8 text") from None

    def __repr__(self) -> str:
        return f"Run({self.path!r})"


def _makes_file(path: str) -> bool:
    """Makes an empty file; of several processes that try to, one does."""
    try:
        open(path, "x").close()
    except FileExistsError:
        return False
    return True


def _input_size(cell: str, hidden: int, settings: Mapping[str, Any], weights: Mapping[str, Tensor]) -> int:
    """The width of the first cell's input: shapes of its weights grow with it, and two small cells show how."""
    one, two = ({**c.parameters(), **c.constants()} for c in (_reel.cell(cell, i, hidden, **settings) for i in (1, 2)))
    for name, first in one.items():
        found = weights.get("cell." + name, weights.get("cell1." + name))
        if found is None or name not in two or found.ndim != first.ndim:
            continue
        for a, b, size in zip(first.shape, two[name].shape, found.shape):
            if a != b:
                return 1 + (size - a) // (b - a)
    return hidden


def _json_of(value: Any) -> Any:
    """The value as the programs write it into JSON; NumPy's numbers as Python's."""
    if isinstance(value, Mapping):
        return {k: _json_of(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_of(v) for v in value]
    value = plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _toml(config: Mapping[str, Any]) -> str:
    tables = {k: v for k, v in config.items() if isinstance(v, Mapping)}
    lines = [_toml_line(k, v) for k, v in config.items() if k not in tables]
    for name, table in tables.items():
        lines += ["", f"[{_toml_key(name)}]", *(_toml_line(k, v) for k, v in table.items())]
    return "\n".join(lines) + "\n"


def _toml_key(key: Any) -> str:
    if not isinstance(key, str):
        raise Error(f"[{CONFIG}] a key must be text, got {shown(key)}")
    bare = key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key)
    return key if bare else _toml_text(key)


def _toml_text(text: str) -> str:
    import json

    if text != text.encode(errors="replace").decode():  # it has half of a pair of surrogates
        raise Error(f"[{CONFIG}] a key or a text has no UTF-8: {shown(text)}")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_line(key: str, value: Any) -> str:
    value = plain(value)
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str):
        text = _toml_text(value)
    elif isinstance(value, (int, float)):
        text = repr(value)
    else:
        raise Error(f"[{CONFIG}] {key} must be text, a number or a boolean, got {type(value).__name__}")
    return f"{_toml_key(key)} = {text}"
