"""Reel's cells in PyTorch, and the time of a training step of each.

    python3 bench/peers/peers.py --cells lstm,srnn/width=32 --shapes 220x20x128 [--compile] [--json FILE]
"""

import argparse
import functools
import json
from statistics import median

import torch

from common import Row, Stopwatch, Training, best, parse_cell
from gated import Janet
from memory import Nru, Sru
from orthogonal import Enrnn, Exprnn, Ornn, Scornn
from rotations import Eurnn, Goru
from srnn import Srnn
from torch_rnn import Gru, Lstm, Rnn
from unitary import Urnn

CELLS = {"lstm": Lstm, "gru": Gru, "rnn": Rnn, "srnn": Srnn, "nru": Nru, "goru": Goru, "eurnn": Eurnn, "urnn": Urnn,
         "enrnn": Enrnn, "scornn": Scornn, "exprnn": Exprnn, "ornn": Ornn, "sru": Sru, "janet": Janet}
OWN_LOOP = ("lstm", "gru", "rnn")  # PyTorch's own modules: there is no step of ours to compile


def make_training(text, row, compiled=False):
    """The training of a cell like "srnn/width=32"."""
    name, settings = parse_cell(text)
    width = int(settings.get("width", 8)) if name == "srnn" else None  # of the embedding, as the SRNN paper has it
    return Training(functools.partial(CELLS[name], **settings), row, width, compiled)


def main():
    parser = argparse.ArgumentParser(description="Milliseconds of a training step of Reel's cells in PyTorch.")
    parser.add_argument("--cells", default=",".join(CELLS), help="as lstm,srnn/width=32")
    parser.add_argument("--shapes", default="220x20x128", help="steps x batch x units, as bench_cells takes them")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--budget", type=float, default=2, help="seconds a row, but at least three steps")
    parser.add_argument("--compile", action="store_true", help="torch.compile the step of a cell")
    parser.add_argument("--json", help="writes the rows to this file as well")
    options = parser.parse_args()
    threads = [int(count) for count in options.threads.split(",")]
    rows = []
    print(f"PyTorch {torch.__version__}{', steps compiled' if options.compile else ''}")
    print(f"{'cell':<22} {'shape':<13} {'threads':>7} {'ms':>9}")
    for shape in options.shapes.split(","):
        for cell in options.cells.split(","):
            compiled = options.compile and parse_cell(cell)[0] not in OWN_LOOP
            stopwatch = Stopwatch(make_training(cell, Row.parse(shape), compiled), threads)
            stopwatch.run(options.budget)
            count, rounds = best(stopwatch.rounds)
            print(f"{cell:<22} {shape:<13} {count:>7} {median(rounds):>9.2f}", flush=True)
            rows.append({"system": "torch.compile" if compiled else "torch", "version": torch.__version__, "cell": cell,
                         "shape": shape, "threads": count, "ms": median(rounds)})
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=2)


if __name__ == "__main__":
    main()
