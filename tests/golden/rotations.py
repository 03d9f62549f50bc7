"""EUNN's unitary matrix, a product of layers of 2 x 2 rotations (sheet 12): for EURNN and GORU.

A pair (p, q) with angles theta, phi: h'_p = c h_p - s e^{i phi} h_q, h'_q = s h_p + c e^{i phi} h_q (phi = 0: real).
Layers are applied in the order listed; the complex form ends with diag(e^{i omega}).
NumPy rotates a vector pair by pair; PyTorch makes the dense matrix.
"""

import numpy as np
import torch

from recurrent import within

ANGLE = within(-3.14, 3.14)


def pairs(style, n, capacity=0):
    """Per layer (array, row, [(p, q, column)]): where each pair's angle lies. Arrays: one [log2 n, n/2] for the FFT
    style; _A [capacity/2, n/2] and _B [capacity/2, n/2 - 1] for the tunable style."""
    layers = []
    if style == "fft":
        for l in range(n.bit_length() - 1):
            order = [start + k * 2 ** l for start in range(2 ** l) for k in range(n // 2 ** l)]
            distance = n // 2 ** (l + 1)
            firsts = [p for p in range(n) if p % (2 * distance) < distance]
            layers.append(("", l, [(p, p + distance, order[p] % (n // 2)) for p in firsts]))
    else:
        for l in range(capacity):
            offset = l % 2  # A: (0,1), (2,3), ...; B: (1,2), (3,4), ...
            layers.append(("_B" if offset else "_A", l // 2,
                           [(p, p + 1, p // 2) for p in range(offset, n - 1, 2)]))
    return layers


def angle_shapes(style, n, capacity=0, is_complex=False):
    shapes = {}
    for angle in ("theta", "phi")[:2 if is_complex else 1]:
        if style == "fft":
            shapes[angle] = (n.bit_length() - 1, n // 2)
        else:
            shapes |= {angle + "_A": (capacity // 2, n // 2), angle + "_B": (capacity // 2, n // 2 - 1)}
    return shapes | ({"omega": (n,)} if is_complex else {})


def rotate(p, h, style, capacity=0):
    """W h"""
    n, is_complex = len(h), "omega" in p
    for array, row, layer in pairs(style, n, capacity):
        h = h.copy()
        for a, b, column in layer:
            theta = p["theta" + array][row, column]
            turned = h[b] * (np.exp(1j * p["phi" + array][row, column]) if is_complex else 1)
            h[a], h[b] = np.cos(theta) * h[a] - np.sin(theta) * turned, np.sin(theta) * h[a] + np.cos(theta) * turned
    return np.exp(1j * p["omega"]) * h if is_complex else h


def torch_rotation_matrix(p, style, n, capacity=0):
    """W [n, n]"""
    is_complex = "omega" in p
    W = torch.eye(n, dtype=torch.complex128 if is_complex else torch.float64)
    for l in range(n.bit_length() - 1 if style == "fft" else capacity):
        if style == "fft":
            length = n >> l                           # of a group; pairs lie half a group apart
            a = torch.arange(n).view(-1, length)[:, :length // 2].flatten()
            b = a + length // 2
            column = ((a % length) * 2 ** l + a // length) % (n // 2)
            theta, phi = p["theta"][l, column], p["phi"][l, column] if is_complex else None
        else:
            side = "_B" if l % 2 else "_A"
            a = torch.arange(l % 2, n - 1, 2)
            b = a + 1
            theta, phi = p["theta" + side][l // 2], p["phi" + side][l // 2] if is_complex else None
        turn = torch.polar(torch.ones_like(phi), phi) if is_complex else 1
        untouched = torch.ones(n, dtype=W.dtype).index_fill(0, torch.cat([a, b]), 0)
        layer = torch.diag(untouched).index_put(
            (torch.cat([a, a, b, b]), torch.cat([a, b, a, b])),
            torch.cat([theta.cos() + 0 * turn, -theta.sin() * turn, theta.sin() + 0 * turn, theta.cos() * turn]))
        W = layer @ W
    return torch.exp(1j * p["omega"])[:, None] * W if is_complex else W
