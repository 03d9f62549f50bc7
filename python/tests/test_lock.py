"""A run's folder belongs to one process at a time."""

import os
import subprocess
import sys
import time

import pytest

import reel
from programs import program
from test_train import line, line_loss

HOLD = """
import sys
from reel._lock import locked
with locked(sys.argv[1]):
    print("has it", flush=True)
    sys.stdin.read()
"""


def train(folder):
    return reel.train({"w": reel.zeros(1)}, line, line_loss, steps=2, run=folder, progress=False)


def test_one_of_several_processes_makes_a_run(tmp_path):
    for attempt in range(10):
        folder, start = tmp_path / str(attempt), time.time() + 0.05
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                while time.time() < start:
                    pass
                try:
                    reel.Run.create(folder, {"a": 1})
                    os._exit(0)
                except reel.Error as e:
                    os._exit(1 if "holds a run already: config.toml" in str(e) else 2)
            children.append(child)
        ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert sorted(ends) == [0, 1, 1]
        assert reel.Run(folder).config == {"a": 1}


def test_a_config_that_cannot_be_written_leaves_no_run(tmp_path, monkeypatch):
    def full(path, text):
        raise reel.Error("the disk is full")

    monkeypatch.setattr(reel._reel, "_write_atomically", full)
    with pytest.raises(reel.Error, match="the disk is full"):
        reel.Run.create(tmp_path / "r")
    assert os.listdir(tmp_path / "r") == []


def test_training_locks_the_folder_while_it_lasts(tmp_path):
    run = reel.Run.create(tmp_path / "r")
    child = subprocess.Popen([sys.executable, "-c", HOLD, run.path], stdin=-1, stdout=-1, text=True)
    assert child.stdout.readline() == "has it\n"
    with pytest.raises(reel.Error, match=rf"r. is in use by -c \(process {child.pid} on .*\) since .*Hint: wait until"):
        train(run)
    child.kill()
    child.wait()
    assert (tmp_path / "r" / "lock").exists()  # the system released it
    seen = []

    def batches(i):
        seen.append((tmp_path / "r" / "lock").read_text())
        return line(i)

    reel.train({"w": reel.zeros(1)}, batches, line_loss, steps=2, run=run, progress=False)
    assert f"(process {os.getpid()} on " in seen[1] and not (tmp_path / "r" / "lock").exists()


def test_a_process_that_was_forked_holds_nothing(tmp_path):
    """It may outlive the training, as a loader's worker does."""
    run, children = reel.Run.create(tmp_path / "r"), []

    def batches(i):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        children.append(child)
        raise OSError("no more data")

    with pytest.raises(OSError, match="no more data"):
        reel.train({"w": reel.zeros(1)}, batches, line_loss, steps=2, run=run, progress=False)
    (tmp_path / "r" / "run.json").unlink()
    (tmp_path / "r" / "best.safetensors").unlink()
    assert train(run).steps == 2
    os.kill(children[0], 9)
    os.waitpid(children[0], 0)


def test_programs_and_python_have_one_lock(tmp_path):
    folder = tmp_path / "r"
    words = [program("copying"), "--steps", "1000000", "--hidden", "8", "--quiet", "--out", str(folder)]
    child = subprocess.Popen(words)
    while not (folder / "config.toml").exists():
        assert child.poll() is None
        time.sleep(0.01)
    with pytest.raises(reel.Error, match=rf"is in use by copying \(process {child.pid} on "):
        train(reel.Run(folder))
    child.terminate()
    child.wait()
    hold = subprocess.Popen([sys.executable, "-c", HOLD, folder], stdin=-1, stdout=-1, text=True)
    assert hold.stdout.readline() == "has it\n"
    done = subprocess.run([program("copying"), "--resume", folder], capture_output=True, text=True)
    hold.kill()
    hold.wait()
    assert done.returncode != 0 and f"is in use by -c (process {hold.pid} on " in done.stderr


def test_a_folder_that_took_the_place_of_the_runs_is_left_alone(tmp_path):
    folder, moved = tmp_path / "r", tmp_path / "moved"

    def batches(i):
        if i == 1:
            folder.rename(moved)
            folder.mkdir()
            (folder / "lock").write_text("another program's")
        return line(i)

    with pytest.raises(reel.Error, match="r. is not the folder of this run any more"):
        reel.train({"w": reel.zeros(1)}, batches, line_loss, steps=3, run=folder, progress=False)
    assert [path.name for path in folder.iterdir()] == ["lock"]
    assert (folder / "lock").read_text() == "another program's"
    assert (moved / "config.toml").exists() and not (moved / "run.json").exists()


def test_a_lock_that_is_no_file_is_refused(tmp_path):
    run = reel.Run.create(tmp_path / "r")
    os.mkfifo(tmp_path / "r" / "lock")
    with pytest.raises(reel.Error, match="lock. cannot be written: it is not an ordinary file"):
        train(run)
    assert (tmp_path / "r" / "lock").is_fifo()


def test_programs_leave_a_run_that_python_has_made(tmp_path):
    run = reel.Run.create(tmp_path / "r", {"cell": "lstm"})
    words = [program("adding"), "--steps", "2", "--length", "5", "--hidden", "4", "--out", run.path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode != 0 and "holds a run of Python's reel.train" in done.stderr
    assert run.config == {"cell": "lstm"} and train(run).steps == 2
