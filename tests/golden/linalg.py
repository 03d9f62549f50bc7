"""Golden values of the linear algebra: NumPy and SciPy against PyTorch forward, PyTorch's gradient against finite differences.

Keys are function.variant_kind, kind real or complex; L and gradients as in ops.py. Results of several parts (lu, qr, slogdet)
are one vector y, the parts one after another, row by row.
"""

import numpy as np
import scipy.linalg
import torch

from common import write
from ops import Ops

TL = torch.linalg


def mT(x):
    return x.swapaxes(-1, -2)


def mH(x):
    return x.conj().swapaxes(-1, -2)


def flat(*parts):
    return np.concatenate([p.reshape(-1) for p in parts])


def torch_flat(*parts):
    return torch.cat([p.reshape(-1).to(parts[0].dtype) for p in parts])


def each(form):
    """A form of one matrix, for stacks of them."""
    def stacked(a):
        if a.ndim == 2:
            return form(a)
        return np.stack([form(x) for x in a])
    return stacked


class Linalg(Ops):
    def matrix(self, *shape, kind, shift=3.0):
        """Random with `shift` on the diagonal: well conditioned."""
        return self.normal(*shape, kind=kind) + shift * np.eye(shape[-2], shape[-1])


# ---------------------------------------------------------------- equations

def solving(ops, kind):
    for variant, a, b in (("plain", (4, 4), (4, 3)), ("batched", (2, 3, 3), (2, 3, 2)), ("shared", (3, 3), (2, 3, 2))):
        A, B = ops.matrix(*a, kind=kind), ops.normal(*b, kind=kind)
        ops.case(f"solve.{variant}_{kind}", np.linalg.solve, TL.solve, A=A, B=B)
        ops.case(f"solve.adjoint_{variant}_{kind}", lambda A, B: np.linalg.solve(mH(A), B),
                 lambda A, B: TL.solve(A.mH, B), A=A, B=B)
    for upper in (False, True):
        for unit in (False, True):
            for adjoint in (False, True):
                def numpy_form(A, B):
                    T = np.triu(A) if upper else np.tril(A)
                    if unit:
                        T = T - np.diag(np.diag(T)) + np.eye(4)
                    return np.linalg.solve(mH(T) if adjoint else T, B)

                def torch_form(A, B):
                    if adjoint:
                        return TL.solve_triangular(A.mH, B, upper=not upper, unitriangular=unit)
                    return TL.solve_triangular(A, B, upper=upper, unitriangular=unit)
                name = f"triangular_solve.{'u' if upper else 'l'}{'1' if unit else 'd'}{'h' if adjoint else 'n'}_{kind}"
                ops.case(name, numpy_form, torch_form, A=ops.matrix(4, 4, kind=kind), B=ops.normal(4, 3, kind=kind))
    ops.case(f"inverse.plain_{kind}", np.linalg.inv, TL.inv, A=ops.matrix(2, 4, 4, kind=kind))

    def kronecker(A, B, C):
        """A X + X B = C for the rows of X one after another."""
        one_m, one_n = torch.eye(A.shape[0], dtype=A.dtype), torch.eye(B.shape[0], dtype=A.dtype)
        return TL.solve(torch.kron(A, one_n) + torch.kron(one_m, B.T.contiguous()), C.reshape(-1)).reshape(C.shape)
    ops.case(f"sylvester.plain_{kind}", scipy.linalg.solve_sylvester, kronecker, A=ops.matrix(4, 4, kind=kind),
             B=ops.matrix(3, 3, kind=kind), C=ops.normal(4, 3, kind=kind))


def least_squares(ops, kind):
    for variant, shape in (("square", (3, 3)), ("tall", (5, 3)), ("wide", (3, 5))):
        A = ops.matrix(*shape, kind=kind)
        ops.case(f"pinv.{variant}_{kind}", np.linalg.pinv, TL.pinv, A=A)
        ops.case(f"lstsq.{variant}_{kind}", lambda A, B: np.linalg.lstsq(A, B, rcond=None)[0],
                 lambda A, B: TL.lstsq(A, B).solution, A=A, B=ops.normal(shape[0], 2, kind=kind))
    ops.case(f"pinv.product_{kind}", lambda X, Y: np.linalg.pinv(X @ Y, rcond=1e-10),  # 5x4 of rank 2
             lambda X, Y: TL.pinv(X @ Y, rtol=1e-10), X=ops.matrix(5, 2, kind=kind), Y=ops.matrix(2, 4, kind=kind))


