"""Linear algebra of the standard, as far as Reel has the ops."""

from __future__ import annotations

import builtins
import math
from typing import Any, NamedTuple, Sequence

from .. import _reel
from .._reel import DType, Tensor
from ._dtypes import dtype_of, finfo, int32, isdtype, result_type
from ._layout import _axes, broadcast_arrays, matrix_transpose
from ._reduce import _as, _over, sum

__all__ = (
    "cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power matrix_rank "
    "matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"
).split()


class EigResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def _two(x1: Tensor, x2: Tensor, name: str) -> tuple[Tensor, Tensor]:
    dtype = result_type(dtype_of(x1, name), dtype_of(x2, name))
    if not isdtype(dtype, "numeric"):
        raise TypeError(f"{name}: numbers are expected, got {dtype.name}")
    return x1.cast(dtype), x2.cast(dtype)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product. That of integers is a sum of elementwise products, which takes memory for all of them."""
    a, b = _two(x1, x2, "matmul")
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"matmul: vectors or matrices are expected, got shapes {a.shape} and {b.shape}")
    if a.dtype != int32:
        return _reel.matmul(a, b)
    left = _reel.unsqueeze(a, 0) if a.ndim == 1 else a
    right = _reel.unsqueeze(b, 1) if b.ndim == 1 else b
    m, n = left.shape[-1], right.shape[-2]
    if m != n:
        raise ValueError(f"matmul: inner dimensions differ: {m} and {n}; got shapes {a.shape} and {b.shape}")
    product = sum(_reel.unsqueeze(left, -1) * _reel.unsqueeze(right, -3), axis=-2)
    gone = ([-2] if a.ndim == 1 else []) + ([-1] if b.ndim == 1 else [])
    return _reel.squeeze(product, gone) if gone else product


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of conj(x1) x2 along an axis; the others broadcast."""
    a, b = _two(x1, x2, "vecdot")
    if axis >= 0:
        raise ValueError(f"vecdot: the axis is negative, got {axis}")
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vecdot: the axes have different extents: {a.shape} and {b.shape}")
    return sum((_reel.conj(a) if isdtype(a.dtype, "complex floating") else a) * b, axis=axis)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums of products over some axes of x1 and as many of x2."""
    x1, x2 = _two(x1, x2, "tensordot")
    if isinstance(axes, int):
        axes = (range(x1.ndim - axes, x1.ndim), range(axes))
    over1, over2 = _axes(axes[0], x1.ndim), _axes(axes[1], x2.ndim)
    if [x1.shape[a] for a in over1] != [x2.shape[a] for a in over2]:
        raise ValueError(
            f"tensordot: axes {over1} of shape {x1.shape} and axes {over2} of shape {x2.shape} "
            "must agree in number and extents"
        )
    rest1 = [a for a in range(x1.ndim) if a not in over1]
    rest2 = [a for a in range(x2.ndim) if a not in over2]
    n = math.prod(x1.shape[a] for a in over1)
    shape1, shape2 = [x1.shape[a] for a in rest1], [x2.shape[a] for a in rest2]
    left = (_reel.permute(x1, rest1 + over1) if x1.ndim else x1).reshape((math.prod(shape1), n))
    right = (_reel.permute(x2, over2 + rest2) if x2.ndim else x2).reshape((n, math.prod(shape2)))
    return matmul(left, right).reshape(shape1 + shape2)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all pairs of elements of two vectors."""
    a, b = _two(x1, x2, "outer")
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"outer: vectors are expected, got shapes {a.shape} and {b.shape}")
    return _reel.unsqueeze(a, 1) * b


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector product along an axis of extent 3."""
    a, b = _two(x1, x2, "cross")
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(f"cross: the axis has extent 3; got shapes {a.shape} and {b.shape}")
    a, b = broadcast_arrays(a, b)
    (p, q, r), (u, v, w) = _reel.unstack(a, axis), _reel.unstack(b, axis)
    return _reel.movedim(_reel.stack([q * w - r * v, r * u - p * w, p * v - q * u]), 0, axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The elements of a diagonal of each matrix."""
    if x.ndim < 2:
        raise ValueError(f"diagonal: two axes or more are expected, got shape {x.shape}")
    rows, columns = x.shape[-2:]
    first = max(0, -offset)
    n = max(0, min(rows - first, columns - max(0, offset)))
    flat = x.reshape((*x.shape[:-2], rows * columns))
    index = (_reel.arange(n) + first) * (columns + 1) + offset
    return _reel.index_select(flat, -1, index)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sum of a diagonal of each matrix."""
    return sum(_as(diagonal(x, offset=offset), "trace", dtype), axis=-1)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product of n equal matrices; of their inverses for negative n."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power: square matrices are expected, got shape {x.shape}")
    if n < 0:
        x, n = _reel.inverse(x), -n
    out = _reel.expand(_reel.eye(x.shape[-1], x.dtype), x.shape)
    while n:
        out, x, n = matmul(out, x) if n % 2 else out, matmul(x, x) if n > 1 else x, n // 2
    return out


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False, ord: float = 2) -> Tensor:
    """A norm of the elements along axes, or of all. Derivatives are 0 where a norm with ord >= 1 is 0."""
    if ord >= 1 and x.dtype != int32:
        return _over(lambda x, axes, keep: _reel.norm(x, ord, axes, keep), x, axis, keepdims)
    if x.dtype == int32 and ord not in (0, math.inf, -math.inf):
        raise TypeError(f"vector_norm: floating elements are expected for ord {ord}, got i32. Hint: astype(x, float32)")
    size = _reel.abs(x)
    if ord in (math.inf, -math.inf):
        return _over(_reel.max if ord > 0 else _reel.min, size, axis, keepdims)
    if ord == 0:
        return sum((size != 0).cast(size.dtype), axis=axis, keepdims=keepdims)
    return sum(size**ord, axis=axis, keepdims=keepdims) ** (1 / ord)


def matrix_norm(x: Tensor, /, *, keepdims: builtins.bool = False, ord: Any = "fro") -> Tensor:
    """A norm of each matrix."""
    if ord not in ("fro", "nuc", 1, 2, math.inf, -1, -2, -math.inf):
        raise ValueError(f"matrix_norm: ord is 'fro', 'nuc', 1, 2, inf, -1, -2 or -inf, got {ord!r}")
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        sizes = svdvals(x)
    else:  # 1, inf, and their negatives
        sizes = _reel.sum(_reel.abs(x), -2 if abs(ord) == 1 else -1)
    if ord == "nuc" or ord > 0 and sizes.shape[-1] == 0:
        out = _reel.sum(sizes, -1)  # of none it is 0, as nothing is larger
    else:
        out = _reel.max(sizes, -1) if ord > 0 else _reel.min(sizes, -1)
    return out.reshape((*out.shape, 1, 1)) if keepdims else out


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are larger than rtol times the largest one."""
    s = svdvals(x)
    if s.shape[-1] == 0:
        return _reel.sum(s, -1).cast(int32)
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(x).eps
    return _reel.sum((s > _reel.unsqueeze(_reel.max(s, -1) * rtol, -1)).cast(int32), -1)


