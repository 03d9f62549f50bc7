"""What the peers in JAX share: a cell under lax.scan, a model around it, and a training step as one compiled function.

A cell's parameters are those of the PyTorch peer by the same names, complex ones as reals with a last axis of 2.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import log_softmax, one_hot

from rows import GREYS

RATE, DECAY, EPSILON = 1e-5, 0.9, 1e-8  # of RMSprop, as the peers in PyTorch have them


def linear(x, W, b=0):
    return x @ W.T + b


class Recurrent:
    """A cell over time; `p` are its parameters, and what is fixed, by name."""

    tabulates_greys = False  # project() is faster on the 256 greys than on all pixels, with the gather and its gradient

    def __init__(self, n):
        self.n = n

    def flag(self):
        """A truth value that training carries along, for what begins at some update; None: there is none."""
        return None

    def derive(self, p, flag):
        """What is made of the parameters alone: once a sequence."""
        raise NotImplementedError

    def project(self, p, x):
        """What is made of the inputs alone, [..., i] -> [..., .]: for all times, or all symbols, at once."""
        raise NotImplementedError

    def initial(self, p, B):
        """The state before the first step, a tuple."""
        return (jnp.zeros((B, self.n), p["b"].dtype),)

    def step(self, u, state, derived):
        """One time: its part of project(p, x), the state -> the next state."""
        raise NotImplementedError

    def output(self, p, h):
        """What the head sees of the state's first tensor, at one time or all times."""
        return h

    def updated(self, p, flag):
        """Called after each update of the parameters: what of them it replaces, and the flag."""
        return {}, flag

    def run(self, p, u, flag, every_step, unroll=1):
        """project's result [T, B, .] -> outputs [T, B, .] of all times, or of the last one [B, .]."""
        derived = self.derive(p, flag)

        def step(state, u):
            state = self.step(u, state, derived)
            return state, state[0] if every_step else None
        last, hs = lax.scan(step, self.initial(p, u.shape[1]), u, unroll=unroll)
        return self.output(p, hs if every_step else last[0])


def of_cell(parameters):
    return {name.removeprefix("cell."): value for name, value in parameters.items() if name.startswith("cell.")}


def make_loss(cell, task, fixed, unroll):
    """The loss of a batch: parameters, flag, x, y -> a number."""
    def loss(parameters, flag, x, y):
        p = of_cell(parameters) | fixed
        if task == "copying":  # a row for each symbol
            u = cell.project(p, parameters["embedding.weight"])[x]
        elif task == "pixels" and cell.tabulates_greys:  # a row for each grey
            greys = jnp.arange(GREYS, dtype=x.dtype)[:, None] / (GREYS - 1)
            u = cell.project(p, greys)[jnp.rint(x[..., 0] * (GREYS - 1)).astype(int)]
        else:
            u = cell.project(p, x)
        h = cell.run(p, u, flag, task in ("copying", "frames"), unroll)
        out = linear(h, parameters["head.weight"], parameters["head.bias"])
        if task == "adding":
            return jnp.mean((out - y) ** 2)
        return -jnp.mean(jnp.sum(log_softmax(out) * one_hot(y, out.shape[-1], dtype=out.dtype), -1))
    return loss


def make_step(cell, task, fixed, unroll):
    """A training step, one compiled function: parameters, averages of squares, flag, x, y -> the first three and the
    loss. It overwrites its first two arguments."""
    gradient = jax.value_and_grad(make_loss(cell, task, fixed, unroll))

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(parameters, squares, flag, x, y):
        loss, g = gradient(parameters, flag, x, y)
        squares = {name: DECAY * squares[name] + (1 - DECAY) * g[name] ** 2 for name in g}
        parameters = {name: p - RATE * g[name] / (jnp.sqrt(squares[name]) + EPSILON) for name, p in parameters.items()}
        replaced, flag = cell.updated(of_cell(parameters), flag)
        return parameters | {f"cell.{name}": value for name, value in replaced.items()}, squares, flag, loss
    return step


class Training:
    """A model, a fixed batch, and what a training loop does with them."""

    def __init__(self, cell, task, arrays, unroll):
        """`arrays`: as jax_hand_over gives them."""
        groups = {"parameter": {}, "fixed": {}, "batch": {}}
        for path, value in arrays.items():
            group, name = path.split("/")
            groups[group][name] = jnp.array(value)  # a copy: it may be overwritten
        self.parameters, self.batch = groups["parameter"], groups["batch"]
        self.squares = {name: jnp.zeros_like(p) for name, p in self.parameters.items()}
        self.flag = cell.flag()
        self.run = make_step(cell, task, groups["fixed"], unroll)

    def step(self):
        self.parameters, self.squares, self.flag, loss = jax.block_until_ready(
            self.run(self.parameters, self.squares, self.flag, self.batch["x"], self.batch["y"]))
        return loss.item()
