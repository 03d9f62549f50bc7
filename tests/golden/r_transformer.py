"""One level of the R-Transformer (sheet 21) around any cell: local RNN, causal attention, feed-forward, each as
x + sub(LN(x)). Dropout is off."""

import numpy as np
import torch
from torch.nn.functional import linear

import cells
from activations import relu
from recurrent import Cell, gate_shapes, generate_cells

D, HEADS, WIDTH = 4, 2, 5  # width of the level, heads, hidden width of SRNN
NORM_EPSILON = 1e-6

# NumPy step, PyTorch run, shapes, states of the cell inside: PyTorch's form with two biases, or SRNN.
INNER = {
    "rnn": (cells.rnn_step("tanh"), cells.torch_module(torch.nn.RNN(D, D), [""], "U", "W"),
            gate_shapes([""], "U", "W", D, D, ("b", "b2")), 1),
    "gru": (cells.gru_step("after"), cells.torch_module(torch.nn.GRU(D, D), ["_r", "_z", "_c"], "U", "W"),
            gate_shapes(["_r", "_z", "_c"], "U", "W", D, D, ("b", "b2")), 1),
    "lstm": (cells.lstm_step, cells.torch_module(torch.nn.LSTM(D, D), ["_i", "_f", "_g", "_o"], "W", "R"),
             gate_shapes(["_i", "_f", "_g", "_o"], "W", "R", D, D, ("b", "b2")), 2),
    "srnn": (cells.srnn_step(1, True, relu), cells.torch_srnn(1, True, torch.relu),
             cells.srnn_shapes(1, True, D, D, WIDTH), 1),
}


def part(p, prefix):
    return {k.removeprefix(prefix): a for k, a in p.items() if k.startswith(prefix)}


def level(inner, window):
    numpy_step, torch_inner, inner_shapes, states = INNER[inner]
    size = D // HEADS

    # ------------------------------------------------------------ NumPy, one sequence x [T, D]
    def norm(p, k, x):
        """a (x - mean) / (std + 1e-6) + b, std with d - 1 in the denominator"""
        a, b = p[f"norm{k}.a"], p[f"norm{k}.b"]
        return np.array([a * (v - np.mean(v)) / (np.std(v, ddof=1) + NORM_EPSILON) + b for v in x])

    def local_rnn(p, x, kinks):
        """At each t the last state of a run over x_{t-K+1} .. x_t from state 0; before the start x is 0."""
        y = []
        for t in range(len(x)):
            state = (np.zeros(D),) * states
            for s in range(t - window + 1, t + 1):
                state = numpy_step(p, state, x[s] if s >= 0 else np.zeros(D), kinks)
            y.append(state[0])
        return np.array(y)

    def attention(p, x):
        """Each head, at each t, weighs the times s <= t."""
        q, k, v = ([p[f"W_{name}"] @ x_t + p[f"b_{name}"] for x_t in x] for name in "qkv")
        y = []
        for t in range(len(x)):
            heads = []
            for cut in (slice(h * size, (h + 1) * size) for h in range(HEADS)):
                weight = np.exp([q[t][cut] @ k[s][cut] / np.sqrt(size) for s in range(t + 1)])
                heads.append(sum(w * v[s][cut] for s, w in enumerate(weight)) / np.sum(weight))
            y.append(p["W_o"] @ np.concatenate(heads) + p["b_o"])
        return np.array(y)

    def feed_forward(p, x, kinks):
        return np.array([p["W_2"] @ relu(p["W_1"] @ x_t + p["b_1"], kinks) + p["b_2"] for x_t in x])

    def numpy_run(p, state, x, kinks):
        x = x + local_rnn(part(p, "rnn."), norm(p, 1, x), kinks)
        x = x + attention(p, norm(p, 2, x))
        return x + feed_forward(p, norm(p, 3, x), kinks), ()

    # ------------------------------------------------------------ PyTorch, x [T, B, D]
    def torch_norm(p, k, x):
        deviation = x - x.mean(-1, keepdim=True)
        std = torch.sqrt(deviation.square().sum(-1, keepdim=True) / (D - 1))
        return p[f"norm{k}.a"] * deviation / (std + NORM_EPSILON) + p[f"norm{k}.b"]

    def torch_local_rnn(p, x):
        """All windows at once, as a batch of T * B sequences."""
        T, B = x.shape[:2]
        padded = torch.cat([torch.zeros(window - 1, B, D), x])
        windows = padded.unfold(0, window, 1).permute(3, 0, 1, 2).reshape(window, T * B, D)
        return torch_inner(p, (torch.zeros(T * B, D, dtype=x.dtype),) * states, windows)[0][-1].view(T, B, D)

    def torch_attention(p, x):
        q, k, v = (linear(x, p[f"W_{name}"], p[f"b_{name}"]).unflatten(-1, (HEADS, size)) for name in "qkv")
        scores = torch.einsum("tbhd,sbhd->bhts", q, k) / size ** 0.5
        scores = scores.masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -1e9)
        heads = torch.einsum("bhts,sbhd->tbhd", torch.softmax(scores, -1), v)
        return linear(heads.flatten(-2), p["W_o"], p["b_o"])

    def torch_run(p, states, x):
        x = x + torch_local_rnn(part(p, "rnn."), torch_norm(p, 1, x))
        x = x + torch_attention(p, torch_norm(p, 2, x))
        return x + linear(torch.relu(linear(torch_norm(p, 3, x), p["W_1"], p["b_1"])), p["W_2"], p["b_2"]), ()

    shapes = {"rnn." + k: shape for k, shape in inner_shapes.items()}
    for k in (1, 2, 3):
        shapes |= {f"norm{k}.a": (D,), f"norm{k}.b": (D,)}
    for k in "qkvo":
        shapes |= {f"W_{k}": (D, D), f"b_{k}": (D,)}
    shapes |= {"W_1": (4 * D, D), "b_1": (4 * D,), "W_2": (D, 4 * D), "b_2": (D,)}
    settings = {"cell": inner, "window": window, "heads": HEADS} | ({"width": WIDTH} if inner == "srnn" else {})
    return Cell(f"r_transformer_{inner}", "r_transformer", settings, shapes, {}, numpy_run, torch_run, D, input=D)


CELLS = [level("rnn", 3), level("gru", 3), level("lstm", 2), level("srnn", 3)]


def generate(folder):
    return generate_cells(folder, CELLS)
