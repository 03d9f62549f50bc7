"""What check.py asks of the peers in JAX: the outputs, gradients and training steps of those in PyTorch."""

import jax
import jax.numpy as jnp
import torch

from jax_common import Training
from jax_hand_over import array, hand_over
from jax_peers import make_cell
from peers import make_training
from rows import Row

STEPS = 3
UNROLL = 4  # times 7 in a run: one round of the unrolled body, and a remainder

jax.config.update("jax_enable_x64", True)  # allows doubles; what is in floats stays so


def difference(a, b):
    """The largest difference, relative to the largest value of b where that is above 1."""
    return float(jnp.abs(a - b).max() / jnp.maximum(jnp.abs(b).max(), 1))


def cell_difference(text, cell, x, dy, y):
    """The largest differences of outputs and of gradients, those of the parameters and of x, after y.backward(dy)."""
    peer = make_cell(text, cell.n)
    fixed = {name: array(b) for name, b in cell.named_buffers()}
    parameters = {name: array(p) for name, p in cell.named_parameters()}
    theirs = {name: array(p.grad) for name, p in cell.named_parameters()} | {"x": array(x.grad)}

    def run(p):
        u = peer.project(p | fixed, p["x"])
        return peer.run(p | fixed, u, peer.flag(), True, UNROLL)
    own, back = jax.vjp(jax.jit(run), parameters | {"x": array(x)})
    gradients = back(array(dy))[0]
    return difference(own, array(y)), worst(difference(g, theirs[name]) for name, g in gradients.items())


def training_difference(text, row):
    """The largest difference of losses and parameters over some training steps, from the same start."""
    training = make_training(text, row)
    if text == "enrnn":  # its first update takes the radius past 1, and the next steps divide by it
        with torch.no_grad():
            training.model.cell.T *= 2 / torch.linalg.eigvals(training.model.cell.T).abs().max()
    peer = Training(make_cell(text, row.n), row.task, hand_over(training), UNROLL)
    losses = [difference(jnp.array(peer.step()), jnp.array(training.step())) for _ in range(STEPS)]
    named = training.model.named_parameters()
    return worst(losses + [difference(peer.parameters[name], array(p)) for name, p in named])


def worst(differences):
    """The largest, or one that is not a number."""
    return max(differences, key=lambda d: (d != d, d))


def training_differences(text, n, tasks):
    return worst(training_difference(text, Row(7, 3, n, task)) for task in tasks)
