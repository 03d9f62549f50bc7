"""What all golden recurrent cells share: how a cell is written down, checked and stored. (docs/equations.md lists the cells.)

Each cell is written twice. NumPy: one column vector at a time, in explicit loops over time and batch, straight from
the equations. PyTorch: batched row-vector code, by another route to the same numbers where there is one. Both forwards
must agree to 1e-12. Derivatives are PyTorch's, checked against finite differences.

L = Re sum(conj(dy) y) + Re sum(conj(dlast) last), a function of the parameters, x and the initial states.
"""

import zlib
from dataclasses import dataclass, field
from typing import Callable

import numpy as np
import torch

from common import assert_close, assert_same, central_differences, put, write

KINK_MARGIN = 1e-3  # how far values stay from points where the function is not smooth


def within(low, high):
    """A parameter drawn from U(low, high)."""
    return lambda rng, shape: rng.uniform(low, high, shape)


def complex_within(low, high):
    return lambda rng, shape: rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)


@dataclass
class Cell:
    file: str                 # name of the golden file
    kind: str                 # the cell of docs/equations.md
    settings: dict            # its options, where not the defaults
    shapes: dict[str, tuple]  # parameters in a fixed order
    states: dict[str, int]    # name and size of each state
    numpy_run: Callable       # (parameters, state vectors, x [T, i], kinks) -> (y [T, .], state vectors), one sequence
    torch_run: Callable       # (parameters, states [B, n], x [T, B, i]) -> (y [T, B, .], states [B, n])
    hidden: int
    draws: dict[str, Callable] = field(default_factory=dict)  # how to draw a parameter; U(-0.6, 0.6) if not here
    complex_state: bool = False
    fixed: dict = field(default_factory=dict)                 # stored as fixed.NAME: permutations and the like
    accept: Callable = lambda values: True                    # a further condition on the values drawn
    steps: int = 5
    batch: int = 2
    input: int = 3
    seed: int = 0                                             # 0: made from the file's name
    candidates: int = 30                                      # draws among which to choose


class Kinks:
    """Where a run came near points at which it is not smooth."""

    def __init__(self):
        self.units, self.edges = [], []

    def switch(self, a):
        """A unit is on for a > 0 and off for a < 0; there should be some of each."""
        self.units.extend(np.ravel(a))

    def edge(self, a):
        """Not smooth at a = 0; either side is good."""
        self.edges.extend(np.ravel(a))

    def avoided(self):
        on = np.array(self.units) > 0
        near = np.min(np.abs(self.units + self.edges), initial=np.inf)
        return near > KINK_MARGIN and (on.size == 0 or 0.25 < np.mean(on) < 0.75)


# ---------------------------------------------------------------- building blocks

def recurrence(step, output=lambda p, state, kinks: state[0], derive=lambda p: {}):
    """numpy_run of step(p, state vectors, x, kinks) -> state vectors; `derive`: what is made of the parameters once."""
    def run(p, state, x, kinks):
        p = p | derive(p)
        y = []
        for x_t in x:
            state = step(p, state, x_t, kinks)
            y.append(output(p, state, kinks))
        return np.array(y), state
    return run


def torch_recurrence(step, output=lambda p, states: states[0], derive=lambda p: {}):
    """torch_run of step(p, states [B, n], x [B, i]) -> states [B, n]."""
    def run(p, states, x):
        p = p | derive(p)
        y = []
        for x_t in x:
            states = step(p, states, x_t)
            y.append(output(p, states))
        return torch.stack(y), states
    return run


def gate_shapes(gates, input_weight, state_weight, i, n, biases=("b",)):
    """Shapes of U, W, b for each gate suffix, under the names given."""
    shapes = {}
    for k in gates:
        shapes |= {input_weight + k: (n, i), state_weight + k: (n, n)} | {b + k: (n,) for b in biases}
    return shapes


# ---------------------------------------------------------------- values, gradients, second order

def numpy_batch(cell, values):
    """y [T, B, .], last states [B, n] each, and the kinks met."""
    kinks, ys, lasts = Kinks(), [], []
    for row in range(cell.batch):
        state = tuple(values[f"state.{s}"][row] for s in cell.states)
        y, last = cell.numpy_run(values, state, values["x"][:, row], kinks)
        ys.append(y)
        lasts.append(last)
    return np.stack(ys, axis=1), {s: np.stack([last[k] for last in lasts]) for k, s in enumerate(cell.states)}, kinks


def draw(cell, rng):
    """Values of the parameters, x and states."""
    values = {k: cell.draws.get(k, within(-0.6, 0.6))(rng, shape) for k, shape in cell.shapes.items()}
    values["x"] = rng.standard_normal((cell.steps, cell.batch, cell.input))
    states = {f"state.{s}": 0.5 * normal(rng, (cell.batch, n), cell.complex_state) for s, n in cell.states.items()}
    return values | states


def normal(rng, shape, is_complex):
    real = rng.standard_normal(shape)
    return real + 1j * rng.standard_normal(shape) if is_complex else real


