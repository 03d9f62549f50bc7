"""reel.train(run=...): what is in the folder at the end, however it comes."""

import os
import subprocess

import numpy as np
import pytest

import reel
from programs import program
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


def halves(step):
    return 0.5 ** (step // 10)


def test_the_config_has_what_the_training_does(tmp_path):
    """Its keys are those of every run, so that compare sees where two runs differ."""

    def config(name, **options):
        reel.train({"w": reel.zeros(1)}, line, line_loss, steps=4, progress=False, run=tmp_path / name, **options)
        return reel.Run(tmp_path / name).config

    usual = config("usual")
    assert {name: usual[name] for name in ("steps", "accumulate", "valid-every", "patience", "carry", "schedule")} == {
        "steps": 4, "accumulate": 1, "valid-every": 0, "patience": 0, "carry": False, "schedule": "constant",
    }  # fmt: skip
    assert config("same", schedule=reel.optim.Schedule("constant")) == usual
    assert config("parts", accumulate=2) == {**usual, "accumulate": 2}
    stops = config("stops", valid=line(9), valid_every=2, patience=3)
    assert stops == {**usual, "valid-every": 2, "patience": 3}
    cosine = config("cosine", schedule=reel.optim.Schedule("cosine", 9, warmup=2, floor=0.1))
    assert cosine == {**usual, "schedule": "cosine", "schedule-steps": 9, "warmup": 2, "lr-floor": 0.1}
    falls = config("falls", schedule=reel.optim.Schedule("step", every=3, factor=0.1))
    assert falls == {**usual, "schedule": "step", "lr-every": 3, "lr-factor": 0.1}
    assert config("own", schedule=halves)["schedule"] == "halves"


def test_compare_tells_runs_apart_by_what_the_training_does(tmp_path):
    for name, options in (("a", {}), ("b", {"accumulate": 2}), ("c", {"schedule": halves})):
        p = {"w": reel.zeros(1)}
        reel.train(p, line, line_loss, steps=4, valid=line(9), progress=False, run=tmp_path / name, **options)
    command = [program("compare"), *(tmp_path / name for name in "abc"), "--out", tmp_path / "all.svg"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 or "gnuplot" in done.stderr, done.stderr
    if done.returncode == 0:
        text = (tmp_path / "all.svg").read_text()
        assert "accumulate 2, schedule constant" in text and "accumulate 1, schedule halves" in text
