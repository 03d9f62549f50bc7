"""Orthogonal cells in JAX: scoRNN, expRNN, oRNN, ENRNN."""

import jax.numpy as jnp
from jax import lax
from jax.nn import leaky_relu, relu
from jax.scipy.linalg import expm, solve_triangular

from jax_common import Recurrent, linear


def modrelu(z, b):
    """sign(z) relu(|z| + b)"""
    return jnp.sign(z) * relu(jnp.abs(z) + b)


def skew(A):
    return jnp.triu(A, 1) - jnp.triu(A, 1).T


def cayley(A, negatives):
    """(I + A)^-1 (I - A) D, D a diagonal of signs whose last ones are -1"""
    one = jnp.eye(len(A), dtype=A.dtype)
    D = jnp.ones(len(A), A.dtype).at[len(A) - negatives:].set(-1)
    return jnp.linalg.solve(one + skew(A), one - skew(A)) * D


def radius(T):
    return jnp.abs(jnp.linalg.eigvals(T)).max()


class Orthogonal(Recurrent):
    def derive(self, p, flag):
        return self.matrix(p["A"]).T, p["b"]

    def project(self, p, x):
        return linear(x, p["U"])

    def step(self, u, state, derived):
        W, b = derived
        return (modrelu(u + state[0] @ W, b),)


class Scornn(Orthogonal):
    def matrix(self, A):
        return cayley(A, self.n // 2)


class Exprnn(Orthogonal):
    def matrix(self, A):
        return expm(skew(A))


class Ornn(Recurrent):
    def derive(self, p, flag):
        U = jnp.tril(p["U"])
        gram = U.T @ U
        S = (jnp.triu(gram) + jnp.triu(gram, 1)) / 2
        return (jnp.eye(self.n, dtype=U.dtype) - U @ solve_triangular(S, U.T)).T

    def project(self, p, x):
        return linear(x, p["V"], p["b"])

    def initial(self, p, B):
        return (jnp.broadcast_to(p["h_0"], (B, self.n)),)

    def step(self, u, state, derived):
        return (leaky_relu(u + state[0] @ derived, 0.1),)

    def updated(self, p, flag):
        return {"U": p["U"] / jnp.linalg.norm(p["U"], axis=0)}, flag


class Enrnn(Orthogonal):
    """The flag says whether T is divided by its radius: late, from the update on that takes the radius past 1."""

    def __init__(self, n, normalise="late"):
        super().__init__(n)
        self.normalise = normalise

    def flag(self):
        return jnp.array(self.normalise == "on")

    def derive(self, p, flag):
        long = len(p["A"])
        if self.normalise == "on":
            W_S = p["T"] / radius(p["T"])
        elif self.normalise == "late":
            W_S = lax.cond(flag, lambda T: T / radius(T), lambda T: T, p["T"])
        else:
            W_S = p["T"]
        below = jnp.zeros((self.n - long, long), W_S.dtype)
        return jnp.block([[cayley(p["A"], long // 2), p["W_C"]], [below, W_S]]).T, p["b"]

    def updated(self, p, flag):
        if self.normalise == "late":
            flag = lax.cond(flag, lambda T: True, lambda T: radius(T) > 1, p["T"])
        return {}, flag
