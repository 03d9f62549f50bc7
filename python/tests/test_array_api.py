"""reel.array_api beside NumPy, which follows the standard, too; scripts/array-api runs the public suite."""

import math
import operator

import numpy as np
import pytest

import reel
import reel.array_api as xp

FLOATS = [-2.5, -1.0, 0.5, 3.0]


def test_tensors_name_the_namespace():
    x = reel.ones((2, 3))
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp
    assert x.device == "cpu" and x.to_device("cpu").shape == (2, 3) and x.mT.shape == (3, 2)
    with pytest.raises(ValueError, match="2099.12"):
        x.__array_namespace__(api_version="2099.12")
    with pytest.raises(ValueError, match="cuda"):
        x.to_device("cuda")


def test_an_element_is_an_index():
    assert [10, 20, 30][reel.tensor(1)] == 20
    with pytest.raises(TypeError, match="f32"):
        operator.index(reel.tensor(1.0))
    with pytest.raises(TypeError, match=r"\(2\)|\(2,\)"):
        operator.index(reel.tensor([1, 2]))


def test_a_negative_element_counts_from_the_end():
    x = reel.tensor([[1, 2], [3, 4]])
    assert x[reel.tensor(-1)].tolist() == [3, 4] and x[:, reel.tensor(-2)].tolist() == [1, 3]
    with pytest.raises(IndexError, match="-3"):
        x[reel.tensor(-3)]


def test_dlpack_copies_on_request():
    x = reel.ones(3)
    shared, copied = np.from_dlpack(x), reel.array_api.from_dlpack(x, copy=True)
    assert x.__dlpack__(copy=True) is not None and x.__dlpack__(copy=False) is not None
    x.assign(reel.zeros(3))
    assert shared.tolist() == [0, 0, 0] and copied.tolist() == [1, 1, 1]


def test_code_that_knows_the_standard_only():
    def normalized(x):
        ns = x.__array_namespace__()
        return (x - ns.mean(x, axis=0)) / ns.std(x, axis=0)

    x = np.arange(12.0).reshape(4, 3) ** 2
    np.testing.assert_allclose(normalized(reel.tensor(x)).numpy(), (x - x.mean(0)) / x.std(0), rtol=1e-12)
    assert reel.grad(lambda x: reel.sum(normalized(x) ** 3))(reel.tensor(x)).shape == (4, 3)


@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.truediv, operator.pow, operator.lt], ids=str)
def test_operators_promote_precision(op):
    for a, b in (("f32", "f64"), ("f64", "f32"), ("f32", "c128"), ("c64", "f64"), ("c64", "c128")):
        if op is operator.lt and "c" in a + b:
            continue
        x, y = reel.tensor([1.5, 2.0]).cast(a), reel.tensor([2.5, 0.5]).cast(b)
        expected = op(x.numpy(), y.numpy())
        np.testing.assert_allclose(op(x, y).numpy(), expected)
        assert op(x, y).numpy().dtype == expected.dtype
    with pytest.raises(reel.Error, match="one dtype"):
        operator.add(reel.ones(2), reel.arange(2))


def test_matrix_products_promote():
    x, y = np.arange(4.0).reshape(2, 2), np.array([[1 + 2j, 3], [4j, 1]])
    for a, b in (("f32", "f64"), ("f32", "c64"), ("c64", "f32"), ("c64", "f64"), ("f64", "c64"), ("f32", "c128")):
        p, q = (reel.tensor(z if "c" in name else x).cast(name) for name, z in ((a, y), (b, y)))
        expected = p.numpy() @ q.numpy()
        np.testing.assert_allclose((p @ q).numpy(), expected)
        assert (p @ q).numpy().dtype == expected.dtype
    gradient = reel.grad(lambda a: reel.real(reel.sum(a @ reel.tensor(y))))(reel.ones((2, 2)))
    assert gradient.dtype == reel.f32 and gradient.tolist() == [[4, 1], [4, 1]]
    with pytest.raises(reel.Error, match="one dtype"):
        reel.ones((2, 2), "c64") @ reel.ones((2, 2)).cast("i32")


def test_promotion_has_a_gradient_of_the_argument_s_dtype():
    gradient = reel.grad(lambda x: reel.sum(x * reel.full(2, 3, "f64")))(reel.ones(2))
    assert gradient.dtype == reel.f32 and gradient.tolist() == [3, 3]


@pytest.mark.parametrize("op", [operator.floordiv, operator.mod], ids=str)
def test_integers_divide_as_python_s(op):
    values = [-7, -1, 0, 5, 2**31 - 1, -(2**31)]
    for divisor in (-3, 2, 2**31 - 1):
        expected = [op(v, divisor) for v in values]
        assert op(reel.tensor(values), divisor).tolist() == expected
        assert op(reel.tensor(values), reel.full(6, divisor, "i32")).tolist() == expected


