#!/usr/bin/env python3
"""Writes arrays/: files that NumPy saves, for the readers of .npy and .npz. Each array is 0, 1, 2, ... or what is said."""
import pathlib

import numpy as np

root = pathlib.Path(__file__).parent / "arrays"
root.mkdir(exist_ok=True)
for kind in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]:
    np.save(root / f"{kind}.npy", np.arange(6, dtype=kind).reshape(2, 3) - (2 if kind[0] != "u" else 0))
np.save(root / "b1.npy", np.array([True, False, True]))
np.save(root / "halves.npy", np.array([65504, 6.1e-5, 5.96e-8, -0.0999755859375, 1 / 3, np.nan], dtype="f2"))
np.save(root / "fortran.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
np.save(root / "big.npy", np.arange(6, dtype=">f4"))
np.save(root / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
np.save(root / "scalar.npy", np.array(3.0))
for version in [(2, 0), (3, 0)]:
    with open(root / f"version{version[0]}.npy", "wb") as file:
        np.lib.format.write_array(file, np.arange(6.0).reshape(2, 3), version=version)

x = np.arange(24.0).reshape(4, 3, 2)
lengths = np.array([3, 1, 2, 3])
np.savez(root / "last.npz", x=x, y=np.array([0, 1, 1, 0]), lengths=lengths)
np.savez_compressed(root / "each.npz", x=x, y=x[:, :, 0] / 2)
np.savez_compressed(root / "several.npz", x=x, y=x[:, :, ::-1])
