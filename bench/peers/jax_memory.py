"""Cells with a memory beside the output in JAX: NRU, and SRU, the statistical recurrent unit."""

import jax.numpy as jnp
from jax.nn import relu

from jax_common import Recurrent, linear


class Nru(Recurrent):
    def __init__(self, n, memory="64", heads="4"):
        super().__init__(n)
        self.memory, self.heads = int(memory), int(heads)
        self.side = round((self.memory * self.heads) ** 0.5)

    def initial(self, p, B):
        dtype = p["W_h.bias"].dtype
        return jnp.zeros((B, self.n), dtype), jnp.zeros((B, self.memory), dtype)

    def inputs(self, p):
        return p["W_h.weight"].shape[1] - self.n - self.memory

    def derive(self, p, flag):
        return p["W_h.weight"][:, self.inputs(p):].T, p["all_heads.weight"].T, p["all_heads.bias"]

    def project(self, p, x):
        return linear(x, p["W_h.weight"][:, :self.inputs(p)], p["W_h.bias"])

    def step(self, u, state, derived):
        W_h, W_heads, b_heads = derived
        m, heads = state[1], self.heads
        h = relu(u + jnp.concatenate(state, -1) @ W_h)
        a = jnp.concatenate([h, m], -1) @ W_heads + b_heads
        alpha, beta, left_right, other = jnp.split(a, [heads, 2 * heads, 2 * (heads + self.side)], -1)
        change = alpha[:, :, None] * self.directions(left_right) - beta[:, :, None] * self.directions(other)
        return h, m + change.mean(1)

    def directions(self, a):
        """[B, 2 s] -> [B, heads, memory]: an outer product, cut into vectors of length 1 in the 5-norm."""
        left, right = jnp.split(a, 2, -1)
        rows = (left[:, :, None] * right[:, None, :]).reshape(-1, self.heads, self.memory)
        powers = jnp.sum(jnp.abs(rows) ** 5, -1, keepdims=True)
        norm = jnp.where(powers > 0, powers, 1) ** 0.2  # the root has no derivative at 0; such rows are zeros
        return rows / jnp.maximum(norm, 1e-12)


class Sru(Recurrent):
    def __init__(self, n, p="60"):
        super().__init__(n)

    def initial(self, p, B):
        return (jnp.zeros((B, len(p["alpha"])), p["alpha"].dtype),)

    def inputs(self, p):
        return p["phi.weight"].shape[1] - len(p["r.bias"])

    def derive(self, p, flag):
        return p["r.weight"].T, p["r.bias"], p["phi.weight"][:, self.inputs(p):].T, p["alpha"]

    def project(self, p, x):
        return linear(x, p["phi.weight"][:, :self.inputs(p)], p["phi.bias"])

    def step(self, u, state, derived):
        W_r, b_r, W_phi, alpha = derived
        phi = relu(u + relu(state[0] @ W_r + b_r) @ W_phi)
        phi = jnp.tile(phi, (1, len(alpha) // phi.shape[1]))
        return (phi + alpha * (state[0] - phi),)

    def output(self, p, h):
        return relu(linear(h, p["o.weight"], p["o.bias"]))
