"""Orthogonal and nearly orthogonal cells: oRNN (sheet 14), scoRNN (15), expRNN and dtriv (16), nnRNN (17), Spectral
RNN (18). h' = f(W h + input part), W made of its parameters."""

import numpy as np
import torch
from torch.nn.functional import linear

from activations import (leaky_relu, modrelu, modrelu_pairs, oplu, relu, torch_modrelu, torch_modrelu_pairs,
                         torch_oplu)
from recurrent import Cell, generate_cells, recurrence, torch_recurrence, within
from rotations import ANGLE

INPUT, N = 3, 6
THRESHOLD = within(-1.0, 0.2)  # modReLU's b: some units off


def reflect(u, h):
    """H(u) h = h - 2 u (u.h)/(u.u)"""
    return h - 2 * u * (u @ h) / (u @ u)


def skew(A):
    """The skew matrix of A's strict upper triangle; the rest of A is not read."""
    upper = np.triu(A, 1)
    return upper - upper.T


def exp_skew(A):
    """exp of a real skew matrix, from the eigenvalues of the Hermitian i A."""
    w, V = np.linalg.eigh(1j * A)
    return ((V * np.exp(-1j * w)) @ V.conj().T).real


def torch_skew(A):
    return torch.triu(A, 1) - torch.triu(A, 1).T


# ---------------------------------------------------------------- oRNN

def ornn(m, activation="leaky_relu"):
    """W = H(u_1) ... H(u_m), u_k column k of U without its first k - 1 entries. m = n: the last is the sign of U_nn."""
    def step(p, state, x, kinks):
        h = state[0].copy()
        if m == N:
            h[-1] *= np.sign(p["U"][-1, -1])
        for k in reversed(range(min(m, N - 1))):
            h = reflect(np.concatenate([np.zeros(k), p["U"][k:, k]]), h)
        z, b = h + p["V"] @ x, p["b"]
        return ({"leaky_relu": lambda: leaky_relu(z + b, kinks, slope=0.1), "tanh": lambda: np.tanh(z + b),
                 "oplu": lambda: oplu(z + b, kinks), "modrelu": lambda: modrelu(z, b, "plain", kinks),
                 "modrelu_pairs": lambda: modrelu_pairs(z, b, kinks)}[activation](),)

    def matrix(p):
        """W = I - U S^-1 U^T, S = triu(U^T U, 1) + diag(U^T U)/2"""
        U = torch.tril(p["U"])[:, :min(m, N - 1)]
        G = U.T @ U
        W = torch.eye(N) - U @ torch.linalg.solve(torch.triu(G, 1) + torch.diag(torch.diag(G)) / 2, U.T)
        last = torch.sign(p["U"][-1, -1]) if m == N else 1
        return {"W": torch.cat([W[:, :-1], W[:, -1:] * last], dim=1)}

    def torch_step(p, states, x):
        z, b = linear(states[0], p["W"]) + linear(x, p["V"]), p["b"]
        return ({"leaky_relu": lambda: torch.nn.functional.leaky_relu(z + b, 0.1), "tanh": lambda: torch.tanh(z + b),
                 "oplu": lambda: torch_oplu(z + b), "modrelu": lambda: torch_modrelu(z, b, "plain"),
                 "modrelu_pairs": lambda: torch_modrelu_pairs(z, b)}[activation](),)

    return Cell(f"ornn_m{m}_{activation}", "ornn", {"reflections": m, "activation": activation},
                {"U": (N, m), "V": (N, INPUT), "b": (N,)}, {"h": N}, recurrence(step),
                torch_recurrence(torch_step, derive=matrix), N,
                draws={"b": THRESHOLD} if activation.startswith("modrelu") else {})


# ---------------------------------------------------------------- W from a skew matrix

def modrelu_cell(file, kind, settings, shapes, derive, torch_derive, draws={}, fixed={}):
    """h' = modReLU(W h + U x; b) with W from `derive`."""
    def step(p, state, x, kinks):
        return (modrelu(p["W"] @ state[0] + p["U"] @ x, p["b"], "plain", kinks),)

    def torch_step(p, states, x):
        return (torch_modrelu(linear(states[0], p["W"]) + linear(x, p["U"]), p["b"], "plain"),)
    return Cell(file, kind, settings, shapes | {"U": (N, INPUT), "b": (N,)}, {"h": N},
                recurrence(step, derive=lambda p: {"W": derive(p)}),
                torch_recurrence(torch_step, derive=lambda p: {"W": torch_derive(p)}), N,
                draws={"b": THRESHOLD} | draws, fixed=fixed)


def cayley(A, negatives):
    """(I + A)^-1 (I - A) D; D has its -1 entries last."""
    n = len(A)
    D = np.diag([1.0] * (n - negatives) + [-1.0] * negatives)
    return np.linalg.solve(np.eye(n) + skew(A), np.eye(n) - skew(A)) @ D


