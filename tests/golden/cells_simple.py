"""Layer-normalised RNN (sheet 2) and LT-RNN, the RNN with a linear transition (sheet 3)."""

import numpy as np
import torch
from torch.nn.functional import linear

from activations import layer_norm, relu, torch_layer_norm
from recurrent import Cell, gate_shapes, generate_cells, recurrence, torch_recurrence, within

INPUT, N = 3, 6
POOL_EPSILON = 1e-12  # under the root of L2 pooling


# ---------------------------------------------------------------- IRNN, RNN-id, RNN-orth with layer norm

def rnn_norm(f):
    def step(p, state, x, kinks):
        (h,) = state
        a = layer_norm(p["W"] @ h + p["U"] @ x + p["b"], p["g"], p["beta"])
        return (relu(a, kinks) if f == "relu" else np.tanh(a),)

    def torch_step(p, states, x):
        a = linear(torch.cat([states[0], x], dim=-1), torch.cat([p["W"], p["U"]], dim=-1), p["b"])
        return (getattr(torch, f)(torch_layer_norm(a, p["g"], p["beta"])),)

    shapes = gate_shapes([""], "U", "W", INPUT, N) | {"g": (N,), "beta": (N,)}
    return Cell(f"rnn_{f}_norm", "rnn", {"activation": f, "biases": 1, "norm": "layer"}, shapes, {"h": N},
                recurrence(step), torch_recurrence(torch_step), N, draws={"g": within(0.5, 1.5)})


# ---------------------------------------------------------------- LT-RNN

def lt_rnn(activation="relu", pool=0, clip=0):
    """h' = f(W x + b) + V h; without f there is no b. y = [h; P(h)], P the L2 pool of k neighbours."""
    def step(p, state, x, kinks):
        (h,) = state
        u = relu(p["W"] @ x + p["b"], kinks) if activation == "relu" else p["W"] @ x
        h = u + p["V"] @ h
        if clip:
            length = np.sqrt(np.sum(h ** 2))
            kinks.switch(length - clip)
            if length > clip:
                h = clip * h / length
        return (h,)

    def output(p, state, kinks):
        (h,) = state
        pooled = [np.sqrt(np.sum(h[j:j + pool] ** 2) + POOL_EPSILON) for j in range(0, N, pool)] if pool else []
        kinks.edge(pooled)
        return np.concatenate([h, pooled])

    def torch_run(p, states, x):
        u = torch.relu(linear(x, p["W"], p["b"])) if activation == "relu" else linear(x, p["W"])
        if clip:
            h, hs = states[0], []
            for u_t in u:
                h = u_t + linear(h, p["V"])
                h = h * torch.clamp(clip / torch.linalg.vector_norm(h, dim=-1, keepdim=True), max=1)
                hs.append(h)
        else:  # a linear recurrence: h_t = V^t h_0 + sum over s <= t of V^(t-s) u_s
            powers = [torch.linalg.matrix_power(p["V"], k) for k in range(len(u) + 1)]
            hs = [linear(states[0], powers[t + 1]) + sum(linear(u[s], powers[t - s]) for s in range(t + 1))
                  for t in range(len(u))]
        h = torch.stack(hs)
        if pool:
            squares = h.square().unflatten(-1, (N // pool, pool)).sum(-1)
            return torch.cat([h, torch.sqrt(squares + POOL_EPSILON)], dim=-1), (hs[-1],)
        return h, (hs[-1],)

    shapes = {"W": (N, INPUT), "V": (N, N)} | ({"b": (N,)} if activation == "relu" else {})
    name = f"lt_rnn_{activation}" + (f"_pool{pool}" if pool else "") + ("_clip" if clip else "")
    return Cell(name, "lt_rnn", {"activation": activation, "pool": pool, "clip": clip}, shapes, {"h": N},
                recurrence(step, output), torch_run, N)


CELLS = [
    rnn_norm("relu"), rnn_norm("tanh"),
    lt_rnn(), lt_rnn("identity"), lt_rnn(pool=2), lt_rnn(clip=1.5), lt_rnn("identity", pool=2, clip=1.5),
]


def generate(folder):
    return generate_cells(folder, CELLS)