def test_integers_have_powers_and_complements():
    assert (reel.tensor([-3, 2, 46340]) ** 2).tolist() == [9, 4, 46340**2]
    assert (2 ** reel.tensor([0, 3, 30])).tolist() == [1, 8, 2**30]
    assert (~reel.tensor([0, -1, 7])).tolist() == [-1, 0, -8]
    with pytest.raises(reel.Error):
        reel.tensor([1, 2]) ** 0.5


def test_result_types():
    assert xp.result_type(xp.float32, xp.complex128) == xp.complex128
    assert xp.result_type(xp.complex64, xp.float64) == xp.complex128
    assert xp.result_type(xp.ones(2), 1j) == xp.complex64 and xp.result_type(xp.int32, 3) == xp.int32
    for wrong in ((xp.int32, xp.float32), (xp.int32, 1.5), (xp.bool, 1), (xp.bool, xp.int32)):
        with pytest.raises(TypeError):
            xp.result_type(*wrong)
    assert xp.can_cast(xp.float32, xp.float64) and not xp.can_cast(xp.float64, xp.float32)
    assert xp.isdtype(xp.complex64, ("bool", "numeric")) and not xp.isdtype(xp.bool, "numeric")
    assert xp.finfo(xp.complex128).eps == np.finfo(np.float64).eps and xp.iinfo(xp.int32).max == 2**31 - 1
    for name in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(xp.finfo(xp.float32), name) == float(getattr(np.finfo(np.float32), name))


def test_creation():
    np.testing.assert_array_equal(xp.arange(1, 8, 3).numpy(), [1, 4, 7])
    np.testing.assert_allclose(xp.arange(0.5, -1, -0.25).numpy(), np.arange(0.5, -1, -0.25))
    np.testing.assert_allclose(xp.linspace(1, 2, 5, endpoint=False).numpy(), np.linspace(1, 2, 5, endpoint=False))
    np.testing.assert_array_equal(xp.linspace(-10, 0, 5, dtype=xp.int32).numpy(), [-10, -8, -5, -3, 0])
    np.testing.assert_array_equal(xp.eye(3, 4, k=-1).numpy(), np.eye(3, 4, -1))
    for ours, theirs in zip(xp.meshgrid(xp.arange(2), xp.arange(3)), np.meshgrid(np.arange(2), np.arange(3))):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    m = np.arange(24).reshape(2, 3, 4)
    for k in (-1, 0, 2):
        np.testing.assert_array_equal(xp.tril(xp.asarray(m, dtype=xp.int32), k=k).numpy(), np.tril(m, k))
        np.testing.assert_array_equal(xp.triu(xp.asarray(m, dtype=xp.int32), k=k).numpy(), np.triu(m, k))
    x = xp.ones(3)
    y = xp.asarray(x, copy=True)
    y.assign(xp.zeros(3))
    assert x.tolist() == [1, 1, 1] and xp.asarray(x) is x
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray([1.0], copy=False)


def test_elementwise_compositions():
    a, b = np.float64(FLOATS), np.float64([1.0, -0.0, math.inf, 2.0])
    x, y = reel.tensor(a), reel.tensor(b)
    np.testing.assert_array_equal(xp.copysign(x, y).numpy(), np.copysign(a, b))
    np.testing.assert_array_equal(xp.signbit(y).numpy(), np.signbit(b))
    assert not np.signbit(xp.sign(y).numpy()).any()  # sign(-0) is +0
    np.testing.assert_allclose(xp.logaddexp(x, y).numpy(), np.logaddexp(a, b))
    np.testing.assert_allclose(xp.logaddexp(y, y).numpy(), np.logaddexp(b, b))
    z = reel.tensor(np.float64([0.5, -math.inf, math.inf, 1e300]))
    assert reel.grad(lambda z: reel.sum(xp.logaddexp(z, y)[1:3]))(z).tolist() == [0, 0, 0.5, 0]
    reel.check_grads(xp.logaddexp, reel.tensor(np.float64([1, 2, -3])), reel.tensor(np.float64([1, 0, 5])))
    np.testing.assert_array_equal(xp.clip(x, -1, reel.full((), 1.0, "f64")).numpy(), np.clip(a, -1, 1))
    assert xp.floor(reel.tensor([1, -2])).tolist() == [1, -2]
    with pytest.raises(TypeError, match="logical_and"):
        xp.logical_and(x, y)