# ---------------------------------------------------------------- factorisations

def numpy_qr(A):
    Q, R = np.linalg.qr(A)
    phase = np.diag(R) / np.abs(np.diag(R))
    return flat(Q * phase, phase.conj()[:, None] * R)


def torch_qr(A):
    Q, R = TL.qr(A)
    sign = torch.diag(R).real.sign().detach()  # LAPACK's diagonal is real
    return torch_flat(Q * sign, sign[:, None] * R)


def factorisations(ops, kind):
    for variant, shape in (("square", (4, 4)), ("tall", (5, 3)), ("wide", (3, 5))):
        A = ops.normal(*shape, kind=kind)
        ops.case(f"lu.{variant}_{kind}", lambda A: flat(*scipy.linalg.lu(A)), lambda A: torch_flat(*TL.lu(A)), A=A)
        ops.case(f"qr.{variant}_{kind}", numpy_qr, torch_qr, A=A)
    ops.case(f"cholesky.plain_{kind}", lambda A: np.linalg.cholesky((A + mH(A)) / 2),
             lambda A: TL.cholesky((A + A.mH) / 2), A=ops.matrix(2, 4, 4, kind=kind, shift=6.0))
    A = ops.matrix(2, 4, 4, kind=kind, shift=1.0)
    ops.case(f"det.plain_{kind}", np.linalg.det, TL.det, A=A)
    ops.case(f"slogdet.plain_{kind}", lambda A: flat(*np.linalg.slogdet(A)), lambda A: torch_flat(*TL.slogdet(A)), A=A)
    for variant, size in (("small", 0.05), ("medium", 0.7), ("large", 4.0)):
        ops.case(f"matrix_exp.{variant}_{kind}", each(scipy.linalg.expm), torch.matrix_exp,
                 A=size * ops.normal(2, 4, 4, kind=kind) / 4)


# ---------------------------------------------------------------- orthogonal matrices

def orthogonal(ops, kind):
    n = 4
    D = np.array([1.0, 1, -1, -1])

    def numpy_cayley(A):
        return np.linalg.solve(np.eye(n) + A, np.eye(n) - A) * D

    def torch_cayley(A):
        one = torch.eye(n, dtype=A.dtype)
        return TL.inv(one + A) @ (one - A) @ torch.diag(torch.tensor(D)).to(A.dtype)
    A = ops.normal(n, n, kind=kind)
    ops.case(f"cayley.skew_{kind}", numpy_cayley, torch_cayley, A=A - mH(A))

    def numpy_product(U):
        W = np.eye(U.shape[0])
        for u in U.T:
            W = W @ (np.eye(U.shape[0]) - 2 * np.outer(u, u.conj()) / np.vdot(u, u).real)
        return W

    def torch_product(U):
        W = torch.eye(U.shape[0], dtype=U.dtype)
        for k in reversed(range(U.shape[1])):  # from the right: rows of W
            u = U[:, k:k + 1]
            W = W - 2 * u @ (u.mH @ W) / (u.abs() ** 2).sum()
        return W
    for variant, shape in (("some", (5, 3)), ("all", (4, 4))):
        U = ops.normal(*shape, kind=kind)
        ops.case(f"householder_product.{variant}_{kind}", numpy_product, torch_product, U=U)
        ops.case(f"householder_apply.{variant}_{kind}", lambda x, U: x @ mT(numpy_product(U)),
                 lambda x, U: x @ torch_product(U).T, x=ops.normal(2, shape[0], kind=kind), U=U)

    def torch_polar(A):
        U, _, Vh = TL.svd(A, full_matrices=False)
        return U @ Vh
    for variant, shape in (("square", (4, 4)), ("tall", (5, 3))):
        ops.case(f"polar.{variant}_{kind}", lambda A: scipy.linalg.polar(A)[0], torch_polar,
                 A=ops.matrix(*shape, kind=kind))


def generate(folder):
    ops = Linalg(seed=31)
    for kind in ("real", "complex"):
        for family in (solving, least_squares, factorisations, orthogonal):
            family(ops, kind)
    return [write(folder, "linalg", ops.tensors)]
