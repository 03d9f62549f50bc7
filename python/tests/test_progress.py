"""The lines that a training shows: where nobody reads them, it goes on."""

import io
import subprocess
import sys

import pytest

import reel
from test_train import line, line_loss

TRAIN = """
import reel
from test_train import line, line_loss
h = reel.train({"w": reel.zeros(1)}, line, line_loss, steps=200, valid=line(9), valid_every=1)
print(h.steps, h.stopped)
"""


def train():
    return reel.train({"w": reel.zeros(1)}, line, line_loss, steps=40, valid=line(9), valid_every=1).steps


class Writer:
    """Has no more than print() needs."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


class Broken(io.StringIO):
    """A terminal that is gone after some lines."""

    def __init__(self, error):
        super().__init__()
        self.error, self.calls = error, 0

    def isatty(self):
        return True

    def write(self, text):
        self.calls += 1
        if self.calls > 3:
            raise self.error
        return super().write(text)


def test_any_stream_will_do(monkeypatch):
    for stream in (None, io.StringIO(), Writer()):
        monkeypatch.setattr(sys, "stderr", stream)
        assert train() == 40


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "No space left"), ValueError("closed")])
def test_what_cannot_be_shown_ends_no_training(monkeypatch, error):
    stream = Broken(error)
    monkeypatch.setattr(sys, "stderr", stream)
    assert train() == 40 and stream.calls == 4


@pytest.mark.parametrize("redirected", ["2>&-", "2>&1 >/dev/null | head -1 >/dev/null"])
def test_in_a_shell(redirected):
    words = f'cd "$3" && "$1" -c "$2" {redirected}; echo "${{PIPESTATUS[0]}}"'
    folder = __file__.rpartition("/")[0]
    done = subprocess.run(
        ["bash", "-c", words, "sh", sys.executable, TRAIN, folder], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "0", done
