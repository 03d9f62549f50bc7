"""Names and layouts of torch.nn.LSTM, GRU and RNN to those of Reel's cells, and back, in safetensors files.

python3 convert.py reel STATE_DICT.safetensors W.safetensors [LAYER] writes a layer (0 if not given) for
`apply --weights W.safetensors`; python3 convert.py pytorch W.safetensors STATE_DICT.safetensors writes such a file as the
state dict of a module with one layer, for load_state_dict(). The packages are numpy and safetensors.
"""

import sys

import numpy as np
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


def to_reel(state_dict, layer=0):
    """A layer's tensors by the names of Reel's lstm, gru or rnn: how many gates there are tells which."""
    rows, hidden = state_dict[f"weight_hh_l{layer}"].shape
    gates, of_x, of_h = next(cell for cell in CELLS.values() if len(cell[0]) == rows // hidden)
    out = {}
    for theirs, ours in names(of_x, of_h):
        for gate, part in zip(gates, np.split(state_dict[f"{theirs}_l{layer}"], len(gates))):
            out[ours + gate] = np.ascontiguousarray(part)
    return out


def to_pytorch(tensors):
    """The state dict of a module with one layer. Of a cell with one bias a gate, the second one is 0 in PyTorch."""
    gates, of_x, of_h = next(cell for cell in CELLS.values() if cell[1] + cell[0][0] in tensors)
    out = {}
    for theirs, ours in names(of_x, of_h):
        stacked = [tensors.get(ours + gate, np.zeros_like(tensors["b" + gate])) for gate in gates]
        out[f"{theirs}_l0"] = np.concatenate(stacked)
    return out


if __name__ == "__main__":
    kind, source, target = sys.argv[1:4]
    convert = {"reel": lambda t: to_reel(t, int((sys.argv[4:] or ["0"])[0])), "pytorch": to_pytorch}[kind]
    save_file(convert(load_file(source)), target)
