"""Names and layouts of torch.nn.LSTM, GRU and RNN to those of Reel's cells, and back, in safetensors files.

python3 convert.py reel STATE_DICT.safetensors W.safetensors [LAYER] writes a layer (0 if not given) for
`apply --weights W.safetensors`; python3 convert.py pytorch W.safetensors STATE_DICT.safetensors writes such a file as the
state dict of a module with one layer, for load_state_dict(). The packages are numpy and safetensors.
"""

import argparse

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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("to", choices=["reel", "pytorch"], help="whose names and layouts the new file has")
    parser.add_argument("source", metavar="FROM.safetensors")
    parser.add_argument("target", metavar="TO.safetensors")
    parser.add_argument("layer", nargs="?", type=int, default=0, help="of the state dict, with reel (0 if not given)")
    o = parser.parse_args()
    tensors = load_file(o.source)
    save_file(to_reel(tensors, o.layer) if o.to == "reel" else to_pytorch(tensors), o.target)


if __name__ == "__main__":
    main()
