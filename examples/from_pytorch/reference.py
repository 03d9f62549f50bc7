"""The files in data/: state dicts with the names and the layout of torch.nn.LSTM, GRU and RNN, and what these modules
compute from a sequence, by the equations in PyTorch's documentation, in NumPy and in double precision.

python3 reference.py writes them again, with the packages numpy and safetensors. The gates of a matrix lie below each
other: i, f, g, o of an LSTM [4 H, ...] and r, z, n of a GRU [3 H, ...]; layer k has the names weight_ih_lk and so on.
"""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

T, B, I, H, LAYERS = 7, 2, 3, 5, 2


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def lstm(x, h, c, w_ih, w_hh, b_ih, b_hh):
    i, f, g, o = np.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(x, h, c, w_ih, w_hh, b_ih, b_hh):
    x_r, x_z, x_n = np.split(x @ w_ih.T + b_ih, 3, axis=1)
    h_r, h_z, h_n = np.split(h @ w_hh.T + b_hh, 3, axis=1)
    r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
    n = np.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h, c


def rnn(x, h, c, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh), c


def main():
    random = np.random.default_rng(1997)
    folder = Path(__file__).parent / "data"
    for name, step, gates in [("lstm", lstm, 4), ("gru", gru, 3), ("rnn", rnn, 1)]:
        weights = {}
        for k in range(LAYERS):
            rows = gates * H
            shapes = {"weight_ih": (rows, H if k else I), "weight_hh": (rows, H), "bias_ih": (rows,), "bias_hh": (rows,)}
            for parameter, shape in shapes.items():
                weights[f"{parameter}_l{k}"] = random.uniform(-0.9, 0.9, shape).astype(np.float32)
        save_file(weights, folder / f"{name}.safetensors")

        x = random.normal(size=(T, B, I)).astype(np.float32)
        values = x.astype(np.float64)
        for k in range(LAYERS):
            of_layer = [weights[f"{p}_l{k}"].astype(np.float64) for p in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            h, c, outputs = np.zeros((B, H)), np.zeros((B, H)), []
            for x_t in values:
                h, c = step(x_t, h, c, *of_layer)
                outputs.append(h)
            values = np.stack(outputs)
        save_file({"x": x, "y": values}, folder / f"{name}-sequence.safetensors")


if __name__ == "__main__":
    main()
