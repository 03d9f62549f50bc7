"""Golden values of the spectral ops, as ops.py has them: NumPy against PyTorch forward, PyTorch's gradient against
finite differences of NumPy.

Vectors are in the engine's gauge: unit length, the component of largest modulus real and positive (of U in svd, whose
phases go to Vh). Keys are op.kind; y of eig and eigh: the values as row 0, the vectors below, [..., n + 1, n]; of
svd: U, S, Vh flattened, one behind the other; of eigvals and spectral_radius: the values.
"""

import numpy as np
import torch

from common import write
from ops import Ops


def numpy_phase(v):
    """Of the component of largest modulus of each column: [..., 1, n]."""
    largest = np.take_along_axis(v, np.argmax(np.abs(v), axis=-2)[..., None, :], axis=-2)
    return largest / np.abs(largest)


def torch_phase(v):
    largest = torch.gather(v, -2, torch.argmax(v.detach().abs(), dim=-2, keepdim=True))
    return largest / largest.abs()


def numpy_rows(w, v):
    return np.concatenate([w[..., None, :], v * np.conj(numpy_phase(v))], axis=-2)


def torch_rows(w, v):
    return torch.cat([w[..., None, :].to(v.dtype), v * torch_phase(v).conj()], dim=-2)


def numpy_hermitian(a):
    return (a + np.conj(np.swapaxes(a, -1, -2))) / 2


def torch_hermitian(a):
    return (a + a.mH) / 2


def numpy_svd(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    phase = numpy_phase(u)
    parts = u * np.conj(phase), s, np.swapaxes(phase, -1, -2) * vh
    return np.concatenate([p.ravel() for p in parts])


def torch_svd(a):
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    phase = torch_phase(u)
    parts = u * phase.conj(), s.to(a.dtype), phase.mT * vh
    return torch.cat([p.reshape(-1) for p in parts])


def eigenvalues(ops):
    shapes = {"real": ((5, 5), "real"), "complex": ((4, 4), "complex"), "batch": ((2, 3, 3), "real")}
    for name, (shape, kind) in shapes.items():
        a = ops.normal(*shape, kind=kind)
        ops.case(f"eig.{name}", lambda a: numpy_rows(*np.linalg.eig(a)) + 0j,  # NumPy's are real when all happen to be
                 lambda a: torch_rows(*torch.linalg.eig(a)), a=a)
        ops.case(f"eigvals.{name}", lambda a: np.linalg.eigvals(a) + 0j, torch.linalg.eigvals, a=a)
        ops.case(f"eigh.{name}", lambda a: numpy_rows(*np.linalg.eigh(numpy_hermitian(a))),
                 lambda a: torch_rows(*torch.linalg.eigh(torch_hermitian(a))), a=a)


def singular_values(ops):
    for name, shape in {"square": (4, 4), "tall": (5, 3), "wide": (2, 4)}.items():
        for kind in ("real", "complex"):
            ops.case(f"svd.{name}_{kind}", numpy_svd, torch_svd, a=ops.normal(*shape, kind=kind))


def radii(ops):
    positive = np.abs(ops.normal(5, 5))  # the largest eigenvalue is real (Perron)
    x = ops.normal(5, 5)
    for name, a in {"real": positive, "pair": x - x.T + 0.3 * ops.normal(5, 5)}.items():
        w = np.linalg.eigvals(a)
        assert (abs(w[np.argmax(abs(w))].imag) > 0) == (name == "pair")
        ops.case(f"spectral_radius.{name}", lambda a: np.max(np.abs(np.linalg.eigvals(a))),
                 lambda a: torch.amax(torch.linalg.eigvals(a).abs()), a=a)


def generate(folder):
    ops = Ops(seed=60)
    for family in (eigenvalues, singular_values, radii):
        family(ops)
    return [write(folder, "spectral", ops.tensors)]