def cholesky(x: Tensor, /, *, upper: builtins.bool = False) -> Tensor:
    """L with x = L L^H, or its conjugate transpose."""
    L = _reel.cholesky(x)
    return _adjoint(L) if upper else L


def det(x: Tensor, /) -> Tensor:
    """The determinant of each matrix."""
    return _reel.det(x)


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Sign and logarithm of the size of each determinant."""
    return SlogdetResult(*_reel.slogdet(x))


def inv(x: Tensor, /) -> Tensor:
    """The inverse of each matrix."""
    return _reel.inverse(x)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The Moore-Penrose inverse of each matrix; singular values up to rtol times the largest one count as 0."""
    if not isinstance(rtol, Tensor):
        return _reel.pinv(x, -1.0 if rtol is None else rtol)
    U, S, Vh = _reel.svd(x)  # a limit for each matrix
    keep = S > _reel.unsqueeze(_reel.max(S, -1) * rtol, -1)
    inverse = _reel.where(keep, 1 / _reel.where(keep, S, 1.0), 0.0)
    return _adjoint(Vh) @ (_reel.unsqueeze(inverse, -1) * _adjoint(U))


def _adjoint(x: Tensor) -> Tensor:
    return matrix_transpose(_reel.conj(x) if isdtype(x.dtype, "complex floating") else x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of x1 X = x2; a vector x2 is one column."""
    a, b = _two(x1, x2, "solve")
    if b.ndim == 1:
        return _reel.squeeze(_reel.solve(a, _reel.unsqueeze(b, 1)), -1)
    return _reel.solve(a, b)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """x = Q R of each matrix; only the reduced form."""
    if mode != "reduced":
        raise NotImplementedError(f'qr: Reel has mode "reduced" only, got {mode!r}')
    return QRResult(*_reel.qr(x))


def svd(x: Tensor, /, *, full_matrices: builtins.bool = True) -> SVDResult:
    """x = U diag(S) Vh of each matrix; only the reduced form, which is the full one for square matrices."""
    if full_matrices and x.shape[-1] != x.shape[-2]:
        raise NotImplementedError("svd: Reel has the reduced form only. Hint: full_matrices=False")
    return SVDResult(*_reel.svd(x))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of each matrix, the largest first."""
    return _reel.svd(x).S


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues and eigenvectors of each matrix, complex."""
    return EigResult(*_reel.eig(x))


def eigvals(x: Tensor, /) -> Tensor:
    """The eigenvalues of each matrix, complex."""
    return _reel.eigvals(x)


def eigh(x: Tensor, /) -> EigResult:
    """Eigenvalues and eigenvectors of each symmetric or Hermitian matrix."""
    return EigResult(*_reel.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of each symmetric or Hermitian matrix."""
    return _reel.eigh(x).values
