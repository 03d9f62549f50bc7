"""Golden values of the recurrent cells: states, gradients and Hessian-vector products.

Each cell is written twice. NumPy: one column vector at a time, in explicit loops over time and batch, straight from
the equations. PyTorch: its own nn.RNN, nn.LSTM, nn.GRU where the cell is one of those, else batched row-vector code.
Both forwards must agree to 1e-12. Derivatives are PyTorch's, checked against finite differences.

L = sum(dy * y) + sum(dlast * last), a function of the parameters, x and the initial states.
"""

from dataclasses import dataclass
from typing import Callable

import numpy as np
import torch
from torch.func import functional_call

from common import assert_close, assert_same, central_differences, put, write

T, B, INPUT, N = 7, 3, 4, 6  # steps, batch, input size, state size
WIDTH = 5                    # hidden width of SRNN's beta network
LEAKY_SLOPE = 0.01
KINK_MARGIN = 1e-3           # no relu pre-activation may be closer to 0


@dataclass
class Cell:
    name: str
    shapes: dict[str, tuple]  # parameters in a fixed order
    states: tuple[str, ...]   # ("h",) or ("h", "c"); the output is h
    step: Callable            # NumPy: (parameters, state vectors, x vector, kinks) -> state vectors
    torch_run: Callable       # PyTorch: (parameters, states [B, n], x [T, B, i]) -> (y [T, B, n], states [B, n])


# ---------------------------------------------------------------- NumPy: the equations, column vectors

def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def relu(a, kinks):
    """max(a, 0); `kinks` collects the pre-activations, so that the caller can see how near 0 they come."""
    kinks.extend(a)
    return np.maximum(a, 0)


def leaky_relu(a, kinks):
    kinks.extend(a)
    return np.where(a > 0, a, LEAKY_SLOPE * a)


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


def numpy_run(cell, values):
    """y [T, B, n], last states [B, n] each, and every relu pre-activation met."""
    kinks = []
    y = np.zeros((T, B, N))
    last = {s: np.zeros((B, N)) for s in cell.states}
    for row in range(B):
        state = tuple(values[f"state.{s}"][row] for s in cell.states)
        for t in range(T):
            state = cell.step(values, state, values["x"][t, row], kinks)
            y[t, row] = state[0]
        for s, vector in zip(cell.states, state):
            last[s][row] = vector
    return y, last, np.array(kinks)


# ---------------------------------------------------------------- PyTorch

def torch_module(module, gates, input_weight, state_weight):
    """PyTorch's own cell: the gates' matrices stacked in its order; missing second biases are zeros."""
    module = module.double()

    def run(p, states, x):
        zero = torch.zeros(N, dtype=torch.float64)
        weights = {
            "weight_ih_l0": torch.cat([p[input_weight + k] for k in gates]),
            "weight_hh_l0": torch.cat([p[state_weight + k] for k in gates]),
            "bias_ih_l0": torch.cat([p["b" + k] for k in gates]),
            "bias_hh_l0": torch.cat([p.get("b2" + k, zero) for k in gates]),
        }
        start = tuple(s[None] for s in states)  # [1, B, n]: one layer
        y, last = functional_call(module, weights, (x, start if len(start) > 1 else start[0]))
        return y, tuple(s[0] for s in (last if isinstance(last, tuple) else (last,)))
    return run


def torch_loop(step):
    """A cell that PyTorch does not have: step(parameters, h [B, n], x [B, i]) -> h."""
    def run(p, states, x):
        (h,), y = states, []
        for x_t in x:
            h = step(p, h, x_t)
            y.append(h)
        return torch.stack(y), (h,)
    return run


def torch_gru_before(p, h, x):
    linear = torch.nn.functional.linear
    r = torch.sigmoid(linear(x, p["U_r"], p["b_r"]) + linear(h, p["W_r"]))
    z = torch.sigmoid(linear(x, p["U_z"], p["b_z"]) + linear(h, p["W_z"]))
    c = torch.tanh(linear(x, p["U_c"], p["b_c"]) + linear(r * h, p["W_c"]))
    return torch.lerp(c, h, z)


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

def gated_shapes(gates, input_weight, state_weight, biases):
    """Shapes of U, W, b (, b2) for each gate suffix."""
    shapes = {}
    for k in gates:
        shapes |= {input_weight + k: (N, INPUT), state_weight + k: (N, N)}
        shapes |= {b + k: (N,) for b in ("b", "b2")[:biases]}
    return shapes


def rnn(f, biases):
    module = torch.nn.RNN(INPUT, N, nonlinearity=f)
    return Cell(f"rnn_{f}_{biases}", gated_shapes([""], "U", "W", biases), ("h",), rnn_step(f),
                torch_module(module, [""], "U", "W"))


def lstm(biases):
    gates = ["_i", "_f", "_g", "_o"]
    return Cell(f"lstm_{biases}", gated_shapes(gates, "W", "R", biases), ("h", "c"), lstm_step,
                torch_module(torch.nn.LSTM(INPUT, N), gates, "W", "R"))


def gru(reset, biases):
    gates = ["_r", "_z", "_c"]
    run = (torch_module(torch.nn.GRU(INPUT, N), gates, "U", "W") if reset == "after"
           else torch_loop(torch_gru_before))
    return Cell(f"gru_{reset}_{biases}", gated_shapes(gates, "U", "W", biases), ("h",), gru_step(reset), run)


