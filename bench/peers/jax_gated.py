"""Gated cells and plain ones in JAX: LSTM, GRU, RNN, JANET, SRNN."""

import jax.numpy as jnp
from jax.nn import relu, sigmoid

from jax_common import Recurrent, linear


class OwnModule(Recurrent):
    """The equations of nn.RNN, nn.LSTM and nn.GRU, with both of their biases."""

    def initial(self, p, B):
        return (jnp.zeros((B, self.n), p["inner.weight_hh_l0"].dtype),)

    def derive(self, p, flag):
        return p["inner.weight_hh_l0"].T

    def project(self, p, x):
        return linear(x, p["inner.weight_ih_l0"], p["inner.bias_ih_l0"] + p["inner.bias_hh_l0"])


class Rnn(OwnModule):
    def step(self, u, state, derived):
        return (jnp.tanh(u + state[0] @ derived),)


class Lstm(OwnModule):
    def initial(self, p, B):
        return 2 * super().initial(p, B)

    def step(self, u, state, derived):
        h, c = state
        i, f, g, o = jnp.split(u + h @ derived, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        return sigmoid(o) * jnp.tanh(c), c


class Gru(OwnModule):
    """The candidate's second bias is inside of r (W_c h + b2_c)."""

    def derive(self, p, flag):
        return super().derive(p, flag), p["inner.bias_hh_l0"][2 * self.n:]

    def project(self, p, x):
        b2 = p["inner.bias_hh_l0"].at[2 * self.n:].set(0)
        return linear(x, p["inner.weight_ih_l0"], p["inner.bias_ih_l0"] + b2)

    def step(self, u, state, derived):
        (h,), (W, b) = state, derived
        n, a = self.n, h @ W
        r, z = jnp.split(sigmoid(u[:, :2 * n] + a[:, :2 * n]), 2, -1)
        c = jnp.tanh(u[:, 2 * n:] + r * (a[:, 2 * n:] + b))
        return (c + z * (h - c),)


class Janet(Recurrent):
    def derive(self, p, flag):
        return p["W"].T

    def project(self, p, x):
        return linear(x, p["U"], p["b"])

    def step(self, u, state, derived):
        f, c = jnp.split(u + state[0] @ derived, 2, -1)
        c = jnp.tanh(c)
        return (c + sigmoid(f) * (state[0] - c),)


class Srnn(Recurrent):
    tabulates_greys = True

    def __init__(self, n, width="8"):
        super().__init__(n)

    def initial(self, p, B):
        return (jnp.zeros((B, self.n), p["g.bias"].dtype),)

    def derive(self, p, flag):
        return ()

    def project(self, p, x):
        inner = relu(linear(x, p["f1.weight"], p["f1.bias"]))
        return linear(inner, p["fo.weight"], p["fo.bias"]) * sigmoid(linear(x, p["g.weight"], p["g.bias"]))

    def step(self, u, state, derived):
        return (relu(jnp.roll(state[0], 1, -1) + u),)
