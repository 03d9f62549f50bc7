"""Paths of every kind, also those whose bytes are no UTF-8."""

import json
import os
import sys

import numpy as np
import pytest

import reel


@pytest.fixture
def folder(tmp_path):
    """The path of a folder, as bytes, that is no UTF-8."""
    path = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.mkdir(path)
    except OSError:
        pytest.skip("the file system takes UTF-8 alone")
    return path


def test_files_of_tensors(folder):
    for path in (folder + b"/x.st", os.fsdecode(folder + b"/y.st")):
        reel.save_safetensors(path, {"x": np.ones(2, np.float32)}, {"a": "b"})
        assert reel.load_safetensors(path)["x"].tolist() == [1, 1] and reel.load_metadata(path) == {"a": "b"}
    with pytest.raises(reel.Error, match=r"caf\\xe9/none.st\] cannot be read: No such file"):
        reel.load_safetensors(folder + b"/none.st")


def test_runs(folder, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", os.fsdecode(folder)])
    model = reel.Model(inputs=1, outputs=1, cell="gru", hidden=2)
    x = np.ones((3, 2, 1), np.float32)
    reel.train(model, [(x, x)], reel.mse, progress=False, run=os.fsdecode(folder + b"/run"))
    run = reel.Run(folder + b"/run")
    assert run.record["steps"] == 1 and run.model().count == model.count
    json.dumps(run.record, ensure_ascii=False).encode()  # all of it is UTF-8
    text = open(folder + b"/run/run.json", encoding="utf-8").read()
    assert "caf?" in text


def test_explanations(folder):
    path = os.fsdecode(folder + b"/e.html")
    reel.explain(lambda h, x: (h + x, None), reel.ones(2), reel.ones((3, 2))).save(path)
    assert os.path.getsize(path) > 1000


def test_names_and_metadata_are_utf8(tmp_path):
    x = np.ones(2, np.float32)
    for tensors, metadata in (({"\ud800": x}, None), ({"x": x}, {"a": "\ud800"}), ({"x": x}, {"\ud800": "a"})):
        with pytest.raises(reel.Error, match=r"\[save_safetensors\] .* has no UTF-8: '\\ud800'"):
            reel.save_safetensors(tmp_path / "x.st", tensors, metadata)
    assert not list(tmp_path.iterdir())


def test_names_with_a_nul_and_parameters_of_pytorch(tmp_path):
    path = tmp_path / "x.safetensors"
    reel.save_safetensors(path, {"a\0x": reel.tensor([1.0]), "a\0y": reel.tensor([2.0])})
    assert {k: v.tolist() for k, v in reel.load_safetensors(path).items()} == {"a\0x": [1], "a\0y": [2]}
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    reel.save_safetensors(path, {"w": torch.nn.Parameter(torch.ones(2))})
    assert reel.load_safetensors(path)["w"].tolist() == [1, 1]
