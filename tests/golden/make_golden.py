#!/usr/bin/env python3
"""Writes the golden files, tests/support/golden/*.safetensors: reference values that the C++ tests compare with to 1e-10.

Independent of the engine: NumPy from the published equations, PyTorch beside it; a file is written only if both agree.
Usage: make_golden.py [FOLDER [MODULE ...]]   (default: the folder of this script, all modules)
"""

import pathlib
import sys
import time

import torch

import activations
import cells
import cells_enrnn
import cells_gated
import cells_goru
import cells_memory
import cells_orthogonal
import cells_simple
import cells_unitary
import counts
import fourier
import henaff
import linalg
import losses
import ops
import optimizers
import philox
import r_transformer
import shapes
import spectral
import speech
from recurrent import write_index

FAMILIES = [cells, cells_simple, cells_gated, cells_memory, cells_unitary, cells_orthogonal, cells_enrnn, cells_goru,
            r_transformer]
MODULES = [*FAMILIES, activations, counts, fourier, henaff, linalg, losses, optimizers, ops, philox, shapes, spectral, speech]


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    write_index(folder, [cell for family in FAMILIES for cell in family.CELLS])
    total = 0
    for module in MODULES:
        if sys.argv[2:] and module.__name__ not in sys.argv[2:]:
            continue
        start = time.time()
        for path in module.generate(folder):
            total += path.stat().st_size
            print(f"{path.stat().st_size:8d}  {path.name}")
        print(f"          {module.__name__}: {time.time() - start:.1f} s")
    print(f"{total:8d}  bytes in all")


if __name__ == "__main__":
    main()