def test_reductions():
    a = np.arange(24.0).reshape(2, 3, 4)
    x = reel.tensor(a)
    for axis in (None, 1, (0, 2), ()):
        for keep in (False, True):
            for name in ("sum", "prod", "mean", "max", "min", "std", "all", "any"):
                expected = getattr(np, name)(a, axis=axis, keepdims=keep)
                np.testing.assert_allclose(getattr(xp, name)(x, axis=axis, keepdims=keep).numpy(), expected)
    assert math.isnan(xp.mean(xp.zeros(0)).item()) and math.isnan(xp.var(xp.ones(1), correction=1).item())
    np.testing.assert_array_equal(xp.argmax(x, axis=1, keepdims=True).numpy(), a.argmax(1, keepdims=True))
    np.testing.assert_array_equal(xp.diff(x, n=2).numpy(), np.diff(a, n=2))
    np.testing.assert_array_equal(xp.cumulative_sum(x, axis=1, include_initial=True).numpy()[:, 1:], a.cumsum(1))
    assert xp.searchsorted(xp.asarray([1, 3, 3, 5]), xp.asarray([3, 0, 6]), side="right").tolist() == [3, 0, 4]
    ends, points = xp.asarray([1.0, 2.0, math.nan]), xp.asarray([math.nan, 2.0])  # NaN comes last
    assert xp.searchsorted(ends, points).tolist() == [2, 1] and xp.searchsorted(ends[:2], points).tolist() == [2, 1]
    assert xp.searchsorted(ends, points, side="right").tolist() == [3, 2]
    assert xp.isin(xp.arange(4), xp.asarray([1, 3])).tolist() == [False, True, False, True]
    assert xp.count_nonzero(xp.asarray([[0, 2], [1, 0]]), axis=0).tolist() == [1, 1]


def test_layout():
    a = np.arange(24).reshape(2, 3, 4)
    x = xp.asarray(a, dtype=xp.int32)
    same = np.testing.assert_array_equal
    same(xp.moveaxis(x, (0, 1), (2, 0)).numpy(), np.moveaxis(a, (0, 1), (2, 0)))
    same(xp.roll(x, (1, -2), axis=(0, 2)).numpy(), np.roll(a, (1, -2), (0, 2)))
    same(xp.roll(x, 5).numpy(), np.roll(a, 5))
    for shift, axis in (((1, 1), 0), ((1, 2, -5), (1,)), (2, (0, 1)), ((2,), (0, 1)), ((1, 1), (2, 2)), (1, ())):
        same(xp.roll(x, shift, axis=axis).numpy(), np.roll(a, shift, axis))
    with pytest.raises(ValueError, match=r"as many shifts as axes .* got \(1, 2\) and \(0, 1, 2\)"):
        xp.roll(x, (1, 2), axis=(0, 1, 2))
    same(xp.tile(x, (2, 1, 1, 2)).numpy(), np.tile(a, (2, 1, 1, 2)))
    same(xp.repeat(x, xp.asarray([0, 2, 1]), axis=1).numpy(), np.repeat(a, [0, 2, 1], 1))
    same(xp.expand_dims(x, (0, -1)).numpy(), np.expand_dims(a, (0, -1)))
    same(xp.flip(x).numpy(), np.flip(a))
    same(xp.stack([x, x], axis=-1).numpy(), np.stack([a, a], -1))
    same(xp.take(x, xp.asarray([-1, 0]), axis=2).numpy(), a[..., [-1, 0]])
    index = np.int32([[[2, -1]]])
    same(xp.take_along_axis(x, reel.tensor(index)).numpy(), np.take_along_axis(a, np.broadcast_to(index, (2, 3, 2)), 2))
    with pytest.raises(IndexError):
        xp.expand_dims(x, 4)
    with pytest.raises(ValueError, match="broadcast"):
        xp.broadcast_shapes((2, 3), (4,))


