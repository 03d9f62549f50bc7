"""Golden Fourier transforms: NumPy against PyTorch, as in ops.py. Each case has its options as integers beside it.

Norms are numbered backward 0, ortho 1, forward 2. Frames of stft and istft lie in rows, [..., frames, coefficients].
"""

import numpy as np
import scipy.signal
import torch

from common import assert_same, put, write
from ops import Ops

NORMS = ["backward", "ortho", "forward"]
LENGTHS = [1, 2, 3, 8, 13]


def transform(ops, name, k, shape, n=None, axis=-1, norm=0, kind="complex"):
    """Case name.k along one axis; n = 0 stands for none given."""
    key = f"{name}.{k}"
    ops.integers(f"{key}.options", [n or 0, axis, norm])
    ops.case(key, lambda x: getattr(np.fft, name)(x, n=n, axis=axis, norm=NORMS[norm]),
             lambda x: getattr(torch.fft, name)(x, n=n, dim=axis, norm=NORMS[norm]), x=ops.normal(*shape, kind=kind))


def transforms(ops):
    for name, kind in (("fft", "complex"), ("ifft", "complex"), ("rfft", "real"), ("irfft", "complex")):
        for length in LENGTHS:
            bins = length // 2 + 1 if name == "irfft" else length
            transform(ops, name, f"length_{length}", (2, bins), n=length, kind=kind)
        for norm in range(3):
            transform(ops, name, f"norm_{norm}", (3, 5), norm=norm, kind=kind)
        transform(ops, name, "axis", (2, 5, 3), axis=1, norm=1, kind=kind)
        transform(ops, name, "cut", (2, 7), n=4, kind=kind)
        transform(ops, name, "padded", (7, 2), n=10, axis=0, norm=2, kind=kind)
    transform(ops, "fft", "real", (2, 6), kind="real")
    for name in ("fft2", "ifft2"):
        for norm in range(3):
            ops.integers(f"{name}.{norm}.options", [norm])
            ops.case(f"{name}.{norm}", lambda x: getattr(np.fft, name)(x, norm=NORMS[norm]),
                     lambda x: getattr(torch.fft, name)(x, norm=NORMS[norm]), x=ops.normal(2, 4, 3, kind="complex"))


# ---------------------------------------------------------------- short-time transforms

class Short:
    """The definition of stft and istft, sample by sample where it matters."""

    def __init__(self, size, hop, centre, onesided, ortho):
        self.size, self.hop, self.centre, self.onesided = size, hop, centre, onesided
        self.norm = "ortho" if ortho else "backward"
        self.reach = size // 2 if centre else 0

    def options(self):
        return [self.size, self.hop, int(self.centre), int(self.onesided), int(self.norm == "ortho")]

    def forward(self, x, window):
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(self.reach, self.reach)], mode="reflect")
        pieces = np.lib.stride_tricks.sliding_window_view(x, self.size, axis=-1)[..., ::self.hop, :] * window
        return np.fft.rfft(pieces, norm=self.norm) if self.onesided else np.fft.fft(pieces, norm=self.norm)

    def backward(self, y, window, length):
        pieces = np.fft.irfft(y, n=self.size, norm=self.norm) * window
        frames = y.shape[-2]
        x = np.zeros(y.shape[:-2] + ((frames - 1) * self.hop + self.size,))
        squares = np.zeros(x.shape[-1])
        for t in range(frames):
            x[..., t * self.hop:t * self.hop + self.size] += pieces[..., t, :]
            squares[t * self.hop:t * self.hop + self.size] += window ** 2
        end = self.reach + length
        return x[..., self.reach:end] / squares[self.reach:end]

    def torch_settings(self):
        return dict(n_fft=self.size, hop_length=self.hop, center=self.centre, onesided=self.onesided,
                    normalized=self.norm == "ortho")

    def torch_forward(self, x, window):
        y = torch.stft(x, window=window, return_complex=True, **self.torch_settings())
        return y.transpose(-1, -2)

    def torch_backward(self, y, window, length):
        return torch.istft(y.transpose(-1, -2), window=window, length=length, **self.torch_settings())


def short_time(ops):
    cases = {"plain": Short(8, 2, True, True, False), "ortho": Short(8, 4, True, True, True),
             "odd": Short(7, 3, True, True, False), "left": Short(6, 2, False, True, True),
             "twosided": Short(6, 3, True, False, False)}
    for name, short in cases.items():
        n = 22
        window = scipy.signal.get_window("hann", short.size)  # periodic
        assert_same(f"window {name}", window, torch.hann_window(short.size, dtype=torch.float64).numpy())
        if name in ("odd", "left"):  # and one that is nowhere 0
            window = window + 0.25 + 0.1 * ops.rng.uniform(size=short.size)
        ops.integers(f"stft.{name}.options", short.options())
        ops.case(f"stft.{name}", short.forward, short.torch_forward, x=ops.normal(2, n), window=window)
        if not short.onesided:
            continue  # of spectra of no real signal PyTorch takes one half, where the real part of the inverse is meant
        spectra = short.forward(ops.normal(2, n), window)
        spectra = spectra + 0.5 * ops.normal(*spectra.shape, kind="complex")  # of no signal at all
        length = n if short.centre else (spectra.shape[-2] - 1) * short.hop + short.size
        ops.integers(f"istft.{name}.options", short.options() + [length])
        ops.case(f"istft.{name}", lambda y, w: short.backward(y, w, length),
                 lambda y, w: short.torch_backward(y, w, length), x=spectra, window=window)
    for n in (1, 2, 9):
        put(ops.tensors, f"hann_window.{n}.periodic", scipy.signal.get_window("hann", n))
        put(ops.tensors, f"hann_window.{n}.symmetric", scipy.signal.get_window("hann", n, fftbins=False))


def generate(folder):
    ops = Ops(seed=40)
    for family in (transforms, short_time):
        family(ops)
    return [write(folder, "fourier", ops.tensors)]