def srnn(layers, gated, leaky=False):
    shapes = {}
    for k in range(1, layers + 1):
        shapes |= {f"f{k}.W": (WIDTH, INPUT if k == 1 else WIDTH), f"f{k}.b": (WIDTH,)}
    shapes |= {"fo.W": (N, WIDTH), "fo.b": (N,)}
    if gated:
        shapes |= {"g.W": (N, INPUT), "g.b": (N,)}
    name = f"srnn_{'gate' if gated else 'nogate'}_w{WIDTH}_l{layers}{'_leaky' if leaky else ''}"
    torch_leaky = lambda a: torch.nn.functional.leaky_relu(a, LEAKY_SLOPE)
    return Cell(name, shapes, ("h",), srnn_step(layers, gated, leaky_relu if leaky else relu),
                torch_srnn(layers, gated, torch_leaky if leaky else torch.relu))


CELLS = [
    rnn("tanh", 1), rnn("relu", 1), rnn("tanh", 2),
    lstm(1), lstm(2),
    gru("after", 1), gru("after", 2), gru("before", 1),
    srnn(1, gated=True), srnn(1, gated=False), srnn(3, gated=True, leaky=True),
]


# ---------------------------------------------------------------- values, gradients, second order

def draw(cell, rng):
    """Values of the parameters, x and states; the cotangents."""
    values = {k: rng.uniform(-0.6, 0.6, shape) for k, shape in cell.shapes.items()}
    values["x"] = rng.standard_normal((T, B, INPUT))
    values |= {f"state.{s}": 0.5 * rng.standard_normal((B, N)) for s in cell.states}
    cotangents = {"dy": rng.standard_normal((T, B, N))}
    cotangents |= {f"dlast.{s}": rng.standard_normal((B, N)) for s in cell.states}
    return values, cotangents


def draw_away_from_kinks(cell, base):
    """The first seed from `base` on whose relu units stay off 0, and are neither all on nor all off."""
    for seed in range(base, base + 1000):
        rng = np.random.default_rng(seed)
        values, cotangents = draw(cell, rng)
        _, _, kinks = numpy_run(cell, values)
        if kinks.size == 0 or (np.min(np.abs(kinks)) > KINK_MARGIN and 0.25 < np.mean(kinks > 0) < 0.75):
            return rng, values, cotangents
    raise RuntimeError(f"{cell.name}: no seed keeps its units away from 0")


def torch_gradient(cell, values, cotangents, direction=None):
    """y, last states, dL/dvalues and, given a direction v, the product H v; all as NumPy."""
    leaves = {k: torch.tensor(a, requires_grad=True) for k, a in values.items()}
    y, last = cell.torch_run(leaves, tuple(leaves[f"state.{s}"] for s in cell.states), leaves["x"])
    loss = (torch.tensor(cotangents["dy"]) * y).sum()
    for s, h in zip(cell.states, last):
        loss = loss + (torch.tensor(cotangents[f"dlast.{s}"]) * h).sum()
    gradient = torch.autograd.grad(loss, list(leaves.values()), create_graph=direction is not None)
    products = []
    if direction is not None:
        slope = sum((g * torch.tensor(direction[k])).sum() for k, g in zip(leaves, gradient))
        products = torch.autograd.grad(slope, list(leaves.values()), allow_unused=True, materialize_grads=True)
    as_numpy = lambda tensors: {k: g.detach().numpy() for k, g in zip(leaves, tensors)}
    return (y.detach().numpy(), {s: h.detach().numpy() for s, h in zip(cell.states, last)},
            as_numpy(gradient), as_numpy(products))


def golden_cell(cell, base_seed):
    rng, values, cotangents = draw_away_from_kinks(cell, base_seed)
    direction = {k: rng.standard_normal(a.shape) for k, a in values.items()}
    y, last, gradient, product = torch_gradient(cell, values, cotangents, direction)

    # Forward: NumPy against PyTorch.
    def loss(v):
        y, last, _ = numpy_run(cell, v)
        return np.sum(cotangents["dy"] * y) + sum(np.sum(cotangents[f"dlast.{s}"] * last[s]) for s in cell.states)
    numpy_y, numpy_last, _ = numpy_run(cell, values)
    assert_same(f"{cell.name} y", numpy_y, y)
    for s in cell.states:
        assert_same(f"{cell.name} last.{s}", numpy_last[s], last[s])

    # First order: autograd against differences of the NumPy loss. Second: against differences of the gradient along v.
    numeric = central_differences(loss, values)
    for k in values:
        assert_close(f"{cell.name} grad.{k}", gradient[k], numeric[k])
    eps = 1e-5
    _, _, high, _ = torch_gradient(cell, {k: a + eps * direction[k] for k, a in values.items()}, cotangents)
    _, _, low, _ = torch_gradient(cell, {k: a - eps * direction[k] for k, a in values.items()}, cotangents)
    for k in values:
        assert_close(f"{cell.name} hvp.{k}", product[k], (high[k] - low[k]) / (2 * eps))

    tensors = {}
    for k, a in (values | cotangents | {"y": y} | {f"last.{s}": last[s] for s in cell.states}).items():
        put(tensors, k, a)
    for prefix, group in (("grad", gradient), ("v", direction), ("hvp", product)):
        for k, a in group.items():
            put(tensors, f"{prefix}.{k}", a)
    return tensors


def generate(folder):
    return [write(folder, cell.name, golden_cell(cell, 1000 * (k + 1))) for k, cell in enumerate(CELLS)]
