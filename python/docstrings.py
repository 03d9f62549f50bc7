"""Writes the comments of Reel's headers as docstrings: docstrings.py OUTPUT ROOT HEADERS...

A comment belongs to the functions that are declared below it, up to the next comment. The elementwise functions that
ops/functors/names.h lists have theirs at the end of their line in unary.h, or their formula.
"""

import re
import sys
from pathlib import Path

PLAIN = {  # what the headers leave to the name
    "minimum": "The smaller of both; where they are equal, each gets half of the gradient.",
    "min": "The smallest element; ties share the gradient equally. Throws Error when there are no elements.",
    "sigmoid_backward": "a b (1 - b): the gradient of sigmoid in one pass, for gradient a and result b.",
    "zeros_like": "Zeros of x's dtype and shape.",
    "ones_like": "Ones of x's dtype and shape.",
    "argmin": "The first index of the smallest element along an axis, i32, without the axis.",
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
