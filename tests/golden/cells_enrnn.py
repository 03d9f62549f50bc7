"""ENRNN (sheet 19): a long-memory part with orthogonal W_L and a short-memory part whose W_S = T / rho(T)."""

import numpy as np
import torch
from torch.nn.functional import linear

from activations import modrelu, relu, torch_modrelu
from cells_orthogonal import cayley, torch_cayley
from recurrent import Cell, generate_cells, recurrence, torch_recurrence, within

INPUT, LONG, SHORT, NEGATIVES = 3, 4, 4, 1


def torch_spectral_radius(T):
    """|lambda| of the dominant eigenvalue, differentiable twice: three Newton steps on (T u = lambda u, w.u = 1) from
    the exact eigenpair, which the derivatives do not see."""
    values, vectors = torch.linalg.eig(T.detach())
    k = values.abs().argmax()
    value, u = values[k], vectors[:, k]
    w = u.conj()
    for _ in range(3):
        top = torch.cat([T - value * torch.eye(len(T)), -u[:, None]], dim=1)
        system = torch.cat([top, torch.cat([w, torch.zeros(1)])[None]])
        residual = torch.cat([T.to(u.dtype) @ u - value * u, (w @ u - 1)[None]])
        change = torch.linalg.solve(system, -residual)
        u, value = u + change[:-1], value + change[-1]
    return value.abs()


def dominant(kind):
    """T's dominant eigenvalue (or pair) is real or complex, and clearly the largest."""
    def accept(values):
        eigenvalues = np.linalg.eigvals(values["T"])
        eigenvalues = eigenvalues[np.argsort(-np.abs(eigenvalues))]
        is_complex = abs(eigenvalues[0].imag) > 0.1
        rest = eigenvalues[2 if is_complex else 1:]
        return is_complex == (kind == "complex") and np.all(np.abs(rest) < 0.9 * np.abs(eigenvalues[0]))
    return accept


def enrnn(coupled=True, normalise=True, kind="complex", activation="modrelu", epsilon=0):
    """h_L' = f(U_L x + W_L h_L + W_C h_S; b_L), h_S' = f(U_S x + W_S h_S; b_S); relu: the biases are added."""
    def derive(p):
        radius = np.max(np.abs(np.linalg.eigvals(p["T"])))
        return {"W_L": cayley(p["A"], NEGATIVES), "W_S": p["T"] / (radius + epsilon) if normalise else p["T"]}

    def step(p, state, x, kinks):
        h_L, h_S = state
        def f(a, b): return modrelu(a, b, "plain", kinks) if activation == "modrelu" else relu(a + b, kinks)
        a = p["U_L"] @ x + p["W_L"] @ h_L + (p["W_C"] @ h_S if coupled else 0)
        return f(a, p["b_L"]), f(p["U_S"] @ x + p["W_S"] @ h_S, p["b_S"])

    def torch_derive(p):
        W_S = p["T"] / (torch_spectral_radius(p["T"]) + epsilon) if normalise else p["T"]
        W_C = p["W_C"] if coupled else torch.zeros(LONG, SHORT)
        W = torch.cat([torch.cat([torch_cayley(p["A"], NEGATIVES), W_C], dim=1),
                       torch.cat([torch.zeros(SHORT, LONG), W_S], dim=1)])
        return {"W": W, "U": torch.cat([p["U_L"], p["U_S"]]), "b": torch.cat([p["b_L"], p["b_S"]])}

    def torch_step(p, states, x):
        a = linear(torch.cat(states, -1), p["W"]) + linear(x, p["U"])
        h = torch_modrelu(a, p["b"], "plain") if activation == "modrelu" else torch.relu(a + p["b"])
        return h.split([LONG, SHORT], dim=-1)

    shapes = {"A": (LONG, LONG), "T": (SHORT, SHORT)} | ({"W_C": (LONG, SHORT)} if coupled else {})
    shapes |= {"U_L": (LONG, INPUT), "U_S": (SHORT, INPUT), "b_L": (LONG,), "b_S": (SHORT,)}
    words = ["enrnn", "coupled" if coupled else "uncoupled", kind if normalise else "plain"]
    words += ["relu"] if activation == "relu" else []
    words += ["epsilon"] if epsilon else []
    settings = {"short": SHORT, "negatives": NEGATIVES, "coupled": "on" if coupled else "off",
                "normalise": "on" if normalise else "off", "activation": activation, "epsilon": epsilon}
    return Cell("_".join(words), "enrnn", settings, shapes, {"h_L": LONG, "h_S": SHORT},
                recurrence(step, lambda p, state, kinks: np.concatenate(state), derive),
                torch_recurrence(torch_step, lambda p, states: torch.cat(states, -1), torch_derive), LONG + SHORT,
                draws=dict.fromkeys(["b_L", "b_S"], within(-1.0, 0.2)) if activation == "modrelu" else {},
                accept=dominant(kind) if normalise else lambda values: True)


CELLS = [
    enrnn(normalise=False), enrnn(), enrnn(kind="real"), enrnn(coupled=False), enrnn(coupled=False, normalise=False),
    enrnn(activation="relu"), enrnn(kind="real", epsilon=0.3), enrnn(epsilon=0.3),
]


def generate(folder):
    return generate_cells(folder, CELLS)
