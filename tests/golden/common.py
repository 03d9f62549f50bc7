"""What all golden files share: checks that hold two computations together, numeric gradients, writing."""

import numpy as np
from safetensors.numpy import save_file


def assert_same(what, a, b, tolerance=1e-12):
    """Two ways to compute the same thing agree: |a - b| <= tolerance * max(1, max|b|)."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, f"{what}: shapes {a.shape} and {b.shape}"
    error = np.max(np.abs(a - b), initial=0.0) / max(1.0, np.max(np.abs(b), initial=0.0))
    assert error <= tolerance, f"{what}: differ by {error:.2e} (allowed {tolerance:.0e})"


def assert_close(what, exact, numeric, tolerance=1e-6):
    """A derivative agrees with its finite difference, relative to the largest entry."""
    exact, numeric = np.asarray(exact), np.asarray(numeric)
    assert exact.shape == numeric.shape, f"{what}: shapes {exact.shape} and {numeric.shape}"
    scale = max(np.max(np.abs(numeric)), 1e-3)
    error = np.max(np.abs(exact - numeric)) / scale
    assert error <= tolerance, f"{what}: off its finite difference by {error:.2e} (allowed {tolerance:.0e})"


def central_differences(loss, values, eps=1e-5):
    """d loss / d value for each array of the dict `values`, entry by entry; loss(values) is a real number.

    For a complex array the result is dL/dRe + i dL/dIm, the convention of the engine and of PyTorch's .grad.
    """
    values = {name: np.array(a) for name, a in values.items()}  # own copies: perturbed in place below
    gradients = {}
    for name, a in values.items():
        gradient = np.zeros_like(a)
        for index in np.ndindex(a.shape):
            start = a[index]
            for direction in (1.0, 1j) if np.iscomplexobj(a) else (1.0,):
                a[index] = start + eps * direction
                high, step = loss(values), a[index]
                a[index] = start - eps * direction
                low, step = loss(values), abs(step - a[index])
                a[index] = start
                gradient[index] += direction * (high - low) / step
        gradients[name] = gradient
    return gradients


def put(tensors, key, array):
    """Stores float64 and int32 under `key`; complex128 as two float64 tensors `key`.re and `key`.im."""
    array = np.asarray(array)
    if np.iscomplexobj(array):
        put(tensors, key + ".re", array.real)
        put(tensors, key + ".im", array.imag)
        return
    assert array.dtype in (np.float64, np.int32), f"{key}: {array.dtype}"
    assert key not in tensors, f"{key} given twice"
    assert np.all(np.isfinite(array)), f"{key}: not finite"
    tensors[key] = np.array(array, order="C")  # (ascontiguousarray would turn shape () into (1,))


def write(folder, name, tensors):
    path = folder / f"{name}.safetensors"
    save_file(tensors, path)
    return path
