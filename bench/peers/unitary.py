"""uRNN. Its unitary matrix is made once a sequence, and complex numbers go as [re; im] through one real product, as the
papers' code does: at these sizes both are faster than Fourier transforms of complex tensors in every step."""

import math

import torch
from torch import nn
from torch.nn.functional import linear

from common import Recurrent, uniform


def complex_normal(*shape):
    return nn.Parameter(torch.complex(torch.randn(shape), torch.randn(shape)))


def real_form(W):
    """The real matrix of W acting on [re; im]."""
    return torch.cat([torch.cat([W.real, -W.imag], 1), torch.cat([W.imag, W.real], 1)])


class Urnn(Recurrent):
    """z' = modReLU(D_3 R_2 F^-1 D_2 Pi R_1 F D_1 z + V x; b), z complex; the first state is trained."""
    names = {name: name for name in ("omega_1", "omega_2", "omega_3", "v_1", "v_2", "V", "b", "z_0")}

    def __init__(self, i, n):
        super().__init__(n)
        self.outputs = 2 * n
        self.omega_1, self.omega_2, self.omega_3 = (uniform(n, bound=math.pi) for _ in range(3))
        self.v_1, self.v_2, self.z_0 = (complex_normal(n) for _ in range(3))
        self.V, self.b = complex_normal(n, i), uniform(n, bound=0.01)
        self.register_buffer("perm", torch.randperm(n))

    def derive(self):
        """The real form of W^T: the rows of the identity, sent through."""
        def reflect(v, z):
            return z - 2 * (z @ v.conj())[:, None] * v / v.abs().square().sum()
        one = torch.ones_like(self.omega_1)
        D_1, D_2, D_3 = (torch.polar(one, omega) for omega in (self.omega_1, self.omega_2, self.omega_3))
        z = reflect(self.v_1, torch.fft.fft(torch.diag(D_1), norm="ortho"))[:, self.perm]
        return real_form((D_3 * reflect(self.v_2, torch.fft.ifft(D_2 * z, norm="ortho"))).T).T

    def project(self, x):
        return linear(x, torch.cat([self.V.real, self.V.imag]))

    def initial(self, x):
        return (torch.cat([self.z_0.real, self.z_0.imag]).expand(x.shape[1], -1),)

    def step(self, u, state, derived):
        re, im = torch.addmm(u, state[0], derived).chunk(2, -1)
        size = torch.hypot(re, im)
        scale = torch.relu(size + self.b) / (size + 1e-5)
        return (torch.cat([scale * re, scale * im], -1),)