def torch_cayley(A, negatives):
    n = len(A)
    D = torch.ones(n, dtype=A.dtype)
    D[n - negatives:] = -1
    identity = torch.eye(n, dtype=A.dtype)
    return (2 * torch.linalg.inv(identity + torch_skew(A)) - identity) * D


def scornn(negatives):
    return modrelu_cell(f"scornn_neg{negatives}", "scornn", {"negatives": negatives}, {"A": (N, N)},
                        lambda p: cayley(p["A"], negatives), lambda p: torch_cayley(p["A"], negatives))


def exprnn():
    return modrelu_cell("exprnn", "exprnn", {}, {"A": (N, N)}, lambda p: exp_skew(skew(p["A"])),
                        lambda p: torch.linalg.matrix_exp(torch_skew(p["A"])),
                        draws={"A": within(-3, 3)})  # of the size of the "henaff" start, angles up to pi


def dtriv():
    """W = B_0 exp(A), B_0 the fixed orthogonal base."""
    base = np.linalg.qr(np.random.default_rng(5).standard_normal((N, N)))[0]
    return modrelu_cell("dtriv", "dtriv", {}, {"A": (N, N)}, lambda p: base @ exp_skew(skew(p["A"])),
                        lambda p: torch.tensor(base) @ torch.linalg.matrix_exp(torch_skew(p["A"])),
                        fixed={"B_0": base})


def nnrnn():
    """W = P (alpha_j rot(theta_j) on the diagonal + T above) P^T, P = exp(skew(log_P))."""
    def matrix(p):
        middle = np.zeros((N, N))
        for i in range(N):
            for j in range(N):
                if i // 2 != j // 2:
                    middle[i, j] = p["T"][i, j] if i < j else 0
        for j in range(N // 2):
            c, s = np.cos(p["theta"][j]), np.sin(p["theta"][j])
            middle[2 * j:2 * j + 2, 2 * j:2 * j + 2] = p["alpha"][j] * np.array([[c, -s], [s, c]])
        P = exp_skew(skew(p["log_P"]))
        return P @ middle @ P.T

    def torch_matrix(p):
        z = torch.polar(p["alpha"], p["theta"])
        blocks = torch.stack([z.real, -z.imag, z.imag, z.real], dim=-1).view(-1, 2, 2)
        above = torch.kron(torch.triu(torch.ones(N // 2, N // 2), 1), torch.ones(2, 2))
        P = torch.linalg.matrix_exp(torch_skew(p["log_P"]))
        return P @ (torch.block_diag(*blocks) + above * p["T"]) @ P.T

    return modrelu_cell("nnrnn", "nnrnn", {}, {"log_P": (N, N), "theta": (N // 2,), "alpha": (N // 2,), "T": (N, N)},
                        matrix, torch_matrix, draws={"theta": ANGLE, "alpha": within(0.7, 1.3)})


# ---------------------------------------------------------------- Spectral RNN

def spectral_rnn(r, rho=0.01, activation="relu"):
    """h' = f(W h + M x + b), W = U_H Sigma V_H^T; reflectors are the rows of U_H and V_H, row k without its first k - 1
    entries."""
    def step(p, state, x, kinks):
        def reflector(name, k): return np.concatenate([np.zeros(k), p[name][k, k:]])
        h = state[0]
        for k in range(r):            # V_H^T: v_1 first
            h = reflect(reflector("V_H", k), h)
        h = (1 + 2 * rho * (1 / (1 + np.exp(-p["p"])) - 0.5)) * h
        for k in reversed(range(r)):  # U_H: u_r first
            h = reflect(reflector("U_H", k), h)
        a = h + p["M"] @ x + p["b"]
        return (relu(a, kinks) if activation == "relu" else np.tanh(a),)

    def matrix(p):
        def product(rows):
            W = torch.eye(N, dtype=rows.dtype)
            for u in torch.triu(rows):
                W = W @ (torch.eye(N) - 2 * torch.outer(u, u) / u.dot(u))
            return W
        sigma = 1 + rho * torch.tanh(p["p"] / 2)
        return {"W": product(p["U_H"]) @ torch.diag(sigma) @ product(p["V_H"]).T}

    def torch_step(p, states, x):
        return (getattr(torch, activation)(linear(states[0], p["W"]) + linear(x, p["M"], p["b"])),)

    shapes = {"U_H": (r, N), "V_H": (r, N), "p": (N,), "M": (N, INPUT), "b": (N,)}
    return Cell(f"spectral_rnn_r{r}_{activation}", "spectral_rnn",
                {"reflections": r, "rho": rho, "activation": activation}, shapes, {"h": N}, recurrence(step),
                torch_recurrence(torch_step, derive=matrix), N)


CELLS = [
    ornn(3), ornn(N), ornn(3, "modrelu"), ornn(3, "modrelu_pairs"), ornn(2, "tanh"), ornn(2, "oplu"),
    scornn(0), scornn(2), exprnn(), dtriv(), nnrnn(),
    spectral_rnn(2), spectral_rnn(3, rho=0.4, activation="tanh"),
]


def generate(folder):
    return generate_cells(folder, CELLS)
