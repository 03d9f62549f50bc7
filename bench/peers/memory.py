"""Cells with a memory beside the output: NRU, and SRU, the statistical recurrent unit."""

import torch
from torch import nn
from torch.nn.functional import linear, normalize

from common import Recurrent

RATES = (0, 0.5, 0.9, 0.99, 0.999)


class Nru(Recurrent):
    """h' = relu(W_h [x; h; m] + b_h); heads, linear in q = [h'; m], write to the memory and erase from it."""
    names = {"W_h.weight": "W_h", "W_h.bias": "b_h"}

    def __init__(self, i, n, memory="64", heads="4"):
        super().__init__(n)
        self.i, self.memory, self.heads = i, int(memory), int(heads)
        self.side = round((self.memory * self.heads) ** 0.5)
        self.W_h = nn.Linear(i + n + self.memory, n)
        self.sizes = {"alpha": self.heads, "beta": self.heads, "valpha": 2 * self.side, "vbeta": 2 * self.side}
        self.all_heads = nn.Linear(n + self.memory, sum(self.sizes.values()))

    def derive(self):
        return self.W_h.weight[:, self.i:].T

    def project(self, x):
        return linear(x, self.W_h.weight[:, :self.i], self.W_h.bias)

    def initial(self, x):
        return x.new_zeros(x.shape[1], self.n), x.new_zeros(x.shape[1], self.memory)

    def step(self, u, state, derived):
        h = torch.relu(torch.addmm(u, torch.cat(state, -1), derived))
        m = state[1]
        alpha, beta, left_right, other = self.all_heads(torch.cat([h, m], -1)).split(list(self.sizes.values()), -1)
        change = alpha[:, :, None] * self.directions(left_right) - beta[:, :, None] * self.directions(other)
        return h, m + change.mean(1)

    def directions(self, a):
        """[B, 2 s] -> [B, heads, memory]: an outer product, cut into vectors of length 1 in the 5-norm."""
        left, right = a.chunk(2, -1)
        rows = (left[:, :, None] * right[:, None, :]).reshape(-1, self.heads, self.memory)
        return normalize(rows, p=5, dim=2, eps=1e-12)

    def reel(self, tensors):
        out = super().reel(tensors)
        for own, letter in (("weight", "W"), ("bias", "b")):
            parts = tensors[f"all_heads.{own}"].split(list(self.sizes.values()))
            out |= {f"{letter}_{name}": part for name, part in zip(self.sizes, parts)}
        return out


class Sru(Recurrent):
    """Averages mu of statistics phi at five rates; h = relu(W_o mu + b_o) is not fed back."""
    names = {f"{layer}.{own}": f"{name}_{layer}" for layer in ("r", "phi", "o") for own, name in
             (("weight", "W"), ("bias", "b"))}

    def __init__(self, i, n, p="60"):
        super().__init__(n)
        p, q = int(p), max(1, n // 4)
        self.i, self.width = i, len(RATES) * p
        self.r, self.phi, self.o = nn.Linear(self.width, q), nn.Linear(i + q, p), nn.Linear(self.width, n)
        self.register_buffer("alpha", torch.tensor(RATES).repeat_interleave(p), persistent=False)

    def derive(self):
        return self.phi.weight[:, self.i:].T

    def project(self, x):
        return linear(x, self.phi.weight[:, :self.i], self.phi.bias)

    def initial(self, x):
        return (x.new_zeros(x.shape[1], self.width),)

    def step(self, u, state, derived):
        phi = torch.relu(torch.addmm(u, torch.relu(self.r(state[0])), derived))
        return (torch.lerp(phi.repeat(1, len(RATES)), state[0], self.alpha),)

    def output(self, h):
        return torch.relu(self.o(h))