def test_linalg_and_fft():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3))
    x, y, close = reel.tensor(a), reel.tensor(b), np.testing.assert_allclose
    close(xp.tensordot(x, y, axes=((0, 2), (0, 1))).numpy(), np.tensordot(a, b, axes=((0, 2), (0, 1))))
    close(xp.vecdot(x, xp.expand_dims(y, 1)).numpy(), (a * b[:, None]).sum(-1))
    close(xp.linalg.cross(x, xp.expand_dims(y, 1)).numpy(), np.cross(a, b[:, None]))
    close(xp.linalg.trace(x, offset=1).numpy(), np.trace(a, 1, 1, 2))
    close(xp.linalg.matrix_power(x, -3).numpy(), np.linalg.matrix_power(a, -3))
    for order in (1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"):
        close(xp.linalg.matrix_norm(x, ord=order).numpy(), np.linalg.norm(a, order, (1, 2)), rtol=1e-6)
    for order in (0, 1, 2, 3.5, np.inf, -np.inf):
        close(xp.linalg.vector_norm(y, axis=1, ord=order).numpy(), np.linalg.norm(b, order, 1))
    assert xp.linalg.matrix_rank(reel.ones((4, 3))).item() == 1
    limits = np.array([1e-9, 0.5])
    close(xp.linalg.pinv(x, rtol=reel.tensor(limits)).numpy(), np.linalg.pinv(a, limits), atol=1e-12)
    close(xp.linalg.cholesky(x @ x.mT, upper=True).numpy(), np.linalg.cholesky(a @ a.swapaxes(1, 2)).swapaxes(1, 2))
    m, v = rng.integers(-9, 9, (2, 3, 4)), rng.integers(-9, 9, 4)
    big = xp.asarray(m, dtype=xp.int32)
    np.testing.assert_array_equal(xp.matmul(big, xp.asarray(v, dtype=xp.int32)).numpy(), m @ v)
    np.testing.assert_array_equal(xp.matmul(big, xp.matrix_transpose(big)).numpy(), m @ m.swapaxes(1, 2))
    close(xp.fft.fftshift(xp.fft.fftfreq(5, d=0.5)).numpy(), np.fft.fftshift(np.fft.fftfreq(5, 0.5)), rtol=1e-6)
    close(xp.fft.irfft(xp.fft.rfft(y, n=4), n=4).numpy()[:, :3], b)
    with pytest.raises(NotImplementedError, match="full_matrices"):
        xp.linalg.svd(reel.ones((4, 3)))


@pytest.mark.parametrize("order", [1, 2, 3, 3.5, math.inf])
def test_norms_of_large_and_small_numbers_and_of_0(order):
    norm = lambda x: xp.linalg.vector_norm(x, ord=order)  # noqa: E731
    for scale in (1e30, 1e-30):
        a = np.float32([3, -4]) * np.float32(scale)
        x = reel.tensor(a)
        np.testing.assert_allclose(norm(x).numpy(), np.linalg.norm(a.astype("f8"), order), rtol=1e-6)
        y = reel.complex(x, x)
        np.testing.assert_allclose(norm(y).numpy(), np.linalg.norm(y.numpy().astype("c16"), order), rtol=1e-6)
    assert norm(xp.zeros(0)).item() == 0
    assert reel.grad(norm)(xp.zeros(2)).tolist() == [0, 0]
    x = reel.tensor([0.3, -2.0, 1.5], "f64")
    reel.check_grads(norm, x)


def test_matrix_norm_and_std_of_large_numbers_and_of_0():
    a = np.float32([[3, -4], [1, 2]])
    for scale in (1e30, 1e-30):
        x = reel.tensor(a * np.float32(scale))
        np.testing.assert_allclose(xp.linalg.matrix_norm(x).numpy(), np.linalg.norm(a) * scale, rtol=1e-6)
        np.testing.assert_allclose(xp.std(x, axis=0).numpy(), a.std(0) * scale, rtol=1e-6)
    assert reel.grad(xp.linalg.matrix_norm)(xp.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]
    assert reel.grad(lambda x: xp.std(x, correction=1))(xp.ones(3)).tolist() == [0, 0, 0]
    assert math.isnan(xp.std(xp.ones(1), correction=1).item())
    for x in (reel.tensor([1, 2]), reel.tensor([1j, 2])):
        with pytest.raises(TypeError, match="std"):
            xp.std(x)


def test_tensordot_refuses_axes_that_do_not_match():
    with pytest.raises(ValueError, match="tensordot"):
        xp.tensordot(xp.ones((2, 3)), xp.ones((3, 2)), axes=2)
    with pytest.raises(ValueError, match="tensordot"):
        xp.tensordot(xp.ones((2, 6)), xp.ones((3, 4, 5)), axes=([0, 1], [0, 1]))


def test_outer_takes_vectors_only():
    with pytest.raises(ValueError, match="outer"):
        xp.linalg.outer(xp.ones((2, 2)), xp.ones(2))


@pytest.mark.parametrize("a, b", [((1, 2, 2), (3, 2, 2)), ((5, 1, 2, 2), (3, 2, 2)), ((3, 2, 2), (1, 2, 4))])
def test_stacks_of_matrices_broadcast(a, b):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=a), rng.normal(size=b)
    X, Y = xp.asarray(x), xp.asarray(y)
    np.testing.assert_allclose(np.asarray(xp.matmul(X, Y)), x @ y, atol=1e-12)
    np.testing.assert_allclose(np.asarray(xp.linalg.solve(X, Y)), np.linalg.solve(x, y), atol=1e-9)


def test_matrices_without_elements_have_rank_and_norm_0():
    empty = xp.zeros((0, 0))
    assert int(xp.linalg.matrix_rank(empty)) == 0
    assert float(xp.linalg.matrix_norm(empty, ord=1)) == 0
    assert float(xp.linalg.matrix_norm(empty, ord=math.inf)) == 0
