"""JANET, the LSTM with the forget gate alone."""

import torch
from torch.nn.functional import linear

from common import Recurrent, uniform


class Janet(Recurrent):
    """h' = f h + (1 - f) c,  f = sigmoid(W_f h + U_f x + b_f),  c = tanh(W_c h + U_c x + b_c)"""
    names = {"U": ["U_f", "U_c"], "W": ["W_f", "W_c"], "b": ["b_f", "b_c"]}

    def __init__(self, i, n):
        super().__init__(n)
        self.U, self.W = uniform(2 * n, i, bound=i**-0.5), uniform(2 * n, n, bound=n**-0.5)
        self.b = uniform(2 * n, bound=1)

    def project(self, x):
        return linear(x, self.U, self.b)

    def step(self, u, state, derived):
        f, c = torch.addmm(u, state[0], self.W.T).chunk(2, -1)
        return (torch.lerp(torch.tanh(c), state[0], torch.sigmoid(f)),)
