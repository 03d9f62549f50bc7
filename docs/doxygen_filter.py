"""A header of Reel as Doxygen wants it: doxygen_filter.py HEADER writes it to stdout.

In Reel's headers the comment at the top describes the file and the first class without a comment of its own, a comment
above functions belongs to all of them up to the next comment or empty line, and one behind a declaration belongs to that.
The elementwise functions that ops/functors/names.h lists are declared by a macro; here each is declared with its formula.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from docstrings import elementwise

CLASS = re.compile(r"(class|struct) \w+[^;]*$")
BEHIND = re.compile(r"([;,}] +)// ")


def elementwise_functions() -> list[str]:
    functors = ROOT / "ops" / "functors"
    docs = elementwise((functors / "names.h").read_text(), (functors / "unary.h").read_text())
    return [line for name in sorted(docs) for line in (f"/// {docs[name]}", f"Tensor {name}(Arg x);")]


def filtered(text: str) -> list[str]:
    # What is a command in a comment of Doxygen is text in ours.
    lines = [re.sub(r"(?<=///).*", lambda m: m[0].replace("\\", "\\\\"), line) for line in text.splitlines()]
    top = []
    while lines and lines[0].startswith("//"):
        top.append("/" + lines.pop(0))
    out = ["/// \\file", *top] if top else []
    told = not top  # a class has it
    comment: list[str] = []  # of the declarations at namespace scope that follow
    in_comment = behind = False  # what the line before is, or has
    ended = True  # the line before ends a declaration
    for line in lines:
        if line == "REEL_UNARY_FUNCTIONS(REEL_DECLARE)":
            out += elementwise_functions()
        elif line.startswith("///"):
            comment = [*comment, line] if in_comment else [line]
            in_comment = ended = True
            out.append(line)
            continue
        elif not line or line.startswith(("//", "#", "}", "namespace")):
            if line != "}":  # the end of a function
                comment = []
            ended, behind = True, False
            out.append(line)
        else:
            if ended and not line.startswith(" "):
                if CLASS.match(line):
                    if line.startswith("class") and not in_comment and not told:
                        out += top
                        told = True
                    comment = []
                elif "(" in line and not in_comment:
                    out += comment
            ended = bool(re.search(r"[;}]$|[;}] +//", line))
            if behind and line.lstrip().startswith("// "):
                out.append(line.replace("// ", "///< ", 1))
            else:
                behind = bool(BEHIND.search(line))
                out.append(BEHIND.sub(r"\1///< ", line))
        in_comment = False
    return out


if __name__ == "__main__":
    print("\n".join(filtered(Path(sys.argv[1]).read_text())))
