#!/usr/bin/env python3
"""Writes the golden files, tests/golden/*.safetensors: reference values that the C++ tests compare with to 1e-10.

Independent of the engine: NumPy from the published equations, PyTorch beside it; a file is written only if both agree.
Usage: make_golden.py [FOLDER]   (default: the folder of this script)
"""

import pathlib
import sys
import time

import torch

import cells
import ops
import optimizers
import philox


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    total = 0
    for module in (cells, optimizers, ops, philox):
        start = time.time()
        for path in module.generate(folder):
            total += path.stat().st_size
            print(f"{path.stat().st_size:8d}  {path.name}")
        print(f"          {module.__name__}: {time.time() - start:.1f} s")
    print(f"{total:8d}  bytes in all")


if __name__ == "__main__":
    main()
