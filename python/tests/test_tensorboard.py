"""--tensorboard, read by TensorBoard itself: numbers, histograms and pictures, of a whole run and of a resumed one."""

import csv
import shutil
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file

from programs import program

event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

OPTIONS = "--cell gru --hidden 8 --delay 5 --batch 4 --valid-size 4 --threads 1 --seed 3 --quiet".split()
COLUMNS = ["train_loss", "valid_loss", "accuracy", "grad_norm"]


def run(folder, *words, task="copying", options=OPTIONS):
    command = [program(task), *options, *map(str, words)] if folder else [program(task), *map(str, words)]
    done = subprocess.run(command + (["--out", str(folder)] if folder else []), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def read(folder):
    everything = dict.fromkeys(["scalars", "histograms", "images", "tensors"], 0)
    events = event_accumulator.EventAccumulator(str(folder), size_guidance=everything)
    events.Reload()
    return events


def rows(folder):
    with open(folder / "metrics.csv") as file:
        return list(csv.DictReader(file))


def same_scalars(events, metrics):
    for name in COLUMNS:
        found = events.Scalars(name)
        assert [e.step for e in found] == [int(row["step"]) for row in metrics]
        np.testing.assert_array_equal([e.value for e in found], [np.float32(row[name]) for row in metrics])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("tensorboard")
    run(place / "run", "--steps", 6, "--valid-every", 1, "--tensorboard", place / "events")
    return place


def test_numbers_are_those_of_metrics(whole):
    events = read(whole / "events/run")
    assert set(events.Tags()["scalars"]) == set(COLUMNS)
    same_scalars(events, rows(whole / "run"))


def test_histograms_are_those_of_parameters(whole):
    events, saved = read(whole / "events/run"), load_file(whole / "run/checkpoint.safetensors")
    tags = [tag for tag in events.Tags()["histograms"] if tag.startswith("parameters/")]
    assert len(tags) == 15
    for tag in tags:
        last, values = events.Histograms(tag)[-1], saved[tag.removeprefix("parameters/")].astype(float).ravel()
        h = last.histogram_value
        assert last.step == 6 and h.num == values.size and h.min == values.min() and h.max == values.max()
        np.testing.assert_allclose([h.sum, h.sum_squares], [values.sum(), (values**2).sum()], rtol=1e-12, atol=1e-12)
        edges = np.concatenate([[-np.inf], h.bucket_limit])
        assert list(h.bucket) == [((values > low) & (values <= high)).sum() for low, high in zip(edges, edges[1:])]


def test_histograms_are_those_of_gradients(whole):
    """With a validation after each update, the gradients' norm is that of this update."""
    events = read(whole / "events/run")
    tags = [tag for tag in events.Tags()["histograms"] if tag.startswith("gradients/")]
    assert len(tags) == 15
    for at, row in enumerate(rows(whole / "run")):
        squares = sum(events.Histograms(tag)[at].histogram_value.sum_squares for tag in tags)
        assert np.sqrt(squares) == pytest.approx(float(row["grad_norm"]), rel=1e-6)


def test_pictures(whole):
    (picture,) = read(whole / "events/run").Images("pictures/curve")
    png = (whole / "run/curve.png").read_bytes()
    assert picture.encoded_image_string == png
    assert (picture.width, picture.height) == (int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big"))


def test_a_resumed_run_goes_on_in_a_further_file(tmp_path):
    run(tmp_path / "run", "--steps", 4, "--valid-every", 2, "--tensorboard", tmp_path / "events")
    run(None, "--resume", tmp_path / "run", "--steps", 8)
    assert len(list((tmp_path / "events/run").glob("events.out.*"))) == 2
    same_scalars(read(tmp_path / "events/run"), rows(tmp_path / "run"))


def test_what_a_killed_run_wrote_after_its_checkpoint_is_replaced(tmp_path):
    run(tmp_path / "run", "--steps", 4, "--valid-every", 2, "--tensorboard", tmp_path / "events")
    checkpoint = (tmp_path / "run/checkpoint.safetensors").read_bytes()
    run(None, "--resume", tmp_path / "run", "--steps", 8)
    (tmp_path / "run/checkpoint.safetensors").write_bytes(checkpoint)  # as if it had been killed before it saved
    run(None, "--resume", tmp_path / "run", "--steps", 12)
    metrics = rows(tmp_path / "run")
    assert len(metrics) == 6
    same_scalars(read(tmp_path / "events/run"), metrics)


def test_a_run_that_starts_anew_replaces_the_old_one(tmp_path):
    run(tmp_path / "run", "--steps", 8, "--valid-every", 2, "--tensorboard", tmp_path / "events")
    shutil.rmtree(tmp_path / "run")
    run(tmp_path / "run", "--steps", 6, "--valid-every", 2, "--lr", 0.01, "--tensorboard", tmp_path / "events")
    assert [folder.name for folder in (tmp_path / "events").iterdir()] == ["run"]
    same_scalars(read(tmp_path / "events/run"), rows(tmp_path / "run"))


def test_a_finished_run_that_is_resumed_writes_nothing_twice(tmp_path):
    (tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 40)
    options = "--cell gru --hidden 4 --batch 2 --unroll 5 --valid-every 2 --threads 1 --quiet".split()
    words = ["--text", tmp_path / "text.txt", "--steps", 4, "--tensorboard", tmp_path / "events"]
    run(tmp_path / "run", *words, task="charlm", options=options)
    for steps in (4, 4, 6, 6):
        run(None, "--resume", tmp_path / "run", "--steps", steps, task="charlm")
    events = read(tmp_path / "events/run")
    assert [e.step for e in events.Scalars("test/loss")] == [4, 6]
    assert [e.step for e in events.Images("pictures/curve")] == [4, 6]


def test_files_keep_their_order_when_the_clock_has_gone_back(tmp_path):
    run(tmp_path / "run", "--steps", 4, "--valid-every", 2, "--tensorboard", tmp_path / "events")
    (file,) = (tmp_path / "events/run").glob("events.out.*")
    file.rename(file.with_name("events.out.tfevents.4000000000.000000.reel.1"))
    for steps in (6, 8):
        run(None, "--resume", tmp_path / "run", "--steps", steps)
    same_scalars(read(tmp_path / "events/run"), rows(tmp_path / "run"))
