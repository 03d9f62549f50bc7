"""SRNN: a shuffled state, and a network that sees the input alone."""

import torch
from torch import nn

from common import Recurrent


class Srnn(Recurrent):
    """h' = relu(P h + beta(x)),  beta = fo(relu(f1(x))) sigmoid(g(x)),  P a cyclic shift"""
    names = {f"{layer}.{own}": f"{layer}.{name}" for layer in ("f1", "fo", "g") for own, name in
             (("weight", "W"), ("bias", "b"))}

    def __init__(self, i, n, width="8"):
        super().__init__(n)
        self.f1, self.fo, self.g = nn.Linear(i, int(width)), nn.Linear(int(width), n), nn.Linear(i, n)

    def project(self, x):
        return self.fo(torch.relu(self.f1(x))) * torch.sigmoid(self.g(x))

    def step(self, u, state, derived):
        return (torch.relu(state[0].roll(1, -1) + u),)
