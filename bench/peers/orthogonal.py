"""Orthogonal cells, h' = f(W h + U x, b) with W made of its parameters once a sequence: scoRNN, expRNN, oRNN, ENRNN."""

import torch
from torch import nn
from torch.nn.functional import leaky_relu, linear

from common import Recurrent, uniform


def modrelu(z, b):
    """sign(z) relu(|z| + b)"""
    return z.sign() * torch.relu(z.abs() + b)


def skew(A):
    return A.triu(1) - A.triu(1).T


def cayley(A, negatives):
    """(I + A)^-1 (I - A) D, D a diagonal of signs whose last ones are -1"""
    one = torch.eye(len(A), dtype=A.dtype, device=A.device)
    D = A.new_ones(len(A))
    D[len(A) - negatives:] = -1
    return torch.linalg.solve(one + skew(A), one - skew(A)) * D


class Orthogonal(Recurrent):
    names = {"A": "A", "U": "U", "b": "b"}

    def __init__(self, i, n):
        super().__init__(n)
        self.A, self.U, self.b = uniform(n, n, bound=n**-0.5), uniform(n, i, bound=i**-0.5), uniform(n, bound=0.01)

    def derive(self):
        return self.matrix().T

    def project(self, x):
        return linear(x, self.U)

    def step(self, u, state, derived):
        return (modrelu(torch.addmm(u, state[0], derived), self.b),)


class Scornn(Orthogonal):
    def matrix(self):
        return cayley(self.A, self.n // 2)


class Exprnn(Orthogonal):
    def matrix(self):
        return torch.linalg.matrix_exp(skew(self.A))


class Ornn(Recurrent):
    """W = H(u_1) ... H(u_m) = I - U S^-1 U^T, S + S^T = U^T U; the first state is trained."""
    names = {name: name for name in ("U", "V", "b", "h_0")}

    def __init__(self, i, n):
        super().__init__(n)
        self.U = nn.Parameter(torch.randn(n, min(16, n - 1)).tril())
        self.V, self.b, self.h_0 = uniform(n, i, bound=i**-0.5), uniform(n, bound=0.01), uniform(n, bound=n**-0.5)
        self.updated()

    def derive(self):
        U = self.U.tril()
        gram = U.T @ U
        S = (gram.triu() + gram.triu(1)) / 2
        W = torch.eye(self.n, dtype=U.dtype, device=U.device) - U @ torch.linalg.solve_triangular(S, U.T, upper=True)
        return W.T

    def project(self, x):
        return linear(x, self.V, self.b)

    def initial(self, x):
        return (self.h_0.expand(x.shape[1], -1),)

    def step(self, u, state, derived):
        return (leaky_relu(torch.addmm(u, state[0], derived), 0.1),)

    @torch.no_grad()
    def updated(self):
        self.U /= self.U.norm(dim=0)


class Enrnn(Recurrent):
    """A long-memory state with an orthogonal W_L beside a short one with W_S = T / rho(T), as one block matrix."""

    def __init__(self, i, n, normalise="late"):
        super().__init__(n)
        self.short = max(2, n // 5 * 2)
        self.long = q = n - self.short
        self.A, self.T = uniform(q, q, bound=n**-0.5), uniform(self.short, self.short, bound=n**-0.5)
        self.W_C = uniform(q, self.short, bound=n**-0.5)
        self.U, self.b = uniform(n, i, bound=i**-0.5), uniform(n, bound=0.01)
        self.normalised, self.late = normalise == "on", normalise == "late"

    def derive(self):
        W_L = cayley(self.A, self.long // 2)
        W_S = self.T / torch.linalg.eigvals(self.T).abs().max() if self.normalised else self.T
        below = self.T.new_zeros(self.short, self.long)
        return torch.cat([torch.cat([W_L, self.W_C], 1), torch.cat([below, W_S], 1)]).T

    def project(self, x):
        return linear(x, self.U)

    def step(self, u, state, derived):
        return (modrelu(torch.addmm(u, state[0], derived), self.b),)

    @torch.no_grad()
    def updated(self):
        """T is divided by its radius from the update on that takes it past 1."""
        if self.late and not self.normalised:
            self.normalised = torch.linalg.eigvals(self.T).abs().max().item() > 1

    def reel(self, tensors):
        out = {name: tensors[name] for name in ("A", "T", "W_C")}
        for name in ("U", "b"):
            out |= dict(zip((f"{name}_L", f"{name}_S"), tensors[name].split([self.long, self.short])))
        return out
