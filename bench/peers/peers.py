"""Reel's cells in PyTorch, and the time of a training step of each.

    python3 bench/peers/peers.py --cells lstm,srnn/width=32 --shapes 220x20x128 [--compile] [--json FILE]
    python3 bench/peers/peers.py --device cuda --precision tf32
"""

import argparse
import functools
import json
import platform
import subprocess
from statistics import median

import torch

from common import Stopwatch, Training, set_precision
from gated import Janet
from memory import Nru, Sru
from orthogonal import Enrnn, Exprnn, Ornn, Scornn
from rotations import Eurnn, Goru
from rows import Row, add_place, best, parse_cell
from srnn import Srnn
from torch_rnn import Gru, Lstm, Rnn
from unitary import Urnn

CELLS = {"lstm": Lstm, "gru": Gru, "rnn": Rnn, "srnn": Srnn, "nru": Nru, "goru": Goru, "eurnn": Eurnn, "urnn": Urnn,
         "enrnn": Enrnn, "scornn": Scornn, "exprnn": Exprnn, "ornn": Ornn, "sru": Sru, "janet": Janet}
OWN_LOOP = ("lstm", "gru", "rnn")  # PyTorch's own modules: there is no step of ours to compile


def make_training(text, row, system="torch", device="cpu", precision="f32"):
    """The training of a cell like "srnn/width=32" in PyTorch: its peer there, the peer with its step compiled ("compiled"),
    Reel's cell as a module ("module"), or with the model and its loss as one function of Reel ("loss")."""
    name, settings = parse_cell(text)
    width = int(settings.get("width", 8)) if name == "srnn" else None  # of the embedding, as the SRNN paper has it
    make, training = CELLS[name], Training
    if system in ("module", "loss"):
        from reel_module import ReelLoss, ReelModule  # not before: Reel's package may not be there
        make, training = functools.partial(ReelModule, name), ReelLoss if system == "loss" else Training
    return training(functools.partial(make, **settings), row, width, system == "compiled", device, precision)


def check_place(parser, options):
    """Ends the program where there is no such device, and sets the precision."""
    if options.device != "cpu" and not torch.cuda.is_available():
        parser.error(f"--device {options.device}: PyTorch finds no GPU")
    if options.device == "cpu" and options.precision != "f32":
        parser.error(f"--precision {options.precision} is for a GPU. Hint: --device cuda")
    set_precision(options.precision)


def place_name(device):
    """The device, and PyTorch with what it computes by."""
    software = f"PyTorch {torch.__version__}, Python {platform.python_version()}"
    if device == "cpu":
        return software
    try:
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        driver = "unknown"
    return (f"{torch.cuda.get_device_name(device)}, driver {driver}, CUDA {torch.version.cuda}, "
            f"cuDNN {torch.backends.cudnn.version()}, {software}")


def main():
    parser = argparse.ArgumentParser(description="Milliseconds of a training step of Reel's cells in PyTorch.")
    parser.add_argument("--cells", default=",".join(CELLS), help="as lstm,srnn/width=32")
    parser.add_argument("--shapes", default="220x20x128", help="steps x batch x units, as bench_cells takes them")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--budget", type=float, default=2, help="seconds a row, but at least three steps")
    parser.add_argument("--compile", action="store_true", help="torch.compile the step of a cell")
    parser.add_argument("--json", help="writes the rows to this file as well")
    add_place(parser)
    options = parser.parse_args()
    check_place(parser, options)
    threads = [int(count) for count in options.threads.split(",")] if options.device == "cpu" else [1]
    rows = []
    print(f"{place_name(options.device)}, {options.precision}{', steps compiled' if options.compile else ''}")
    print(f"{'cell':<22} {'shape':<13} {'threads':>7} {'ms':>9}")
    for shape in options.shapes.split(","):
        for cell in options.cells.split(","):
            compiled = options.compile and parse_cell(cell)[0] not in OWN_LOOP
            system = "compiled" if compiled else "torch"
            training = make_training(cell, Row.parse(shape), system, options.device, options.precision)
            stopwatch = Stopwatch(training, threads)
            stopwatch.run(options.budget)
            count, rounds = best(stopwatch.rounds)
            print(f"{cell:<22} {shape:<13} {count:>7} {median(rounds):>9.2f}", flush=True)
            rows.append({"system": "torch.compile" if compiled else "torch", "version": torch.__version__, "cell": cell,
                         "device": options.device, "precision": options.precision, "shape": shape, "threads": count,
                         "ms": median(rounds)})
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=2)


if __name__ == "__main__":
    main()