def draw_away_from_kinks(cell):
    """A seed whose run stays off the kinks, with units neither all on nor all off; of the first `candidates` such the
    one in which most entries of the gradient differ from 0."""
    candidates, base = [], cell.seed or zlib.crc32(cell.file.encode())
    for seed in range(base, base + 10_000):
        rng = np.random.default_rng(seed)
        values = draw(cell, rng)
        y, last, kinks = numpy_batch(cell, values)
        if not (kinks.avoided() and cell.accept(values)):
            continue
        cotangents = {"dy": rng.standard_normal(y.shape)}
        cotangents |= {f"dlast.{s}": normal(rng, h.shape, cell.complex_state) for s, h in last.items()}
        if cell.candidates == 1:
            return rng, values, cotangents
        seen = sum(np.count_nonzero(g) for g in torch_gradient(cell, values, cotangents)[2].values())
        candidates.append((seen, len(candidates), (rng, values, cotangents)))
        if len(candidates) == cell.candidates:
            return max(candidates)[2]
    raise RuntimeError(f"{cell.file}: too few seeds keep it away from its kinks")


def inner(a, b):
    """Re sum(conj(a) b), for NumPy and PyTorch."""
    return (a.conj() * b).real.sum()


def torch_gradient(cell, values, cotangents, direction=None):
    """y, last states, dL/dvalues and, given a direction v, the product H v; all as NumPy."""
    leaves = {k: torch.tensor(a, requires_grad=True) for k, a in values.items()}
    y, last = cell.torch_run(leaves, tuple(leaves[f"state.{s}"] for s in cell.states), leaves["x"])
    loss = inner(torch.tensor(cotangents["dy"]), y)
    for s, h in zip(cell.states, last):
        loss = loss + inner(torch.tensor(cotangents[f"dlast.{s}"]), h)
    gradient = torch.autograd.grad(loss, list(leaves.values()), create_graph=direction is not None)
    products = []
    if direction is not None:
        slope = sum(inner(g, torch.tensor(direction[k])) for k, g in zip(leaves, gradient))
        products = torch.autograd.grad(slope, list(leaves.values()), allow_unused=True, materialize_grads=True)
    as_numpy = lambda tensors: {k: g.detach().resolve_conj().numpy() for k, g in zip(leaves, tensors)}
    return (y.detach().numpy(), {s: h.detach().resolve_conj().numpy() for s, h in zip(cell.states, last)},
            as_numpy(gradient), as_numpy(products))


def slope_along(f, values, direction, eps=3e-5):
    """d f(values + s direction) / ds at 0 by differences of fourth order; f maps dicts of arrays to such dicts."""
    at = {s: f({k: a + s * eps * direction[k] for k, a in values.items()}) for s in (-2, -1, 1, 2)}
    return {k: (8 * (at[1][k] - at[-1][k]) - (at[2][k] - at[-2][k])) / (12 * eps) for k in values}


def golden_cell(cell):
    """The tensors of a cell's file, after all checks."""
    rng, values, cotangents = draw_away_from_kinks(cell)
    direction = {k: normal(rng, a.shape, np.iscomplexobj(a)) for k, a in values.items()}
    y, last, gradient, product = torch_gradient(cell, values, cotangents, direction)

    # Forward: NumPy against PyTorch.
    def loss(v):
        y, last, _ = numpy_batch(cell, v)
        return inner(cotangents["dy"], y) + sum(inner(cotangents[f"dlast.{s}"], last[s]) for s in cell.states)
    numpy_y, numpy_last, _ = numpy_batch(cell, values)
    assert_same(f"{cell.file} y", numpy_y, y)
    for s in cell.states:
        assert_same(f"{cell.file} last.{s}", numpy_last[s], last[s])

    # First order: autograd against differences of the NumPy loss. Second: against differences of the gradient along v.
    numeric = central_differences(loss, values)
    for k in values:
        assert_close(f"{cell.file} grad.{k}", gradient[k], numeric[k])
    along = slope_along(lambda v: torch_gradient(cell, v, cotangents)[2], values, direction)
    for k in values:
        assert_close(f"{cell.file} hvp.{k}", product[k], along[k])

    tensors = {}
    for k, a in (values | cotangents | {"y": y} | {f"last.{s}": last[s] for s in cell.states}).items():
        put(tensors, k, a)
    for prefix, group in (("grad", gradient), ("v", direction), ("hvp", product), ("fixed", cell.fixed)):
        for k, a in group.items():
            put(tensors, f"{prefix}.{k}", a)
    return tensors


def generate_cells(folder, cells):
    return [write(folder, cell.file, golden_cell(cell)) for cell in cells]


def write_index(folder, cells):
    """cells.tsv: which cell with which settings a golden file holds."""
    lines = ["file\tcell\tinput\thidden\tsettings"]
    for c in cells:
        settings = " ".join(f"{k}={v}" for k, v in c.settings.items())
        lines.append(f"{c.file}\t{c.kind}\t{c.input}\t{c.hidden}\t{settings or '-'}")
    path = folder / "cells.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path
