"""Each peer computes what Reel's cell computes: outputs and gradients of a small run against build/bin/apply. The peers
in JAX are held to those in PyTorch, in training steps of every task too.

    python3 bench/peers/check.py [--apply build/bin/apply] [--cells lstm,gru]
"""

import argparse
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import environment
environment.need(["torch", "safetensors", "jax"])

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from peers import CELLS
from rows import TASKS, parse_cell

T, B, I, N = 7, 3, 5, 64
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
# PyTorch's gradient of a matrix exponential in floats is off its own in doubles by 5e-5 (Reel's by 6e-7).
OF_GRADIENTS = {torch.float32: 1e-4, torch.float64: 1e-10}
VARIANTS = ["srnn/width=32", "enrnn/normalise=on"]


def save(path, tensors):
    """The format has no complex doubles: Reel takes them as a last axis of 2, with a note."""
    notes = {f"reel.dtype.{name}": "c128" for name, t in tensors.items() if t.dtype == torch.complex128}
    tensors = {name: torch.view_as_real(t) if f"reel.dtype.{name}" in notes else t for name, t in tensors.items()}
    save_file({name: t.detach().contiguous().clone() for name, t in tensors.items()}, path, notes)


def load(path):
    with safe_open(path, "pt") as file:
        notes = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    return {name: torch.view_as_complex(t) if f"reel.dtype.{name}" in notes else t for name, t in tensors.items()}


def difference(a, b):
    """The largest difference, relative to the largest value where that is above 1."""
    return ((a - b).abs().max() / b.abs().max().clamp(min=1)).item()


def run(text, dtype):
    """A cell in PyTorch after a small run and its gradient: the cell, x, dy and y."""
    name, settings = parse_cell(text)
    torch.set_default_dtype(dtype)
    torch.manual_seed(7)
    cell = CELLS[name](I, N, **settings)
    x = torch.randn(T, B, I, requires_grad=True)
    y = cell(x, every_step=True)
    dy = torch.randn_like(y)
    y.backward(dy)
    return cell, x, dy, y


def compare(apply, text, dtype, folder, cell, x, dy, y):
    """The largest differences of outputs and of gradients between Reel and such a run."""
    name, settings = parse_cell(text)
    own = dict(cell.named_parameters())
    fixed = {"perm": cell.perm.int()} if name == "urnn" else {}
    save(folder / "W", cell.reel(own) | fixed)
    save(folder / "X", {"x": x, "dy": dy})
    command = [apply, "--cell", name, "--input-size", I, "--hidden", N, "--weights", folder / "W",
               "--input", folder / "X", "--output", folder / "Y", "--dtype", "f64" if dtype == torch.float64 else "f32"]
    command += [part for key, value in settings.items() for part in (f"--{name}.{key}", value)]
    subprocess.run([str(part) for part in command], check=True)
    reel = load(folder / "Y")
    gradients = cell.reel({key: p.grad for key, p in own.items()}) | {"x": x.grad}
    for key in list(reel):  # a trained first state is the same for all rows: its gradient is the sum of the states'
        if key in ("grad.h_0", "grad.z_0"):
            reel[key] = reel[f"grad.state.{key[5]}"].sum(0)
    return difference(y.detach(), reel["y"]), max(difference(g, reel[f"grad.{key}"]) for key, g in gradients.items())


def module_difference(text, cell, x, dy, y):
    """As compare, between reel.torch.Cell and such a run."""
    from reel_module import ReelModule
    name, settings = parse_cell(text)
    module = ReelModule(name, I, N, **settings)
    module.take(cell)
    own_x = x.detach().requires_grad_()
    own_y = module(own_x, every_step=True)
    own_y.backward(dy)
    wanted = cell.reel({key: p.grad for key, p in cell.named_parameters()})
    own = dict(module.inner.named_parameters())
    differences = [difference(own[key.replace(".", "_")].grad, g) for key, g in wanted.items()]
    return difference(own_y.detach(), y.detach()), max([difference(own_x.grad, x.grad), *differences])


def main():
    root = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description="Holds every peer against Reel's cell.")
    parser.add_argument("--apply", default=str(root / "build/bin/apply"), help="the program of that name")
    parser.add_argument("--cells", default=",".join([*CELLS, *VARIANTS]), help="as lstm,srnn/width=32")
    options = parser.parse_args()
    with_jax = find_spec("jax") is not None
    if with_jax:
        import jax_check
    else:
        print("JAX is not installed: not checked. Hint: scripts/bench-peers --install")
    sys.path.insert(0, str(Path(options.apply).resolve().parents[1] / "python"))
    with_module = find_spec("reel") is not None
    bad = 0
    print(f"{'cell':<20} {'dtype':<8} {'peers':<19} {'outputs':>9} {'gradients':>9} {'training':>9}")

    def report(text, dtype, peers, outputs, gradients, training=None):
        nonlocal bad
        good = outputs <= TOLERANCE[dtype] and gradients <= OF_GRADIENTS[dtype]  # not when one is not a number
        good = good and (training is None or training <= TOLERANCE[dtype])
        bad += not good
        shown = "" if training is None else f"{training:.1e}"
        print(f"{text:<20} {str(dtype)[6:]:<8} {peers:<19} {outputs:>9.1e} {gradients:>9.1e} {shown:>9}"
              f"{'' if good else '   DIFFERS'}", flush=True)

    tasks = list(TASKS)  # cells share their code: with the first cell all of them, with the others one
    with tempfile.TemporaryDirectory() as folder:
        for text in options.cells.split(","):
            for dtype in TOLERANCE:
                results = run(text, dtype)
                report(text, dtype, "PyTorch and Reel", *compare(options.apply, text, dtype, Path(folder), *results))
                if with_module:
                    report(text, dtype, "reel.torch, PyTorch", *module_difference(text, *results))
                if with_jax:
                    training = jax_check.training_differences(text, N, tasks)
                    report(text, dtype, "JAX and PyTorch", *jax_check.cell_difference(text, *results), training)
            tasks = ["copying"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
