"""The cells the engine began with: rnn, lstm, gru, srnn (sheet 1, 4, 6, 20).

PyTorch's side is its own nn.RNN, nn.LSTM, nn.GRU where the cell is one of those, else batched row-vector code.
"""

import numpy as np
import torch
from torch.func import functional_call

from activations import LEAKY_SLOPE, leaky_relu, relu, sigmoid
from recurrent import Cell, gate_shapes, generate_cells, recurrence, torch_recurrence

T, B, INPUT, N = 7, 3, 4, 6  # steps, batch, input size, state size
WIDTH = 5                    # hidden width of SRNN's beta network


# ---------------------------------------------------------------- NumPy: the equations, column vectors

def bias(p, gate=""):
    """b, or b + b2 in the two-bias form of PyTorch."""
    return p["b" + gate] + p.get("b2" + gate, 0.0)


def rnn_step(f):
    def step(p, state, x, kinks):
        (h,) = state
        a = p["W"] @ h + p["U"] @ x + bias(p)
        return (relu(a, kinks) if f == "relu" else np.tanh(a),)
    return step


def lstm_step(p, state, x, kinks):
    h, c = state
    def gate(k): return p[f"W_{k}"] @ x + p[f"R_{k}"] @ h + bias(p, f"_{k}")
    i, f, o = sigmoid(gate("i")), sigmoid(gate("f")), sigmoid(gate("o"))
    g = np.tanh(gate("g"))
    c = f * c + i * g
    return o * np.tanh(c), c


def gru_step(reset):
    def step(p, state, x, kinks):
        (h,) = state
        r = sigmoid(p["U_r"] @ x + p["W_r"] @ h + bias(p, "_r"))
        z = sigmoid(p["U_z"] @ x + p["W_z"] @ h + bias(p, "_z"))
        if reset == "after":   # form A: b2_c, where there is one, stands inside the reset product
            c = np.tanh(p["U_c"] @ x + p["b_c"] + r * (p["W_c"] @ h + p.get("b2_c", 0.0)))
        else:                  # form B
            c = np.tanh(p["U_c"] @ x + p["W_c"] @ (r * h) + p["b_c"])
        return (z * h + (1 - z) * c,)
    return step


def srnn_step(layers, gated, activation):
    def step(p, state, x, kinks):
        (h,) = state
        a = x
        for k in range(1, layers + 1):
            a = activation(p[f"f{k}.W"] @ a + p[f"f{k}.b"], kinks)
        beta = p["fo.W"] @ a + p["fo.b"]
        if gated:
            beta = beta * sigmoid(p["g.W"] @ x + p["g.b"])
        shifted = np.array([h[j - 1] for j in range(len(h))])  # (P h)_j = h_{j-1}, cyclic: j = 0 takes the last
        return (relu(shifted + beta, kinks),)
    return step


# ---------------------------------------------------------------- PyTorch

def torch_module(module, gates, input_weight, state_weight):
    """PyTorch's own cell: the gates' matrices stacked in its order; missing second biases are zeros."""
    module = module.double()

    def run(p, states, x):
        weights = {
            "weight_ih_l0": torch.cat([p[input_weight + k] for k in gates]),
            "weight_hh_l0": torch.cat([p[state_weight + k] for k in gates]),
            "bias_ih_l0": torch.cat([p["b" + k] for k in gates]),
            "bias_hh_l0": torch.cat([p.get("b2" + k, torch.zeros_like(p["b" + k])) for k in gates]),
        }
        start = tuple(s[None] for s in states)  # [1, B, n]: one layer
        y, last = functional_call(module, weights, (x, start if len(start) > 1 else start[0]))
        return y, tuple(s[0] for s in (last if isinstance(last, tuple) else (last,)))
    return run


def torch_gru_before(p, states, x):
    linear, (h,) = torch.nn.functional.linear, states
    r = torch.sigmoid(linear(x, p["U_r"], p["b_r"]) + linear(h, p["W_r"]))
    z = torch.sigmoid(linear(x, p["U_z"], p["b_z"]) + linear(h, p["W_z"]))
    c = torch.tanh(linear(x, p["U_c"], p["b_c"]) + linear(r * h, p["W_c"]))
    return (torch.lerp(c, h, z),)


