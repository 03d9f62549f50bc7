"""Golden values of what surrounds the speech task, in NumPy from the published descriptions; resampling is SciPy's.

x: a made-up voice, y: the same with noise, 8 kHz; resampled.UP_DOWN: x at another rate; snr, stoi: of y beside x;
stoi_band: of x without its high half; features: the spectra that the task predicts, in dB, [frames, 129] (Wisdom et al.).
"""

import numpy as np
from scipy.signal import resample_poly, stft

from common import write


def voice(n, rng):
    """Harmonics that rise and fall, with pauses."""
    t = np.arange(n) / 8000
    pitch = 2 * np.pi * np.cumsum(120 + 30 * np.sin(2 * np.pi * 1.7 * t)) / 8000
    loud = np.clip(np.sin(2 * np.pi * 2.3 * t), 0, None) ** 0.5
    x = sum(np.sin(k * pitch) * (1 + np.sin(2 * np.pi * (0.7 * k) * t)) / k for k in range(1, 20))
    return 0.1 * loud * x + 1e-4 * rng.standard_normal(n)


def segmental_snr(r, x, piece=80):
    values = []
    for k in range(len(r) // piece):
        a, b = r[k * piece:(k + 1) * piece], x[k * piece:(k + 1) * piece]
        if np.any(a != 0):
            values.append(np.clip(10 * np.log10(np.sum(a**2) / np.sum((a - b) ** 2)), -10, 35))
    return np.mean(values)


def frames_of(x):
    window = np.hanning(258)[1:-1]
    return np.array([x[i:i + 256] * window for i in range(0, len(x) - 256, 128)])


def bands_matrix():
    f = np.arange(257) * 10000 / 512
    matrix = np.zeros((15, 257))
    for k in range(15):
        low, high = 150 * 2.0 ** ((2 * k - 1) / 6), 150 * 2.0 ** ((2 * k + 1) / 6)
        matrix[k, np.argmin((f - low) ** 2):np.argmin((f - high) ** 2)] = 1
    return matrix


def stoi(x, y, rate=8000):
    g = np.gcd(rate, 10000)
    x, y = (resample_poly(v, 10000 // g, rate // g) for v in (x, y))
    fx, fy = frames_of(x), frames_of(y)
    energy = 20 * np.log10(np.linalg.norm(fx, axis=1) + 1e-300)
    keep = energy - energy.max() + 40 > 0

    def join(frames):
        out = np.zeros((len(frames) - 1) * 128 + 256)
        for i, f in enumerate(frames):
            out[i * 128:i * 128 + 256] += f
        return out

    X, Y = (np.sqrt(bands_matrix() @ (np.abs(np.fft.rfft(frames_of(join(f[keep])), 512)) ** 2).T) for f in (fx, fy))
    scores = []
    for m in range(30, X.shape[1] + 1):
        a, b = X[:, m - 30:m], Y[:, m - 30:m]
        b = b * np.linalg.norm(a, axis=1, keepdims=True) / np.linalg.norm(b, axis=1, keepdims=True)
        b = np.minimum(b, a * (1 + 10 ** (15 / 20)))
        scores += [np.corrcoef(p, q)[0, 1] for p, q in zip(a, b)]
    return np.mean(scores)


def features(x):
    padded = np.concatenate([np.zeros(256), x, np.zeros(-len(x) % 128 + 256)])
    window = np.sin(np.pi * np.arange(256) / 256) ** 2
    spectra = np.array([np.fft.rfft(padded[i:i + 256] * window) for i in range(0, len(padded) - 255, 128)])
    _, _, other = stft(padded, window=window, nperseg=256, noverlap=128, boundary=None, padded=False)
    assert np.allclose(other.T * window.sum(), spectra)
    return 10 * np.log10(1e-5 + np.abs(spectra) ** 2)


def generate(folder):
    rng = np.random.default_rng(7)
    x = voice(9001, rng)
    y = x + 0.02 * rng.standard_normal(len(x))
    band = resample_poly(resample_poly(x, 1, 4), 4, 1)[:len(x)]
    data = {"x": x, "y": y, "band": band, "features": features(x), "snr": segmental_snr(x, y), "stoi": stoi(x, y),
            "stoi_band": stoi(x, band), "snr_band": segmental_snr(x, band)}
    for up, down in [(1, 2), (5, 4), (80, 441), (3, 7)]:
        data[f"resampled.{up}_{down}"] = resample_poly(x[:1500], up, down)
    yield write(folder, "speech", {k: np.asarray(v, dtype=np.float64) for k, v in data.items()})
