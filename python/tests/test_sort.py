"""Sorting and cumulative functions against NumPy."""

import numpy as np
import pytest

import reel
import reel.array_api as xp

rng = np.random.default_rng(0)
X = rng.normal(size=(3, 4, 5))
TIES = rng.integers(-3, 4, size=(6, 50)).astype(np.int32)
HOLES = np.where(rng.random((4, 200)) < 0.1, np.nan, rng.normal(size=(4, 200)))


@pytest.mark.parametrize("x", [X, X.astype(np.float32), TIES, HOLES], ids=["f64", "f32", "i32", "nan"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_order(x, axis):
    t = reel.tensor(x)
    order = np.argsort(x, axis, kind="stable")
    np.testing.assert_array_equal(reel.argsort(t, axis).numpy(), order)
    np.testing.assert_array_equal(t.sort(axis).numpy(), np.sort(x, axis))
    # descending keeps the order of equal elements: that of the reversed elements, reversed
    last = x.shape[axis] - 1
    falling = last - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    np.testing.assert_array_equal(t.argsort(axis, descending=True).numpy(), falling)
    np.testing.assert_array_equal(reel.sort(t, axis, descending=True).numpy(), np.flip(np.sort(x, axis), axis))
    for k in (0, 1, 3):
        top = reel.top_k(t, k, axis)
        first = np.take(falling, range(k), axis)
        np.testing.assert_array_equal(top.indices.numpy(), first)
        np.testing.assert_array_equal(top.values.numpy(), np.take_along_axis(x, first, axis))


@pytest.mark.parametrize("x", [X, TIES, HOLES], ids=["f64", "i32", "nan"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_extremes_so_far(x, axis):
    t = reel.tensor(x)
    np.testing.assert_array_equal(reel.cummax(t, axis).numpy(), np.maximum.accumulate(x, axis))
    np.testing.assert_array_equal(reel.cummin(t, axis).numpy(), np.minimum.accumulate(x, axis))
    found = np.take_along_axis(x, reel.argcummax(t, axis).numpy(), axis)
    np.testing.assert_array_equal(found, np.maximum.accumulate(x, axis))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_products_and_log_sums_so_far(axis):
    np.testing.assert_allclose(reel.cumprod(X, axis).numpy(), np.cumprod(X, axis), rtol=1e-14)
    x = np.where(X > 1, -np.inf, 100 * X)
    np.testing.assert_allclose(reel.logcumsumexp(x, axis).numpy(), np.logaddexp.accumulate(x, axis), rtol=1e-13)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: reel.sort(x, 1),
        lambda x: reel.top_k(x, 2, 0).values,
        lambda x: reel.cumprod(reel.where(x > 0.5, 0, x), 1),
        lambda x: reel.cumprod(reel.complex(x, x + 1)),
        lambda x: reel.cummax(x, 0),
        lambda x: reel.logcumsumexp(x, 1),
    ],
)
def test_derivatives(f):
    reel.check_grads(f, reel.tensor(X))


def test_in_a_loop():
    def step(h, x):
        ranked = reel.sort(x + h, descending=True) + reel.cumprod(reel.tanh(x)) + reel.logcumsumexp(h)
        return 0.1 * ranked, reel.top_k(reel.cummin(x), 2).values + reel.cummax(h)[:, :2]

    h, xs = reel.tensor(rng.normal(size=(6, 8))), reel.tensor(rng.normal(size=(5, 6, 8)))
    loss = lambda loop: lambda h, xs: sum(reel.sum(reel.sin(y)) for y in loop(step, h, xs))
    for looped, unrolled in zip(reel.grad(loss(reel.scan), (0, 1))(h, xs), reel.grad(loss(reel.unroll), (0, 1))(h, xs)):
        np.testing.assert_allclose(looped.numpy(), unrolled.numpy(), rtol=1e-11, atol=1e-13)


def test_the_standard():
    x = xp.asarray([[3, 1], [1, 2]])
    assert xp.sort(x).tolist() == [[1, 3], [1, 2]] and xp.sort(x, axis=0, descending=True).tolist() == [[3, 2], [1, 1]]
    assert xp.argsort(x, stable=False).tolist() == [[1, 0], [0, 1]]
    assert xp.cumulative_prod(x, axis=-1, include_initial=True).tolist() == [[1, 3, 3], [1, 1, 2]]
    assert xp.cumulative_prod(xp.asarray([2, 3]), dtype=xp.float64).dtype == reel.f64
    with pytest.raises(TypeError, match="sort: integral or real floating elements are expected, got c64"):
        xp.sort(xp.asarray([1j]))
    with pytest.raises(ValueError, match="cumulative_prod: an axis is needed"):
        xp.cumulative_prod(x)
