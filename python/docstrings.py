"""Writes the comments of Reel's headers as docstrings: docstrings.py OUTPUT ROOT HEADERS...

A comment belongs to the functions that are declared below it, up to the next comment or blank line. The elementwise functions that
ops/functors/names.h lists have theirs at the end of their line in unary.h, or their formula.
"""

import re
import sys
from pathlib import Path

PLAIN = {  # what the headers leave to the name or to the function above, or say of C++'s arguments
    "all": "Whether all elements along the axes are true, for bool tensors; true over no elements.",
    "any": "Whether an element along the axes is true, for bool tensors; false over no elements.",
    "complex": "a + i b, complex.",
    "dot": "The inner product, sum a b, of two vectors.",
    "dropout": "Sets each element to 0 with probability p and divides the others by 1 - p; 0 <= p < 1. Recorded, with a "
    "gradient for x. Inside a time loop the same elements drop out at all time steps.",
    "equal": "a == b for each element: bool.",
    "full": "A tensor of one value.",
    "full_like": "A tensor of one value, of x's dtype and shape.",
    "householder_apply": "Rows x times the transpose of householder_product(U), without forming it: x [..., n], "
    "U [n, m] -> [..., n].",
    "householder_product": "H(a_1) H(a_2) ... H(a_m) for the columns of A, H(a) = I - 2 a a^H / |a|^2: [..., n, m] -> "
    "[..., n, n]. Throws Error when a column is 0. Computed as one block: Joffrain et al., \"Accumulating Householder "
    "transformations, revisited\" (2006).",
    "ifft": "The inverse of fft: y[j] = 1 / n sum over k of x[k] e^(2 pi i j k / n).",
    "irfft": "The inverse of rfft, with n real elements; the default n is 2 (m - 1) for an axis of m elements. Ignores "
    "the imaginary parts of x[0] and, if n is even, x[n / 2].",
    "logical_and": "a and b for each element, for bool tensors.",
    "logical_or": "a or b for each element, for bool tensors.",
    "logical_xor": "Either a or b for each element, for bool tensors.",
    "mean": "The mean over the axes; of all elements by default. Throws Error when there are no elements.",
    "modrelu": "z / |z| max(|z| + b, 0), 0 at 0, z real or complex, b real. With the small constants in which "
    "implementations differ: z / (r + divide) max(r + shift + b, 0), r = sqrt(|z|^2 + inside). Where it is not "
    "differentiable at z = 0, the gradient is 0.",
    "movedim": "Moves axis source to index destination; the others keep their order.",
    "not_equal": "a != b for each element: bool.",
    "polar": "a e^(i b), complex.",
    "skew": "The strict upper triangle of A minus its adjoint: [..., n, n], skew-Hermitian.",
    "tanh_backward": "a (1 - b^2): the gradient of tanh in one pass, for gradient a and result b.",
    "triangular_solve": "X with A X = B for a triangle of A, by default the lower one; the other elements are not read "
    "and have gradient 0. unit_diagonal: the diagonal counts as ones; adjoint: A^H X = B. Throws Error when a diagonal "
    "element is 0, or at most tolerance times the largest one.",
    "vdot": "The inner product, sum conj(a) b, of two vectors.",
    "minimum": "The smaller of both; where they are equal, each gets half of the gradient.",
    "min": "The smallest element; ties share the gradient equally. Throws Error when there are no elements.",
    "sigmoid_backward": "a b (1 - b): the gradient of sigmoid in one pass, for gradient a and result b.",
    "zeros_like": "Zeros of x's dtype and shape.",
    "ones_like": "Ones of x's dtype and shape.",
    "argmin": "The first index of the smallest element along an axis, i32, without the axis.",
    "argcummin": "Where cummin finds its elements: i32 indices along the axis, of equal elements that of the last.",
    "cummin": "The smallest element so far along an axis, NaN from the first NaN on. Of equal elements the last has the "
    "gradient, as in PyTorch.",
}
FORMULAS = {  # what the formula in unary.h does not say plainly
    "relu": "x for x > 0, else 0; NaN stays NaN.",
    "gelu": "x times the normal distribution's cumulative probability of x.",
    "logical_not": "not x, for bool tensors.",
    "is_nan": "Which elements are NaN: bool.",
    "is_inf": "Which elements are infinite: bool.",
    "is_finite": "Which elements are neither NaN nor infinite: bool.",
    "sigmoid": "1 / (1 + e^-x).",
    "silu": "x sigmoid(x).",
    "softsign": "x / (1 + |x|).",
    "neg": "-x.",
    "abs": "|x|, real for complex x; its derivative at 0 is 0.",
    "square": "x^2.",
    "reciprocal": "1 / x.",
    "rsqrt": "1 / sqrt(x).",
    "floor": "The largest integer that is not larger than x.",
    "ceil": "The smallest integer that is not smaller than x.",
    "trunc": "x without its fraction.",
}
DECLARATION = re.compile(r"^(?:Tensor|Tensors|\w+Result|Lu|Qr|SignAndLog) (\w+)\(")


def declared(text: str) -> dict[str, str]:
    docs, comment, fresh = {}, [], True
    for line in text.splitlines():
        if line.startswith("///"):
            if not fresh:
                comment, fresh = [], True
            comment.append(line[3:].strip())
        elif match := DECLARATION.match(line):
            fresh = False
            if comment:
                docs.setdefault(match[1], " ".join(comment))
        elif line.startswith("//") or not line.strip():
            comment, fresh = [], True
        else:  # of an operator or a struct, which have no docstring
            fresh = False
    return docs


def elementwise(names: str, text: str) -> dict[str, str]:
    docs = {}
    for functor, name in re.findall(r"X\((\w+), (\w+)\)", names):
        line = re.search(rf'^UNARY\({functor}, "{name}".*$', text, re.M)
        comment = re.search(r"// (.*)$", line[0]) if line else None
        said = comment[1] if comment else f"{name}(x)"
        docs[name] = FORMULAS.get(name, said + ("" if said.endswith(".") else "."))
    return docs


def main(output: str, root: str, *headers: str) -> None:
    docs: dict[str, str] = {}
    for header in headers:
        file = Path(root) / header
        if file.name == "unary.h":
            docs |= elementwise(file.with_name("names.h").read_text(), file.read_text())
        else:
            docs |= declared(file.read_text())
    docs |= PLAIN
    lines = []
    for name in sorted(docs):
        quoted = docs[name].replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'    {{"{name}", "{quoted}"}},\n')
    Path(output).write_text("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
