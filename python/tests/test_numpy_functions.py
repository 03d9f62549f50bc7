"""NumPy's functions other than ufuncs, of tensors."""

import numpy as np
import pytest

import reel

x, y = reel.tensor([1.0, 2.0, 3.0]), reel.tensor([[1.0, 2.0], [3.0, 4.0]])


def differentiated(f, *args):
    """What f returns where its arguments have gradients."""
    found = []

    def loss(*given):
        found.append(f(*given))
        return reel.sum(given[0])

    reel.grad(loss, tuple(range(len(args))))(*args)
    return found[0]


@pytest.mark.parametrize(
    "name, f, hint",
    [
        ("clip", lambda x: np.clip(x, 0, 1.5), "reel.clamp, or "),
        ("reshape", lambda x: np.reshape(x, (1, 3)), "reel.reshape, or "),
        ("cumsum", lambda x: np.cumsum(x), "reel.cumsum, or "),
        ("concatenate", lambda x: np.concatenate([np.ones(2), x]), "reel.concat, or "),
        ("where", lambda x: np.where(x > 1, x, 0), "reel.where, or "),
        ("outer", lambda x: np.outer(np.ones(3), x), "reel.outer, or "),
        ("norm", lambda x: np.linalg.norm(x), "reel.norm, or "),
        ("split", lambda x: np.split(x, 3), "reel.split, or "),
        ("polyval", lambda x: np.polyval(p=[1.0, 2.0], x=x), ""),
    ],
)
def test_no_gradient_is_lost(name, f, hint):
    assert not isinstance(f(x), reel.Tensor)  # without a gradient it works
    assert not isinstance(reel.grad(lambda p: reel.sum(p) * float(np.sum(f(x))))(x), np.ndarray)
    with pytest.raises(reel.Error) as e:
        differentiated(f, x)
    said = "NumPy's function has no gradient, and a tensor was computed in a function that is differentiated"
    assert str(e.value) == f"[{name}] {said}. Hint: {hint}x.numpy(), which counts as constant"
    f(x)  # goes on


def test_what_calls_methods_has_gradients():
    for f in (np.mean, np.sum, np.squeeze, lambda x: np.sum(x, axis=0), lambda x: np.max(x)):
        assert isinstance(differentiated(f, x), reel.Tensor)
    assert reel.grad(lambda x: np.mean(x * x))(x).tolist() == pytest.approx([2 / 3, 4 / 3, 2])


def test_results_without_gradients_are_given():
    assert differentiated(lambda x: np.zeros_like(x), x).tolist() == [0, 0, 0]
    assert differentiated(lambda x: np.flatnonzero(x), x).tolist() == [0, 1, 2]
    assert differentiated(lambda x: (np.shape(x), np.ndim(x), np.allclose(x, x)), x) == ((3,), 1, True)
    assert differentiated(lambda x: np.concatenate([x > 1, x > 2]), x).dtype == bool
    assert differentiated(lambda x: np.concatenate([x.numpy(), [1]]), x).tolist() == [1, 2, 3, 1]
    differentiated(lambda x: np.testing.assert_allclose(x, [1, 2, 3]), x)
    differentiated(lambda x: np.testing.assert_array_equal(x, x), x)


def test_without_gradients_all_is_as_for_arrays():
    assert np.concatenate([x, x]).tolist() == np.concatenate([x, x.numpy()]).tolist() == [1, 2, 3, 1, 2, 3]
    assert np.concatenate([np.ma.array([1.0]), x]).tolist() == [1, 1, 2, 3]
    assert np.einsum("ij,j->i", y, x[:2]).tolist() == [5, 11]
    assert [part.tolist() for part in np.split(x, 3)] == [[1], [2], [3]]
    assert np.linalg.inv(y).shape == (2, 2)
    with pytest.raises(TypeError):
        np.array([1.0], like=x)


def test_functions_of_other_libraries_come_first():
    class Foreign:
        def __array_function__(self, f, types, args, kwargs):
            return f"{f.__name__} of Foreign"

    assert np.concatenate([x, Foreign()]) == np.concatenate([Foreign(), x]) == "concatenate of Foreign"
