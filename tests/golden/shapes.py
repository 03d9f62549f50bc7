"""Golden values of softmax and its family, norms, statistics, running sums, products by letters and lookups.

As in ops.py: NumPy against PyTorch, PyTorch's gradient against finite differences; L = Re sum(conj(dy) * y). What a case
is called with besides its tensors (axes, indices, p) stands beside it as int32 or in a key's last part.
"""

import numpy as np
import torch

from common import write
from ops import Ops, log_softmax, logsumexp

EPSILON = 1e-5  # of layer_norm


def along(f, axis):
    """f, which works on the last axis, on another."""
    return lambda x: np.moveaxis(f(np.moveaxis(x, axis, -1)), -1, axis)


def softmaxes(cases):
    shift = np.array([0, 700, -700.0])[:, None]  # exp of these alone over- or underflows
    for name, x in (("plain", 2 * cases.normal(3, 5)), ("offset", 2 * cases.normal(3, 5) + shift)):
        for axis in (0, 1):
            key = f"{name}.{axis}"
            cases.case(f"softmax.{key}", along(lambda v: np.exp(log_softmax(v)), axis),
                       lambda v: torch.softmax(v, axis), x=x)
            cases.case(f"log_softmax.{key}", along(log_softmax, axis), lambda v: torch.log_softmax(v, axis), x=x)
            cases.case(f"logsumexp.{key}", lambda v: logsumexp(np.moveaxis(v, axis, -1)),
                       lambda v: torch.logsumexp(v, axis), x=x)

    def layer_norm(x, gain, bias):
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / np.sqrt(np.mean(centred ** 2, axis=-1, keepdims=True) + EPSILON) * gain + bias
    for k, scale in enumerate((1.0, 1e-3)):  # of the second, epsilon is no small part of the variance
        cases.case(f"layer_norm.{k}", layer_norm, lambda x, g, b: torch.nn.functional.layer_norm(x, (6,), g, b, EPSILON),
                   x=scale * cases.normal(4, 6), gain=cases.normal(6), bias=cases.normal(6))


def statistics(cases):
    """norm.<p>.<axes>, var.<correction>.<axes>, std_dev.<correction>.<axes>, of real and complex numbers."""
    orders = {"1": 1, "2": 2, "3": 3, "5": 5, "2.5": 2.5, "inf": np.inf}
    for group, kind in (("", "real"), ("complex.", "complex")):
        for axes in ((1,), (0, 2)):
            where = "".join(map(str, axes))
            for name, p in orders.items():
                def norm(x, p=p, axes=axes):
                    size = np.abs(x)
                    return np.max(size, axes) if p == np.inf else np.sum(size ** p, axes) ** (1 / p)
                cases.case(f"{group}norm.{name.replace('.', '_')}.{where}", norm,
                           lambda x, p=p, axes=axes: torch.linalg.vector_norm(x, p, axes), x=cases.normal(2, 3, 4, kind=kind))
            for correction in (0, 1):
                for op, root in (("var", False), ("std_dev", True)):
                    def spread(x, axes=axes, correction=correction, root=root):
                        v = np.var(x, axis=axes, ddof=correction)
                        return np.sqrt(v) if root else v
                    torch_form = torch.std if root else torch.var
                    cases.case(f"{group}{op}.{correction}.{where}", spread,
                               lambda x, f=torch_form, axes=axes, c=correction: f(x, axes, correction=c),
                               x=cases.normal(2, 3, 4, kind=kind))


def products(cases):
    """prod over axis 1, rows with no, one and two zeros; cumsum along each axis, both ways."""
    x = cases.normal(3, 5)
    x[1, 2] = x[2, 0] = x[2, 3] = 0
    cases.case("prod", lambda v: np.prod(v, axis=1), lambda v: torch.prod(v, 1), x=x)
    for axis in (0, 1, 2):
        def backwards(v, axis=axis):
            return np.flip(np.cumsum(np.flip(v, axis), axis), axis)
        cases.case(f"cumsum.{axis}.forward", lambda v: np.cumsum(v, axis), lambda v: torch.cumsum(v, axis),
                   x=cases.normal(2, 3, 4))
        cases.case(f"cumsum.{axis}.reverse", backwards, lambda v: v.flip(axis).cumsum(axis).flip(axis),
                   x=cases.normal(2, 3, 4))


# key: subscripts, shapes
EINSUMS = {
    "matmul": ("ij,jk->ik", (2, 3), (3, 4)),
    "transposed": ("ji,kj->ki", (3, 2), (4, 3)),
    "batch": ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)),
    "rows": ("bi,bi->b", (3, 4), (3, 4)),
    "outer": ("i,j->ji", (3,), (4,)),
    "two_inner": ("aibj,jbk->ka", (2, 2, 3, 2), (2, 3, 4)),
    "diagonal": ("iij,jk", (3, 3, 2), (2, 4)),
    "sums": ("ijk,lj->l", (2, 3, 2), (4, 3)),
    "trace": ("ii", (4, 4)),
    "turned": ("ijk->kj", (2, 3, 4)),
}


def einsums(cases):
    for group, kind in (("einsum", "real"), ("complex.einsum", "complex")):
        for name, (subscripts, *shapes) in EINSUMS.items():
            if kind == "complex" and name not in ("batch", "diagonal"):
                continue  # the files stay small
            inputs = {letter: cases.normal(*shape, kind=kind) for letter, shape in zip("ab", shapes)}
            cases.case(f"{group}.{name}", lambda *xs: np.einsum(subscripts, *xs),
                       lambda *xs: torch.einsum(subscripts, *xs), **inputs)


def lookups(cases):
    """index_select.<axis>: an index of two axes takes the place of one; take_along.<axis>: an index for each place."""
    index = np.array([[2, 0, 2], [1, 1, 0]])
    for axis in (0, 1, 2):
        cases.integers(f"index_select.{axis}.index", index)
        flat = torch.tensor(index.ravel())
        cases.case(f"index_select.{axis}", lambda x: np.take(x, index, axis),
                   lambda x: torch.index_select(x, axis, flat).unflatten(axis, index.shape), x=cases.normal(3, 4, 3))
        shape = [3, 4, 3]
        shape[axis] = 5
        along_index = cases.rng.integers(0, 3, shape)
        cases.integers(f"take_along.{axis}.index", along_index)
        cases.case(f"take_along.{axis}", lambda x: np.take_along_axis(x, along_index, axis),
                   lambda x: torch.gather(x, axis, torch.tensor(along_index)), x=cases.normal(3, 4, 3))


def generate(folder):
    cases = Ops(seed=31)
    for family in (softmaxes, statistics, products, einsums, lookups):
        family(cases)
    return [write(folder, "shapes", cases.tensors)]
