"""Golden losses with weights and reductions: NumPy against PyTorch, as in ops.py.

Keys are loss.variant; beside each case lies `reduction` (mean 0, sum 1, none 2). Of weights w the mean is
sum(w loss) / sum(w). `mask` stands for weights 0 and 1 that have no gradient.
"""

import numpy as np
import torch

from common import put, write
from ops import Ops, log_softmax

F = torch.nn.functional
DELTA = 1.25

PAIRS = {  # NumPy's and PyTorch's loss of each place
    "mse": (lambda x, t: np.abs(x - t) ** 2, lambda x, t: F.mse_loss(x, t, reduction="none")),
    "l1_loss": (lambda x, t: np.abs(x - t), lambda x, t: F.l1_loss(x, t, reduction="none")),
    "huber_loss": (lambda x, t: np.where(np.abs(x - t) <= DELTA, 0.5 * (x - t) ** 2, DELTA * (np.abs(x - t) - DELTA / 2)),
                   lambda x, t: F.huber_loss(x, t, reduction="none", delta=DELTA)),
    "binary_cross_entropy_with_logits": (
        lambda x, t: np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x))),
        lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none")),
}
REDUCTIONS = [lambda l, w: (l * w).sum() / w.sum(), lambda l, w: (l * w).sum(), lambda l, w: l * w]


def variants(ops, name, numpy_loss, torch_loss, **inputs):
    """The loss of places (3, 4): without weights, with one for each place, one for each row, and a mask."""
    places = (3, 4)
    mask = np.array([[1, 1, 0, 1], [0, 0, 0, 1], [1, 0, 1, 1]], dtype=np.int32)
    for r, reduce in enumerate(REDUCTIONS):
        def weighted(loss, ones):
            return lambda *values: reduce(loss(*values[:-1]), values[-1] * ones)

        def masked(loss, weights):
            return lambda *values: reduce(loss(*values), weights)
        ones = np.ones(places), torch.ones(places, dtype=torch.float64)
        key = f"{name}.plain_{r}"
        ops.integers(f"{key}.reduction", [r])
        ops.case(key, masked(numpy_loss, ones[0]), masked(torch_loss, ones[1]), **inputs)
        for kind, shape in (("places", places), ("rows", (3, 1))):
            key = f"{name}.{kind}_{r}"
            ops.integers(f"{key}.reduction", [r])
            ops.case(key, weighted(numpy_loss, ones[0]), weighted(torch_loss, ones[1]), **inputs,
                     weight=ops.rng.uniform(0.5, 2, shape))
        key = f"{name}.mask_{r}"
        ops.integers(f"{key}.reduction", [r])
        ops.integers(f"{key}.mask", mask)
        ops.case(key, masked(numpy_loss, mask.astype(float)), masked(torch_loss, torch.tensor(mask).double()), **inputs)


def pairs(ops):
    for name, forms in PAIRS.items():
        x = 2 * ops.normal(3, 4)
        target = ops.rng.uniform(0, 1, (3, 4)) if name.startswith("binary") else ops.normal(3, 4)
        if name.startswith("binary"):
            x[0] *= [1, 100, -100, 20]
        variants(ops, name, *forms, x=x, target=target)
    for name in ("mse", "l1_loss"):
        key = f"{name}.complex"
        ops.integers(f"{key}.reduction", [0])
        torch_form = (lambda x, t: ((x - t).abs() ** 2).mean()) if name == "mse" else lambda x, t: (x - t).abs().mean()
        ops.case(key, lambda x, t: np.mean(PAIRS[name][0](x, t)), torch_form, x=ops.normal(3, 4, kind="complex"),
                 target=ops.normal(3, 4, kind="complex"))


def cross_entropy(ops):
    targets = np.array([[3, 0, 4, 3], [1, 1, 2, 0], [4, 2, 2, 3]], dtype=np.int32)
    put(ops.tensors, "cross_entropy.targets", targets)
    index = torch.tensor(targets).long()
    variants(ops, "cross_entropy", lambda x: -np.take_along_axis(log_softmax(x), targets[..., None], -1)[..., 0],
             lambda x: F.cross_entropy(x.movedim(-1, 1), index, reduction="none"), x=2 * ops.normal(3, 4, 5))
    of_class = np.array([0.5, 1, 2, 0.25, 1.5])  # PyTorch's weights, one for each class, are weights of the places
    put(ops.tensors, "cross_entropy.classes.weight", of_class[targets])
    ops.integers("cross_entropy.classes.reduction", [0])
    w = of_class[targets]
    ops.case("cross_entropy.classes",
             lambda x: np.sum(-w * np.take_along_axis(log_softmax(x), targets[..., None], -1)[..., 0]) / np.sum(w),
             lambda x: F.cross_entropy(x.movedim(-1, 1), index, weight=torch.tensor(of_class)), x=ops.normal(3, 4, 5))


def generate(folder):
    ops = Ops(seed=50)
    for family in (pairs, cross_entropy):
        family(ops)
    return [write(folder, "losses", ops.tensors)]
