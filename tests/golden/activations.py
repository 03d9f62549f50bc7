"""Elementwise functions, norms and the modReLU family, for the cells: NumPy on a vector, PyTorch on rows."""

import numpy as np
import torch

from common import assert_close, assert_same, central_differences, put, write

LEAKY_SLOPE = 0.01
LAYER_NORM_EPSILON = 1e-5

# y = z / (r + divide) * relu(r + shift + b), r = sqrt(|z|^2 + inside), real or complex z. (inside, shift, divide)
MODRELU = {
    "plain": (0, 0, 0),             # the definition; scoRNN, ENRNN, expRNN, nnRNN
    "urnn": (0, 0, 1e-5),           # amarshah/complex_RNN
    "full_urnn": (1e-5, 0, 1e-5),   # stwisdom/urnn
    "srnn_urnn": (0, 0, 1e-6),      # the uRNN port in the SRNN repository
    "eunn": (0, 0.01, 0),           # jingli9111/EUNN-tensorflow, real
    "eunn_complex": (0, 0.01, 0.01),  # the same, complex
    "goru": (0, 0.001, 0),          # jingli9111/GORU-tensorflow
}


# ---------------------------------------------------------------- NumPy

def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def relu(a, kinks):
    """max(a, 0)"""
    kinks.switch(a)
    return np.maximum(a, 0)


def leaky_relu(a, kinks, slope=LEAKY_SLOPE):
    kinks.switch(a)
    return np.where(a > 0, a, slope * a)


def modrelu(z, b, variant, kinks):
    inside, shift, divide = MODRELU[variant]
    r = np.sqrt(np.abs(z) ** 2 + inside)
    kinks.edge(np.abs(z))
    return z / (r + divide) * relu(r + shift + b, kinks)


def modrelu_pairs(z, b, kinks):
    """zmhammedi/Orthogonal_RNN: pairs (z_j, z_{j+n/2}), and |z|^2 where |z| is meant; half of b is read."""
    half = len(z) // 2
    y = np.zeros_like(z)
    for j in range(half):
        square = z[j] ** 2 + z[j + half] ** 2
        kinks.edge(square)
        scale = relu(square + b[j], kinks) / square
        y[j], y[j + half] = scale * z[j], scale * z[j + half]
    return y


def oplu(a, kinks):
    """The larger of each pair (a_j, a_{j+n/2}) in the first half, the smaller in the second."""
    half = len(a) // 2
    y = np.zeros_like(a)
    for j in range(half):
        y[j], y[j + half] = max(a[j], a[j + half]), min(a[j], a[j + half])
        kinks.switch(a[j] - a[j + half])
    return y


def layer_norm(a, g, beta):
    centred = a - np.mean(a)
    return g * centred / np.sqrt(np.mean(centred ** 2) + LAYER_NORM_EPSILON) + beta


# ---------------------------------------------------------------- PyTorch

def torch_modrelu(z, b, variant):
    inside, shift, divide = MODRELU[variant]
    if z.is_complex():
        r = torch.sqrt(z.real.square() + z.imag.square() + inside)
        scale = torch.relu(r + shift + b) / (r + divide)
        return torch.complex(z.real * scale, z.imag * scale)
    if inside == divide == 0:
        return torch.sign(z) * torch.relu(torch.abs(z) + shift + b)
    r = torch.sqrt(z.square() + inside)
    return z * torch.relu(r + shift + b) / (r + divide)


def torch_modrelu_pairs(z, b):
    half = z.shape[-1] // 2
    pairs = z.unflatten(-1, (2, half))
    square = pairs.square().sum(-2, keepdim=True)
    return (pairs * torch.relu(1 + b[:half] / square)).flatten(-2)


def torch_oplu(a):
    left, right = a.chunk(2, dim=-1)
    return torch.cat([torch.maximum(left, right), torch.minimum(left, right)], dim=-1)


def torch_layer_norm(a, g, beta):
    return torch.nn.functional.layer_norm(a, a.shape[-1:], g, beta, LAYER_NORM_EPSILON)


# ---------------------------------------------------------------- golden values of modReLU alone

class NoKinks:
    """Values are drawn away from kinks here."""
    def switch(self, a): pass
    def edge(self, a): pass


def golden_modrelu(variant, is_complex, rng):
    """z, b, dy -> y and the gradients; the units are on and off by turns."""
    n = 6
    modulus = rng.uniform(0.3, 1.5, n)
    direction = np.exp(1j * rng.uniform(-np.pi, np.pi, n)) if is_complex else rng.choice([-1.0, 1.0], n)
    values = {"z": modulus * direction, "b": -modulus + rng.uniform(0.1, 1, n) * np.array([1, -1] * (n // 2))}
    dy = rng.standard_normal(n) + (1j * rng.standard_normal(n) if is_complex else 0)
    leaves = {k: torch.tensor(a, requires_grad=True) for k, a in values.items()}
    y = torch_modrelu(leaves["z"], leaves["b"], variant)
    (torch.tensor(dy).conj() * y).real.sum().backward()

    what = f"modrelu.{variant}.{'complex' if is_complex else 'real'}"
    forward = lambda v: modrelu(v["z"], v["b"], variant, NoKinks())
    assert_same(what, forward(values), y.detach().numpy())
    numeric = central_differences(lambda v: np.sum(dy.conj() * forward(v)).real, values)
    tensors = {}
    for k, a in {**values, "dy": dy, "y": y.detach().numpy()}.items():
        put(tensors, f"{what}.{k}", a)
    for k, leaf in leaves.items():
        assert_close(f"{what} d{k}", leaf.grad.numpy(), numeric[k])
        put(tensors, f"{what}.d{k}", leaf.grad.numpy())
    return tensors


def generate(folder):
    rng = np.random.default_rng(77)
    tensors = {}
    for variant in MODRELU:
        for is_complex in (False, True):
            tensors |= golden_modrelu(variant, is_complex, rng)
    return [write(folder, "modrelu", tensors)]
