"""Golden random numbers: Philox4x32-10 (Salmon et al.: Parallel random numbers, as easy as 1, 2, 3; 2011)."""

import math

import numpy as np

from common import put, write

SEED, STREAM = 7, 3
MASK = 0xFFFFFFFF

# Random123's known answers: counter, key, result.
KNOWN_ANSWERS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([MASK] * 4, [MASK] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
     [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
]


def philox4x32(counter, key, rounds=10):
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(rounds):
        low, high = c0 * 0xD2511F53, c2 * 0xCD9E8D57  # 64-bit products
        c0, c1, c2, c3 = (high >> 32) ^ c1 ^ k0, high & MASK, (low >> 32) ^ c3 ^ k1, low & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK  # golden ratio, sqrt(3) - 1
    return [c0, c1, c2, c3]


def words(counter):
    """The four words of one counter: counter and stream fill the block, the seed is the key; low halves first."""
    return philox4x32([counter & MASK, counter >> 32, STREAM & MASK, STREAM >> 32], [SEED & MASK, SEED >> 32])


def unit(a, b):
    """[0, 1) with 53 random bits."""
    return ((a << 32 | b) >> 11) * 2.0 ** -53


def uniform(i):
    w = words(i // 2)
    return unit(w[0], w[1]) if i % 2 == 0 else unit(w[2], w[3])


def normal(i):
    """Box-Muller: the two uniforms of one counter give two normals, cosine first."""
    w = words(i // 2)
    radius = math.sqrt(-2 * math.log(1 - unit(w[0], w[1])))
    angle = 2 * math.pi * unit(w[2], w[3])
    return radius * (math.cos(angle) if i % 2 == 0 else math.sin(angle))


def generate(folder):
    for counter, key, result in KNOWN_ANSWERS:
        assert philox4x32(counter, key) == result, f"Philox: wrong answer for counter {counter}"
    tensors = {}
    put(tensors, "w", np.array([w for counter in range(4) for w in words(counter)], dtype=np.float64))
    put(tensors, "uniform", np.array([uniform(i) for i in range(11)]))
    put(tensors, "normal", np.array([normal(i) for i in range(11)]))
    return [write(folder, "philox", tensors)]
