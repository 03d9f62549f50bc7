"""Cells with a memory beside the output: SRU, the statistical recurrent unit (sheet 8), and NRU (9)."""

import numpy as np
import torch
from torch.nn.functional import linear, normalize

from activations import layer_norm, relu, torch_layer_norm
from recurrent import Cell, generate_cells, recurrence, torch_recurrence, within

INPUT, N = 3, 5
ALPHAS = (0, 0.5, 0.9, 0.99, 0.999)  # SRU's decay rates


# ---------------------------------------------------------------- SRU

def sru(p_size=3, q_size=2):
    """State mu = [mu of the first rate; ...; of the last], p statistics each; y = relu(W_o mu + b_o)."""
    def step(p, state, x, kinks):
        (mu,) = state
        r = relu(p["W_r"] @ mu + p["b_r"], kinks)
        phi = relu(p["W_phi"] @ np.concatenate([x, r]) + p["b_phi"], kinks)
        parts = [alpha * mu[k * p_size:(k + 1) * p_size] + (1 - alpha) * phi for k, alpha in enumerate(ALPHAS)]
        return (np.concatenate(parts),)

    def output(p, state, kinks):
        return relu(p["W_o"] @ state[0] + p["b_o"], kinks)

    def torch_step(p, states, x):
        (mu,) = states
        r = torch.relu(linear(mu, p["W_r"], p["b_r"]))
        phi = torch.relu(linear(torch.cat([x, r], -1), p["W_phi"], p["b_phi"]))
        alpha = torch.tensor(ALPHAS, dtype=mu.dtype).repeat_interleave(p_size)
        return (torch.lerp(phi.repeat(1, len(ALPHAS)), mu, alpha),)

    def torch_output(p, states):
        return torch.relu(linear(states[0], p["W_o"], p["b_o"]))

    width = len(ALPHAS) * p_size
    shapes = {"W_r": (q_size, width), "b_r": (q_size,), "W_phi": (p_size, INPUT + q_size), "b_phi": (p_size,),
              "W_o": (N, width), "b_o": (N,)}
    return Cell(f"sru_p{p_size}_q{q_size}", "sru", {"p": p_size, "q": q_size}, shapes, {"mu": width},
                recurrence(step, output), torch_recurrence(torch_step, torch_output), N)


# ---------------------------------------------------------------- NRU

def nru(memory=8, heads=2, head_activation="linear", combine="mean", norm="none", update="add", activation="relu",
        norm_limit=0):
    side = round((memory * heads) ** 0.5)
    assert side * side == memory * heads

    def step(p, state, x, kinks):
        h, m = state
        phi = (lambda a: relu(a, kinks)) if head_activation == "relu" else (lambda a: a)
        a = p["W_h"] @ np.concatenate([x, h, m]) + p["b_h"]
        if norm == "layer":
            a = layer_norm(a, p["g"], p["beta"])
        h = relu(a, kinks) if activation == "relu" else np.tanh(a)
        q = np.concatenate([h, m])  # the new h, the old memory

        def directions(k):
            a = p[f"W_v{k}"] @ q + p[f"b_v{k}"]
            rows = phi(np.outer(a[:side], a[side:]).reshape(heads, memory))
            lengths = [np.sum(np.abs(v) ** 5) ** 0.2 for v in rows]
            return [0 * v if norm_limit and N > norm_limit else v / max(N, 1e-12) for v, N in zip(rows, lengths)]
        alpha, beta = phi(p["W_alpha"] @ q + p["b_alpha"]), phi(p["W_beta"] @ q + p["b_beta"])
        v_alpha, v_beta = directions("alpha"), directions("beta")
        change = sum(alpha[j] * v_alpha[j] - beta[j] * v_beta[j] for j in range(heads))
        if combine == "mean":
            change = change / heads
        return h, (m + change if update == "add" else m * change)

    def torch_step(p, states, x):
        h, m = states
        phi = torch.relu if head_activation == "relu" else torch.nn.Identity()
        a = linear(torch.cat([x, h, m], -1), p["W_h"], p["b_h"])
        if norm == "layer":
            a = torch_layer_norm(a, p["g"], p["beta"])
        h = getattr(torch, activation)(a)
        q = torch.cat([h, m], -1)

        def written(k):
            left, right = linear(q, p[f"W_v{k}"], p[f"b_v{k}"]).chunk(2, dim=-1)
            v = phi((left[:, :, None] * right[:, None, :]).reshape(-1, heads, memory))
            unit = normalize(v, p=5, dim=2, eps=1e-12)
            if norm_limit:
                unit = torch.where(v.norm(p=5, dim=2, keepdim=True) > norm_limit, torch.zeros_like(unit), unit)
            return phi(linear(q, p[f"W_{k}"], p[f"b_{k}"]))[:, :, None] * unit
        change = getattr(torch, combine)(written("alpha") - written("beta"), dim=1)
        return h, (m + change if update == "add" else m * change)

    shapes = {"W_h": (N, INPUT + N + memory), "b_h": (N,)}
    for k, size in (("alpha", heads), ("beta", heads), ("valpha", 2 * side), ("vbeta", 2 * side)):
        shapes |= {f"W_{k}": (size, N + memory), f"b_{k}": (size,)}
    if norm == "layer":
        shapes |= {"g": (N,), "beta": (N,)}
    settings = {"memory": memory, "heads": heads, "head_activation": head_activation, "combine": combine, "norm": norm,
                "update": update, "activation": activation, "norm_limit": norm_limit}
    unusual = [v for v in (combine, update, activation) if v not in ("mean", "add", "relu")]
    unusual += (["norm"] if norm == "layer" else []) + (["limit"] if norm_limit else [])
    name = "_".join([f"nru_m{memory}_k{heads}_{head_activation}", *unusual])
    return Cell(name, "nru", settings, shapes, {"h": N, "m": memory}, recurrence(step), torch_recurrence(torch_step), N,
                draws={"g": within(0.5, 1.5)}, steps=4)


CELLS = [
    sru(),
    nru(), nru(4, 1), nru(head_activation="relu"), nru(combine="sum"), nru(norm="layer"),
    nru(4, 4, head_activation="relu", norm="layer"), nru(update="multiply"), nru(activation="tanh"),
    nru(norm_limit=0.3),
]


def generate(folder):
    return generate_cells(folder, CELLS)
