"""henaff.tsv: how often the explicit solution of the copying problem (sheet 3.3) recalls all symbols, by simulation;
and a check of the explicit solution of adding (3.4).

LT-RNN h' = W x + V h, scores U h, built by hand: V rotates d planes by angles 2 pi l / (T+S), so V^(T+S) = I. Written
with complex numbers, one a plane: a real vector of 2d entries is a vector of C^d, a dot product Re sum(conj(a) b).
"""

import numpy as np

ALPHA = 2.0

# K symbols, S to remember, d planes, delay T, draws, the rate that the reference sheet quotes
CASES = [
    (8, 10, 64, 500, 4000, 0.70), (8, 10, 128, 500, 4000, 0.986), (8, 10, 256, 500, 2000, 1.0),
    (32, 20, 500, 500, 400, 1.0), (64, 40, 500, 500, 400, 0.73), (64, 40, 1000, 500, 400, 0.998),
    (8, 10, 128, 50, 4000, 0.983), (8, 10, 128, 200, 4000, 0.983), (8, 10, 128, 1000, 4000, 0.983),
    (8, 10, 128, 2000, 2000, 0.983),
]


def recalled(K, S, d, T, draws, rng):
    """Of `draws` solutions and sequences, how many give back all S symbols after the delimiter."""
    rotation = np.exp(2j * np.pi * rng.integers(1, T + S, (draws, d), endpoint=True) / (T + S))
    u = rng.standard_normal((draws, K, d)) + 1j * rng.standard_normal((draws, K, d))
    u /= np.linalg.norm(u, axis=2, keepdims=True)     # rows uniform on the sphere; blank's and delimiter's are 0
    symbols = rng.integers(0, K, (draws, S))
    each = np.arange(draws)

    h, last = np.zeros((draws, d), complex), 0.0       # planes; the one further coordinate, the same in all draws
    right = np.ones(draws, bool)
    for t in range(T + 2 * S):                         # t = 0 is the first symbol, t = T + S - 1 the delimiter
        h *= rotation
        if t < S:
            h += u[each, symbols[:, t]]
            last += -ALPHA                             # W = U^T, whose last row is -alpha for data
        elif t == T + S - 1:
            last += -2 * S * -ALPHA                    # delimiter's column times -2 S; blank's is 0
        elif t >= T + S:
            data = np.einsum("bkd,bd->bk", u.conj(), h).real - ALPHA * last
            blank, delimiter = -2 * ALPHA * last, -ALPHA * last
            winner = np.argmax(data, axis=1)
            right &= (winner == symbols[:, t - T - S]) & (np.max(data, axis=1) > max(blank, delimiter))
    return np.sum(right)


def check_adding(rng):
    """n = 1: h' = h + relu(x_1 + x_2 - 1) is the sum of the marked values."""
    for _ in range(100):
        values, markers = rng.random(400), np.zeros(400)
        markers[rng.choice(400, 2, replace=False)] = 1
        h = 0.0
        for value, marker in zip(values, markers):
            h = h + max(0.0, value + marker - 1)
        assert abs(h - values @ markers) < 1e-14


def generate(folder):
    rng = np.random.default_rng(2016)
    check_adding(rng)
    lines = ["K\tS\td\tT\trate\tdraws"]
    for K, S, d, T, draws, quoted in CASES:
        chunk = max(1, 2_000_000 // (K * d))           # draws at a time: 32 MB of u
        counts = [recalled(K, S, d, T, min(chunk, draws - k), rng) for k in range(0, draws, chunk)]
        rate = sum(counts) / draws
        noise = 2 * np.sqrt(2 * max(quoted * (1 - quoted), 1e-3) / draws)  # of two such measurements
        assert abs(rate - quoted) < noise + 0.01, f"K={K} S={S} d={d} T={T}: {rate}, not about the quoted {quoted}"
        lines.append(f"{K}\t{S}\t{d}\t{T}\t{rate:.4f}\t{draws}")
    path = folder / "henaff.tsv"
    path.write_text("\n".join(lines) + "\n")
    return [path]
