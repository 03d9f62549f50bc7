"""The rows of metrics.csv: what a training loop writes at each validation."""

from __future__ import annotations

import math
from typing import Any

from ._check import number, plain
from ._reel import Error

COLUMNS = ("step", "examples", "seconds", "train_loss", "valid_loss", "accuracy", "grad_norm")
_HEADER = ",".join(COLUMNS) + "\n"


class Metrics(dict):
    """Lists by column: step, examples, seconds, train_loss, valid_loss, accuracy, grad_norm; NaN for an unknown number.

    A row is written at each validation; train_loss and grad_norm are means over the updates since the row before.
    examples: the sequences so far, along axis 1 of x; with a dict of tensors in place of a Model, along axis 0 of y, or
    of x where y is a number.
    """

    def __init__(self) -> None:
        super().__init__({name: [] for name in COLUMNS})

    def add(self, **row: float) -> None:
        """Appends a row; columns that are not given are NaN. Throws Error for others."""
        if unknown := [name for name in row if name not in COLUMNS]:
            raise Error(f"[metrics] there is no column {unknown[0]!r}. Hint: {', '.join(COLUMNS)}")
        values = [number(name, plain(row.get(name, math.nan))) for name in COLUMNS]
        list(map(list.append, map(self.__getitem__, COLUMNS), values))  # one call, into which Ctrl-C does not come

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each validation."""
        try:
            import pandas
        except ImportError:
            raise Error("[to_pandas] pandas is not installed. Hint: pip install pandas") from None
        return pandas.DataFrame(dict(self))


def text_of(metrics: Metrics) -> str:
    """The text of metrics.csv."""
    rows = zip(*(metrics[name] for name in COLUMNS))
    return _HEADER + "".join(",".join("" if x != x else repr(plain(x)) for x in row) + "\n" for row in rows)


def parse(path: str, text: str) -> Metrics:
    """Reads it back, without an incomplete last line, which a running program or a crash leaves."""
    metrics = Metrics()
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not line.endswith("\n") or (number == 1 and line == _HEADER):
            continue
        fields = line[:-1].split(",")
        try:
            if number == 1 or len(fields) != len(COLUMNS):
                raise ValueError
            values = [int(fields[0]), int(fields[1]), *(float(f) if f else math.nan for f in fields[2:])]
        except ValueError:
            raise Error(f"[{path}:{number}] is not a line of metrics. Hint: remove it, or the damaged file") from None
        metrics.add(**dict(zip(COLUMNS, values)))
    return metrics
