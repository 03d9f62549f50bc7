"""reel.train(run=...): what is in the folder at the end, however it comes."""

import os

import numpy as np
import pytest

import reel
from test_train import line, line_loss


@pytest.mark.parametrize("interrupted", ["write_metrics", "write_best"])
def test_the_best_step_has_a_row_after_ctrl_c(tmp_path, monkeypatch, interrupted):
    usual, calls = getattr(reel.Run, interrupted), []

    def interrupt(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        usual(*args)

    run = reel.Run.create(tmp_path / "r")
    monkeypatch.setattr(reel.Run, interrupted, interrupt)
    p = {"w": reel.zeros(1)}
    optimizer = reel.optim.SGD(p, 0.1)
    history = reel.train(
        p, line, line_loss, steps=9, valid=line(9), valid_every=1, optimizer=optimizer, run=run, progress=False
    )
    assert history.stopped == "interrupted" and history.best_step in history.metrics["step"]
    assert run.metrics["step"] == history.metrics["step"] == [1, 2, 3]
    found = reel.load_metadata(tmp_path / "r" / "best.safetensors")
    assert (found["step"], float(found["valid_loss"])) == (str(history.best_step), history.best_loss)
    assert run.best()["w"].item() == history.best["w"].item() == p["w"].item()


def test_a_run_of_your_own_has_the_model(tmp_path):
    x = np.ones((3, 2, 1), "f4")
    model = reel.Model(inputs=1, outputs=1, hidden=4)
    run = reel.Run.create(tmp_path / "r", {"note": "mine"})
    reel.train(model, [(x, x)], reel.mse, progress=False, run=run)
    reel.train(model, [(x, x)], reel.mse, progress=False, run=tmp_path / "s")
    assert (tmp_path / "r" / "model.json").read_text() == (tmp_path / "s" / "model.json").read_text()
    own = reel.Run.create(tmp_path / "own")
    own.write_model(reel.Model(inputs=1, outputs=1, hidden=5))
    text = (tmp_path / "own" / "model.json").read_text()
    reel.train(model, [(x, x)], reel.mse, progress=False, run=own)
    assert (tmp_path / "own" / "model.json").read_text() == text
    assert "lock" not in os.listdir(own.path)
