"""GORU (sheet 13): a GRU whose candidate sees an orthogonal Q h, with its ablations."""

import numpy as np
import torch
from torch.nn.functional import linear

from activations import modrelu, relu, sigmoid, torch_modrelu
from cells_orthogonal import reflect
from recurrent import Cell, gate_shapes, generate_cells, recurrence, torch_recurrence, within
from rotations import ANGLE, angle_shapes, rotate, torch_rotation_matrix

INPUT = 3


def goru(style="fft", n=8, capacity=0, reflections=0, reset=True, update=True, activation="modrelu"):
    """c = modReLU(r (Q h) + U_c x; b_c), tanh and relu: b_c is added. A gate switched off is sigmoid(b), b trained."""
    def Q(p, h):
        if style != "householder":
            return rotate(p, h, style, capacity)
        for k in reversed(range(reflections)):  # Q = H(u_1) ... H(u_m), as in oRNN
            h = reflect(np.concatenate([np.zeros(k), p["H"][k:, k]]), h)
        return h

    def step(p, state, x, kinks):
        (h,) = state
        z = sigmoid(p["W_z"] @ h + p["U_z"] @ x + p["b_z"] if update else p["b_z"])
        r = sigmoid(p["W_r"] @ h + p["U_r"] @ x + p["b_r"] if reset else p["b_r"])
        a, b = r * Q(p, h) + p["U_c"] @ x, p["b_c"]
        c = {"modrelu": lambda: modrelu(a, b, "goru", kinks), "relu": lambda: relu(a + b, kinks),
             "tanh": lambda: np.tanh(a + b)}[activation]()
        return (z * h + (1 - z) * c,)

    def torch_matrix(p):
        if style != "householder":
            return {"Q": torch_rotation_matrix(p, style, n, capacity)}
        W = torch.eye(n, dtype=torch.float64)
        for u in torch.tril(p["H"]).T:
            W = W @ (torch.eye(n) - 2 * torch.outer(u, u) / u.dot(u))
        return {"Q": W}

    def torch_step(p, states, x):
        (h,) = states
        def gate(k, on):
            return torch.sigmoid(linear(h, p["W" + k]) + linear(x, p["U" + k], p["b" + k]) if on else p["b" + k])
        z, r = gate("_z", update), gate("_r", reset)
        a, b = r * linear(h, p["Q"]) + linear(x, p["U_c"]), p["b_c"]
        c = torch_modrelu(a, b, "goru") if activation == "modrelu" else getattr(torch, activation)(a + b)
        return (torch.lerp(c, h, z),)

    shapes = gate_shapes((["_z"] if update else []) + (["_r"] if reset else []), "U", "W", INPUT, n)
    shapes |= {"b_z": (n,), "b_r": (n,), "U_c": (n, INPUT), "b_c": (n,)}
    of_Q = {"H": (n, reflections)} if style == "householder" else angle_shapes(style, n, capacity)
    draws = {} if style == "householder" else dict.fromkeys(of_Q, ANGLE)
    words = ["goru", style] + ["noreset"] * (not reset) + ["noupdate"] * (not update)
    words += [activation] if activation != "modrelu" else []
    settings = {"style": style} | ({"capacity": capacity} if capacity else {})
    settings |= {"reflections": reflections} if reflections else {}
    settings |= {"reset": "on" if reset else "off", "update": "on" if update else "off", "activation": activation}
    return Cell("_".join(words), "goru", settings, shapes | of_Q, {"h": n}, recurrence(step),
                torch_recurrence(torch_step, derive=torch_matrix), n,
                draws=draws | ({"b_c": within(-1.0, 0.2)} if activation == "modrelu" else {}))


CELLS = [
    goru(), goru("tunable", 6, capacity=4), goru("householder", 6, reflections=3),
    goru(reset=False), goru(update=False), goru(n=4, activation="relu"), goru(n=4, activation="tanh"),
]


def generate(folder):
    return generate_cells(folder, CELLS)
