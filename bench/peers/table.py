"""The markdown table of rows that were measured side by side."""

import os
import platform

OURS = {"module": "Cell", "loss": "function"}  # of reel.torch; ratios of the others are to the first of these
TITLES = OURS | {"torch": "PyTorch", "compiled": "compiled", "jax": "JAX"}
NOTES = {"module": "; Cell: reel.torch.Cell, everything else PyTorch's", "torch": "",
         "loss": "; function: model and loss by reel.torch.function, backward pass and optimiser PyTorch's",
         "compiled": "; compiled: torch.compile of the cell's step",
         "jax": "; JAX: the whole training step under jax.jit, its loop a lax.scan with unroll 1 or 4"}


def reference(system, systems):
    """The one of these systems that the ratio of `system` is to: the first of OURS; None for Reel's own program."""
    return None if system in OURS else next((ours for ours in OURS if ours in systems), None)


def number(milliseconds):
    return f"{milliseconds:.1f}" if milliseconds >= 10 else f"{milliseconds:.2f}"


def markdown(lines, file, options, failures, versions):
    """`file`: one of bench_cells, which says what Reel was built with; `versions`: those of the peers."""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.processor())
    header = ["cell", "T x B x n", "Reel ms"]
    for system in options.systems:
        base = reference(system, options.systems)
        header += [f"{TITLES[system]} ms", f"{TITLES[system]} / {TITLES[base] if base else 'Reel'}"]
    header.append("share of the bound")
    if options.device == "cpu":
        how = f"each with the best of {options.threads.replace(',', ' or ')} threads (in brackets)"
    else:
        how = f"products in {options.precision}, Reel's step as one graph or kernel by kernel (in brackets)"
    text = "| " + " | ".join(header) + " |\n|" + "---|" * len(header) + "\n"
    text += "".join("| " + " | ".join(line) + " |\n" for line in lines)
    text += f"""
Milliseconds of a training step, medians of up to {options.rounds} rounds in turn, {how}; ratios within a round, median
and range. Machine: {cpu}, {os.cpu_count()} cores. Reel: {file["compiler"]}, {file["openblas"].strip()}.
{versions}{"".join(NOTES[s] for s in options.systems)}.
"""
    for what, reason in failures.items():
        text += f"\n{what} failed: {reason}\n"
    return text
