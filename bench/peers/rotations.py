"""Cells whose matrix is a product of plane rotations in the order of a Fourier transform: EURNN and GORU. The dense
matrix is made once a sequence, which is the fastest way at these sizes: a rotation layer by layer in every step takes
several calls for each of log2 n layers."""

import math

import torch
from torch.nn.functional import linear

from common import Recurrent, uniform
from orthogonal import modrelu


def rotation_matrix(theta):
    """W^T of angles [log2 n, n/2]: the rows of the identity, turned layer by layer."""
    half = theta.shape[1]
    h = torch.eye(2 * half, dtype=theta.dtype, device=theta.device)
    for layer, angles in enumerate(theta):  # pairs lie n / 2^(layer + 1) apart within groups
        groups = 2**layer
        a, b = h.view(2 * half, groups, 2, half // groups).unbind(2)
        t = angles.view(half // groups, groups).T
        h = torch.stack([t.cos() * a - t.sin() * b, t.sin() * a + t.cos() * b], 2).flatten(1)
    return h


def angles(n):
    return uniform(n.bit_length() - 1, n // 2, bound=math.pi)


class Eurnn(Recurrent):
    """h' = modReLU(W h + U x; b)"""
    names = {"theta": "theta", "U": "U", "b": "b"}

    def __init__(self, i, n):
        super().__init__(n)
        self.theta, self.U, self.b = angles(n), uniform(n, i, bound=i**-0.5), uniform(n, bound=0.01)

    def derive(self):
        return rotation_matrix(self.theta)

    def project(self, x):
        return linear(x, self.U)

    def step(self, u, state, derived):
        return (modrelu(torch.addmm(u, state[0], derived), self.b + 0.01),)


class Goru(Recurrent):
    """A GRU whose candidate is modReLU(r (Q h) + U_c x; b_c), Q a product of rotations."""
    names = {"theta": "theta", "U": ["U_z", "U_r", "U_c"], "W": ["W_z", "W_r"], "b": ["b_z", "b_r"], "b_c": "b_c"}

    def __init__(self, i, n):
        super().__init__(n)
        self.theta, self.U, self.W = angles(n), uniform(3 * n, i, bound=i**-0.5), uniform(2 * n, n, bound=n**-0.5)
        self.b, self.b_c = uniform(2 * n, bound=1), uniform(n, bound=0.01)

    def derive(self):
        return torch.cat([self.W.T, rotation_matrix(self.theta)], 1)

    def project(self, x):
        return linear(x, self.U, torch.cat([self.b, torch.zeros_like(self.b_c)]))

    def step(self, u, state, derived):
        h, n = state[0], self.n
        a = h @ derived
        z, r = torch.sigmoid(u[:, :2 * n] + a[:, :2 * n]).chunk(2, -1)
        c = modrelu(r * a[:, 2 * n:] + u[:, 2 * n:], self.b_c + 0.001)
        return (torch.lerp(c, h, z),)
