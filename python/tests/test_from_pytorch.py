"""examples/from_pytorch/convert.py: state dicts of PyTorch through `apply`, and back."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reel
from programs import program

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "from_pytorch"


def load(path):
    return {name: tensor.numpy() for name, tensor in reel.load_safetensors(str(path)).items()}


def convert(*words):
    subprocess.run([sys.executable, EXAMPLE / "convert.py", *map(str, words)], check=True)


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_weights_to_reel_and_back(cell, tmp_path):
    pytest.importorskip("safetensors")
    theirs, sequence = load(EXAMPLE / "data" / f"{cell}.safetensors"), load(EXAMPLE / "data" / f"{cell}-sequence.safetensors")
    x = sequence["x"]
    for layer in (0, 1):  # each layer's outputs are the next one's input
        weights, back = tmp_path / f"W{layer}.safetensors", tmp_path / "back.safetensors"
        convert("reel", EXAMPLE / "data" / f"{cell}.safetensors", weights, layer)
        reel.save_safetensors(str(tmp_path / "X.safetensors"), {"x": reel.tensor(x)})
        subprocess.run([program("apply"), "--cell", cell, "--dtype", "f64", "--weights", weights, "--input",
                        tmp_path / "X.safetensors", "--output", tmp_path / "Y.safetensors"], check=True)
        x = load(tmp_path / "Y.safetensors")["y"]
        convert("pytorch", weights, back)
        for name, tensor in load(back).items():
            assert np.array_equal(tensor, theirs[name.replace("_l0", f"_l{layer}")])
    # The state dict and y are stored in f32; the equations were computed in double precision.
    np.testing.assert_allclose(x, sequence["y"], atol=1e-6)


def test_one_bias_becomes_two(tmp_path):
    pytest.importorskip("safetensors")
    cell = reel.cell("lstm", 3, 4, biases="1")
    reel.save_safetensors(str(tmp_path / "W.safetensors"), cell.parameters())
    convert("pytorch", tmp_path / "W.safetensors", tmp_path / "back.safetensors")
    found = load(tmp_path / "back.safetensors")
    assert found["weight_ih_l0"].shape == (16, 3) and not found["bias_hh_l0"].any()
    assert np.array_equal(found["bias_ih_l0"][4:8], cell.parameters()["b_f"].numpy())


@pytest.mark.parametrize("to,tensors,error", [
    ("reel", {"weight_hh_l0_reverse": (4, 4)}, "weight_hh_l0_reverse has no place in a cell of Reel"),
    ("reel", {"weight_hr_l0": (2, 4)}, "weight_hr_l0 has no place in a cell of Reel"),
    ("reel", {"lstm.weight_ih_l0": (16, 3)}, "Hint: names without a prefix"),
    ("reel", {"weight_ih_l0": (16, 3), "weight_hh_l0": (16, 4)}, "bias_ih_l0 is missing. Hint: of a module with bias=False"),
    ("reel", {"weight_ih_l0": (8, 3), "weight_hh_l0": (8, 4), "bias_ih_l0": (8,), "bias_hh_l0": (8,)}, "got [8, 4]"),
    ("pytorch", {"U": (4, 3), "W": (4, 4)}, "b of rnn is missing"),
    ("pytorch", {"U": (4, 3), "W": (4, 4), "b": (4,), "g": (4,)}, "g has no place in PyTorch's rnn"),
    ("pytorch", {"cell.U": (4, 3)}, "are expected. Hint: names without a prefix"),
])
def test_no_tensor_is_left_out(to, tensors, error, tmp_path):
    pytest.importorskip("safetensors")
    reel.save_safetensors(str(tmp_path / "in.safetensors"), {name: reel.zeros(shape) for name, shape in tensors.items()})
    done = subprocess.run([sys.executable, EXAMPLE / "convert.py", to, tmp_path / "in.safetensors", tmp_path / "out.safetensors"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and error in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out.safetensors").exists()
