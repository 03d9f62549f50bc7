"""Names and layouts of torch.nn.LSTM, GRU and RNN to those of Reel's cells, and back, in safetensors files.

python3 convert.py reel STATE_DICT.safetensors W.safetensors [LAYER] writes a layer (0 if not given) for
`apply --weights W.safetensors`; python3 convert.py pytorch W.safetensors STATE_DICT.safetensors writes such a file as the
state dict of a module with one layer, for load_state_dict(). The packages are numpy and safetensors.
"""

import argparse
import re
import sys

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

# The gates of a matrix of PyTorch from top to bottom, and the names of Reel's matrices that multiply x and h.
CELLS = {
    "lstm": (["_i", "_f", "_g", "_o"], "W", "R"),
    "gru": (["_r", "_z", "_c"], "U", "W"),
    "rnn": ([""], "U", "W"),
}


def names(of_x, of_h):
    """PyTorch's name and Reel's, for each matrix and bias."""
    return [("weight_ih", of_x), ("weight_hh", of_h), ("bias_ih", "b"), ("bias_hh", "b2")]


def gates_of(state_dict, layer):
    """How many gates a layer has. Throws ValueError for tensors that are missing or would be left over."""
    for name in state_dict:
        if not re.fullmatch(r"(weight|bias)_(ih|hh)_l\d+", name):
            hint = ". Hint: names without a prefix, weight_ih_l0" if "." in name else ""
            raise ValueError(f"{name} has no place in a cell of Reel{hint}")
    for theirs, _ in names("", ""):
        if f"{theirs}_l{layer}" not in state_dict:
            hint = ". Hint: of a module with bias=False, biases of 0" if theirs.startswith("bias") else ""
            raise ValueError(f"{theirs}_l{layer} is missing{hint}")
    shape = state_dict[f"weight_hh_l{layer}"].shape
    gates = shape[0] / shape[1] if len(shape) == 2 and shape[1] > 0 else 0
    if gates not in [len(cell[0]) for cell in CELLS.values()]:
        raise ValueError(f"weight_hh_l{layer} of shape [H, H], [3 H, H] or [4 H, H] is expected, got {list(shape)}")
    return int(gates)


def to_reel(state_dict, layer=0):
    """A layer's tensors by the names of Reel's lstm, gru or rnn: how many gates there are tells which."""
    count = gates_of(state_dict, layer)
    gates, of_x, of_h = next(cell for cell in CELLS.values() if len(cell[0]) == count)
    out = {}
    for theirs, ours in names(of_x, of_h):
        for gate, part in zip(gates, np.split(state_dict[f"{theirs}_l{layer}"], len(gates))):
            out[ours + gate] = np.ascontiguousarray(part)
    return out


def cell_of(tensors):
    """The name of the cell with these tensors. Throws ValueError if there is none, or some are missing or left over."""
    found = [name for name, (gates, of_x, _) in CELLS.items() if of_x + gates[0] in tensors]
    if not found:
        hint = ". Hint: names without a prefix" if any("." in name for name in tensors) else ""
        raise ValueError(f"the tensors of lstm (W_i, ...), gru (U_r, ...) or rnn (U, ...) are expected{hint}")
    gates, of_x, of_h = CELLS[found[0]]
    biases = ["b", "b2"] if any("b2" + gate in tensors for gate in gates) else ["b"]
    needed = {ours + gate for ours in (of_x, of_h, *biases) for gate in gates}
    for name in sorted(needed - set(tensors)):
        raise ValueError(f"{name} of {found[0]} is missing")
    for name in sorted(set(tensors) - needed):
        raise ValueError(f"{name} has no place in PyTorch's {found[0]}")
    return found[0]


def to_pytorch(tensors):
    """The state dict of a module with one layer. Of a cell with one bias a gate, the second one is 0 in PyTorch."""
    gates, of_x, of_h = CELLS[cell_of(tensors)]
    out = {}
    for theirs, ours in names(of_x, of_h):
        stacked = [tensors.get(ours + gate, np.zeros_like(tensors["b" + gate])) for gate in gates]
        out[f"{theirs}_l0"] = np.concatenate(stacked)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("to", choices=["reel", "pytorch"], help="whose names and layouts the new file has")
    parser.add_argument("source", metavar="FROM.safetensors")
    parser.add_argument("target", metavar="TO.safetensors")
    parser.add_argument("layer", nargs="?", type=int, default=0, help="of the state dict, with reel (0 if not given)")
    o = parser.parse_args()
    try:
        tensors = load_file(o.source)
        save_file(to_reel(tensors, o.layer) if o.to == "reel" else to_pytorch(tensors), o.target)
    except (OSError, SafetensorError, ValueError) as error:
        sys.exit(f"convert.py: {o.source}: {error}")


if __name__ == "__main__":
    main()
