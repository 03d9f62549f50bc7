"""What a training loop shows meanwhile, on stderr: a line that moves on a terminal, and one for each validation."""

from __future__ import annotations

import math
import os
import sys
import time


class Progress:
    """`steps` is how many updates are expected, None where that is not known."""

    def __init__(self, on: bool, first: int, steps: int | None) -> None:
        self._on = on and sys.stderr is not None  # None where it is closed, and in programs without a console
        self._live = self._on and getattr(sys.stderr, "isatty", bool)()
        self._first, self._end = first, None if steps is None else first + steps
        self._start = self._shown = time.monotonic()

    def update(self, step: int, loss: float) -> None:
        """Shows the latest update, ten times a second at most."""
        now = time.monotonic()
        if not self._live or now - self._shown < 0.1:
            return
        self._shown = now
        rate = (step - self._first) / (now - self._start)
        end = None if self._end is None or step > self._end else self._end
        text = f"{step}{'' if end is None else f'/{end}'}  loss {loss:.3g}  {rate:.3g} steps/s"
        if end is not None and rate > 0:
            text += f"  {(end - step) / rate:.0f} s left"
        self._write("\r\033[K" + text[: self._width() - 1])

    def validated(self, row: dict[str, float]) -> None:
        """Shows the numbers of a row of metrics that are known."""
        if not self._on:
            return
        names = [n for n in ("train_loss", "valid_loss", "accuracy") if not math.isnan(row.get(n, math.nan))]
        known = "  ".join(f"{name} {row[name]:.4g}" for name in names)
        self._write(("\r\033[K" if self._live else "") + f"step {row['step']}  {known}\n")

    def done(self) -> None:
        """Ends the line that moves."""
        if self._live:
            self._write("\r\033[K")

    def say(self, text: str) -> None:
        """A line that is not part of the progress, and comes without it, too."""
        self._write(text + "\n")

    @staticmethod
    def _width() -> int:
        try:
            return os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError, AttributeError):  # not every stream has a file
            return 80

    def _write(self, text: str) -> None:
        """Nobody may read it any more, which is no reason to end a training."""
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            self._on = self._live = False
