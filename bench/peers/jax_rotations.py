"""Cells whose matrix is a product of plane rotations in JAX: EURNN and GORU. It is made once a
sequence, as in PyTorch."""

import jax.numpy as jnp
from jax.nn import sigmoid

from jax_common import Recurrent, linear
from jax_orthogonal import modrelu


def rotation_matrix(theta):
    """W^T of angles [log2 n, n/2]: the rows of the identity, turned layer by layer."""
    half = theta.shape[1]
    h = jnp.eye(2 * half, dtype=theta.dtype)
    for layer, angles in enumerate(theta):  # pairs lie n / 2^(layer + 1) apart within groups
        groups = 2**layer
        pairs = h.reshape(2 * half, groups, 2, half // groups)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        t = angles.reshape(half // groups, groups).T
        h = jnp.stack([jnp.cos(t) * a - jnp.sin(t) * b, jnp.sin(t) * a + jnp.cos(t) * b], 2).reshape(2 * half, -1)
    return h


class Eurnn(Recurrent):
    def derive(self, p, flag):
        return rotation_matrix(p["theta"]), p["b"] + 0.01

    def project(self, p, x):
        return linear(x, p["U"])

    def step(self, u, state, derived):
        W, b = derived
        return (modrelu(u + state[0] @ W, b),)


class Goru(Recurrent):
    def derive(self, p, flag):
        return jnp.concatenate([p["W"].T, rotation_matrix(p["theta"])], 1), p["b_c"] + 0.001

    def project(self, p, x):
        return linear(x, p["U"], jnp.concatenate([p["b"], jnp.zeros_like(p["b_c"])]))

    def step(self, u, state, derived):
        (h,), (W, b_c) = state, derived
        n, a = self.n, h @ W
        z, r = jnp.split(sigmoid(u[:, :2 * n] + a[:, :2 * n]), 2, -1)
        c = modrelu(r * a[:, 2 * n:] + u[:, 2 * n:], b_c)
        return (c + z * (h - c),)