def torch_srnn(layers, gated, activation):
    linear = torch.nn.functional.linear

    def run(p, states, x):
        a = x  # beta does not depend on the state: all time steps at once
        for k in range(1, layers + 1):
            a = activation(linear(a, p[f"f{k}.W"], p[f"f{k}.b"]))
        beta = linear(a, p["fo.W"], p["fo.b"])
        if gated:
            beta = beta * torch.sigmoid(linear(x, p["g.W"], p["g.b"]))
        (h,), y = states, []
        for beta_t in beta:
            h = torch.relu(torch.roll(h, 1, dims=-1) + beta_t)
            y.append(h)
        return torch.stack(y), (h,)
    return run


# ---------------------------------------------------------------- the cells

def cell(file, kind, settings, shapes, states, step, torch_run):
    return Cell(file, kind, settings, shapes, dict.fromkeys(states, N), recurrence(step), torch_run, N, steps=T,
                batch=B, input=INPUT)


def biases(count):
    return ("b", "b2")[:count]


def rnn(f, count):
    module = torch.nn.RNN(INPUT, N, nonlinearity=f)
    return cell(f"rnn_{f}_{count}", "rnn", {"activation": f, "biases": count},
                gate_shapes([""], "U", "W", INPUT, N, biases(count)), ("h",), rnn_step(f),
                torch_module(module, [""], "U", "W"))


def lstm(count):
    gates = ["_i", "_f", "_g", "_o"]
    return cell(f"lstm_{count}", "lstm", {"biases": count}, gate_shapes(gates, "W", "R", INPUT, N, biases(count)),
                ("h", "c"), lstm_step, torch_module(torch.nn.LSTM(INPUT, N), gates, "W", "R"))


def gru(reset, count):
    gates = ["_r", "_z", "_c"]
    run = (torch_module(torch.nn.GRU(INPUT, N), gates, "U", "W") if reset == "after"
           else torch_recurrence(torch_gru_before))
    return cell(f"gru_{reset}_{count}", "gru", {"reset": reset, "biases": count},
                gate_shapes(gates, "U", "W", INPUT, N, biases(count)), ("h",), gru_step(reset), run)


def srnn_shapes(layers, gated, i, n, width):
    shapes = {}
    for k in range(1, layers + 1):
        shapes |= {f"f{k}.W": (width, i if k == 1 else width), f"f{k}.b": (width,)}
    shapes |= {"fo.W": (n, width), "fo.b": (n,)}
    return shapes | ({"g.W": (n, i), "g.b": (n,)} if gated else {})


def srnn(layers, gated, leaky=False):
    name = f"srnn_{'gate' if gated else 'nogate'}_w{WIDTH}_l{layers}{'_leaky' if leaky else ''}"
    settings = {"width": WIDTH, "layers": layers, "gate": "on" if gated else "off",
                "activation": "leaky_relu" if leaky else "relu"}
    torch_leaky = lambda a: torch.nn.functional.leaky_relu(a, LEAKY_SLOPE)
    return cell(name, "srnn", settings, srnn_shapes(layers, gated, INPUT, N, WIDTH), ("h",),
                srnn_step(layers, gated, leaky_relu if leaky else relu),
                torch_srnn(layers, gated, torch_leaky if leaky else torch.relu))


CELLS = [
    rnn("tanh", 1), rnn("relu", 1), rnn("tanh", 2),
    lstm(1), lstm(2),
    gru("after", 1), gru("after", 2), gru("before", 1),
    srnn(1, gated=True), srnn(1, gated=False), srnn(3, gated=True, leaky=True),
]
for k, c in enumerate(CELLS):
    c.seed, c.candidates = 1000 * (k + 1), 1  # as these files were first written


def generate(folder):
    return generate_cells(folder, CELLS)
