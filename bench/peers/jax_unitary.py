"""uRNN in JAX: its unitary matrix is made once a sequence, and acts as a real one on [re; im], as in PyTorch."""

import jax.numpy as jnp
from jax import lax
from jax.nn import relu

from jax_common import Recurrent, linear


def as_complex(pairs):
    return lax.complex(pairs[..., 0], pairs[..., 1])


class Urnn(Recurrent):
    def derive(self, p, flag):
        """The real form of W^T: the rows of the identity, sent through; and the bias."""
        def reflect(v, z):
            return z - 2 * (z @ v.conj())[:, None] * v / jnp.sum(v.real**2 + v.imag**2)
        D_1, D_2, D_3 = (lax.complex(jnp.cos(p[name]), jnp.sin(p[name])) for name in ("omega_1", "omega_2", "omega_3"))
        v_1, v_2 = as_complex(p["v_1"]), as_complex(p["v_2"])
        z = reflect(v_1, jnp.fft.fft(jnp.diag(D_1), norm="ortho"))[:, p["perm"]]
        W = (D_3 * reflect(v_2, jnp.fft.ifft(D_2 * z, norm="ortho"))).T
        return jnp.block([[W.real, -W.imag], [W.imag, W.real]]).T, p["b"]

    def project(self, p, x):
        return linear(x, jnp.concatenate([p["V"][..., 0], p["V"][..., 1]]))

    def initial(self, p, B):
        return (jnp.broadcast_to(p["z_0"].T.reshape(-1), (B, 2 * self.n)),)

    def step(self, u, state, derived):
        W, b = derived
        re, im = jnp.split(u + state[0] @ W, 2, -1)
        size = jnp.sqrt(re**2 + im**2)
        scale = relu(size + b) / (size + 1e-5)
        return (jnp.concatenate([scale * re, scale * im], -1),)
