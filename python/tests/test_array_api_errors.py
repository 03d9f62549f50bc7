"""reel.array_api: what is refused, and with which words."""

import numpy as np
import pytest

import reel
import reel.array_api as xp


@pytest.mark.parametrize("f", [xp.sum, xp.max, xp.prod, xp.any, xp.mean, xp.var, xp.argmax])
def test_a_scalar_has_no_axis_5(f):
    x = reel.tensor(2.0)
    for axis in (5, 1, -2):
        with pytest.raises(IndexError, match=f"a scalar has no axis {axis}"):
            f(x, axis=axis)
    if f is not xp.argmax:
        assert f(x, axis=(0,)).shape == f(x, axis=()).shape == ()
        for axis in ((0, 0), (-1, 0)):
            with pytest.raises(ValueError, match="an axis is given twice"):
                f(x, axis=axis)
    assert f(x, axis=0).shape == f(x, axis=-1).shape == f(x).shape == ()  # as in NumPy


def test_what_is_no_tensor():
    x = reel.ones(2)
    for f in (xp.sum, xp.mean, xp.max, xp.all, xp.exp, xp.floor, xp.isnan, xp.negative):
        for given, kind in ((np.ones(2), "numpy.ndarray"), (1.0, "float")):
            with pytest.raises(TypeError, match=rf"\w+: a tensor of Reel is expected, got {kind}. Hint: asarray\(x\)"):
                f(given)
    for f in (xp.matmul, xp.linalg.outer, xp.vecdot, xp.tensordot, xp.linalg.cross, xp.linalg.solve):
        for given in ((x, 2.0), (2.0, x)):
            with pytest.raises(TypeError, match=rf"{f.__name__}: a tensor of Reel is expected, got float"):
                f(*given)
    for f in (xp.clip, xp.add):
        with pytest.raises(TypeError, match="a tensor of Reel or a number is expected, got 'a'"):
            f(x, "a")
    with pytest.raises(TypeError, match="1j does not go with a tensor of int32|1j does not go with a tensor of i32"):
        xp.add(reel.arange(2), 1j)


def test_indices_that_are_not_there_are_named():
    x = reel.tensor([1.0, 2, 3])
    assert xp.take(x, reel.tensor([-3, 2])).tolist() == [1, 3]
    with pytest.raises(reel.Error, match="index -4 "):
        xp.take(x, reel.tensor([-4]))
    with pytest.raises(reel.Error, match="index -4 "):
        xp.take_along_axis(x, reel.tensor([-4]))


def test_differences_are_taken_0_times_or_more():
    x = reel.tensor([1.0, 2, 4])
    assert xp.diff(x, n=0).tolist() == [1, 2, 4] and xp.diff(x, n=2).tolist() == [1]
    with pytest.raises(ValueError, match="diff: n is 0 or more, got -1"):
        xp.diff(x, n=-1)


def test_products_of_integers_have_one_inner_extent():
    for x, y in (((2, 1), (3, 2)), ((1, 2), (1,)), ((1,), (3, 2)), ((2, 3), (2, 1, 2)), ((1,), (2,))):
        for dtype, error in ((xp.int32, ValueError), (xp.float32, reel.Error)):
            with pytest.raises(error, match="matmul.* inner dimensions differ: [123] and [123]"):
                xp.matmul(xp.ones(x, dtype=dtype), xp.ones(y, dtype=dtype))
    assert xp.matmul(reel.tensor([[1, 2]]), reel.tensor([3, 4])).tolist() == [11]


def test_ranges_of_integers_fit_int32():
    low, high = -(2**31), 2**31 - 1
    for given, outside in (
        ((0, 2**32, 2**30), 3 * 2**30),
        ((high - 1, high + 3), high + 2),
        ((low - 1, 0, 2**30), low - 1),
    ):
        with pytest.raises(ValueError, match=f"arange: the elements must fit int32, got {outside}. Hint: dtype=float64"):
            xp.arange(*given)
        assert xp.arange(*given, dtype=xp.float64).tolist() == list(range(*given))
    for given in ((high - 1, high + 1), (low, high, 2**30), (low + 1, low - 1, -1), (5, 0)):
        assert xp.arange(*given).tolist() == list(range(*given)) and xp.arange(*given).dtype == xp.int32
    for given in ((0, 1, 0), (0, 1, 0.0)):
        with pytest.raises(ValueError, match="arange: the step is not 0"):
            xp.arange(*given)


def test_counts_of_repeat():
    x = reel.tensor([7, -7, 2])
    with pytest.raises(ValueError, match="repeat: counts are 0 or more, got -3"):
        xp.repeat(x, reel.tensor([-1, 2, -3]))
    for counts, shape in (([1, 2], r"\(2,\)"), ([[1, 2, 3]], r"\(1, 3\)")):
        with pytest.raises(ValueError, match=f"repeat: one count or 3 are expected, got shape {shape}"):
            xp.repeat(x, reel.tensor(counts))
    for counts in (2, [2], [0, 1, 2]):
        assert xp.repeat(x, reel.tensor(counts)).tolist() == np.repeat([7, -7, 2], counts).tolist()


def test_axes_move_to_as_many_places():
    x = reel.zeros((2, 3, 4))
    for source, destination in (((0, 1), (1,)), (0, (0, 1)), ((), 1)):
        with pytest.raises(ValueError, match="moveaxis: as many axes are expected in both; got "):
            xp.moveaxis(x, source, destination)
    assert xp.moveaxis(x, (0, 1), (1, 2)).shape == (4, 2, 3)


@pytest.mark.parametrize("f", [xp.sum, xp.prod, xp.cumulative_sum, xp.linalg.trace])
def test_sums_keep_imaginary_parts(f):
    x = reel.tensor([1 + 2j, 3.0]) if f is not xp.linalg.trace else reel.tensor([[1 + 2j, 0], [0, 3.0]])
    for dtype in (xp.float32, xp.float64, xp.int32):
        with pytest.raises(TypeError, match=rf"{f.__name__}: c64 does not become {dtype.name}. Hint: take real\(\)"):
            f(x, dtype=dtype)
    assert f(x, dtype=xp.complex128).dtype == xp.complex128


def test_what_needs_matrices():
    for shape in ((2, 3), (2,), (2, 2, 3)):
        for n in (1, 2, -1):
            with pytest.raises(ValueError, match="matrix_power: square matrices are expected, got shape"):
                xp.linalg.matrix_power(reel.ones(shape), n)
    for f in (xp.linalg.diagonal, xp.linalg.trace):
        with pytest.raises(ValueError, match=r"diagonal: two axes or more are expected, got shape \(3,\)"):
            f(reel.ones(3))


def test_norms_of_integers():
    x = reel.tensor([3, -4])
    for order in (1, 2, 0.5, -1):
        with pytest.raises(TypeError, match=f"vector_norm: floating elements are expected for ord {order}, got i32"):
            xp.linalg.vector_norm(x, ord=order)
    assert [xp.linalg.vector_norm(x, ord=order).item() for order in (0, np.inf, -np.inf)] == [2, 4, 3]


def test_shapes_and_counts_may_be_one_number():
    x = reel.tensor([[1, 2], [3, 4]])
    assert xp.reshape(x, -1).tolist() == [1, 2, 3, 4]
    assert xp.tile(x, 2).tolist() == np.tile(x.numpy(), 2).tolist()


def test_an_extent_of_no_elements_is_not_guessed():
    for shape in ((0, -1), (-1, 0)):
        with pytest.raises(reel.Error, match="reshape. -1 is ambiguous here: the other extents multiply to 0"):
            xp.reshape(reel.zeros(0), shape)
    assert xp.reshape(reel.zeros((0, 3)), (3, -1)).shape == (3, 0)


def test_norms_of_matrices_without_elements():
    for shape in ((0, 3), (3, 0), (2, 0, 3)):
        for order in ("fro", "nuc", 1, 2, np.inf):
            got = xp.linalg.matrix_norm(reel.zeros(shape), ord=order, keepdims=True)
            assert got.shape == (*shape[:-2], 1, 1) and not got.numpy().any()
        with pytest.raises(reel.Error):
            xp.linalg.matrix_norm(reel.zeros(shape), ord=-2)
    for order in (3, 0, -5, 0.5, np.nan, "x", None):
        with pytest.raises(ValueError, match=f"matrix_norm: ord is 'fro', 'nuc', 1, 2, inf, -1, -2 or -inf, got {order!r}"):
            xp.linalg.matrix_norm(reel.ones((2, 2)), ord=order)
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    for order in ("fro", "nuc", 1, 2, np.inf, -1, -2, -np.inf):
        got = xp.linalg.matrix_norm(reel.asarray(x), ord=order).numpy()
        assert np.allclose(got, np.linalg.norm(x, ord=order, axis=(-2, -1)))


def test_copy_false_never_copies():
    locked = np.ones(3)
    locked.flags.writeable = False
    for f in (xp.asarray, xp.from_dlpack):
        for array in (np.ones((2, 3)).T, np.ones(6)[::2], locked):
            with pytest.raises(ValueError, match=f"{f.__name__}: a copy is needed where .* got numpy.ndarray of float64"):
                f(array, copy=False)
            assert f(array).shape == array.shape
        whole = np.zeros(5, "f4")
        shared = f(whole[2:], copy=False)
        whole[2] = 7
        assert shared.tolist() == [7, 0, 0]
        assert f(np.ones((0, 3), "f4"), copy=False).shape == (0, 3) and f(shared, copy=False).tolist() == [7, 0, 0]
    for array, dtype in ((np.arange(3), None), (whole, xp.float64), (reel.ones(3), xp.float64)):
        with pytest.raises(ValueError, match="asarray: a copy is needed where .* and copy=False"):
            xp.asarray(array, dtype=dtype, copy=False)


def test_linspace_of_integers_that_do_not_fit():
    for ends in ((0, 2**31), (-(2**31) - 1, 0), (0, float("nan"))):
        with pytest.raises(ValueError, match="linspace: the elements must fit int32, got .* Hint: dtype=float64"):
            xp.linspace(*ends, 3, dtype=xp.int32)
    assert xp.linspace(-(2**31), 2**31 - 1, 2, dtype=xp.int32).tolist() == [-(2**31), 2**31 - 1]
    assert xp.linspace(0, 2**31, 2, dtype=xp.int32, endpoint=False).tolist() == [0, 2**30]
    assert xp.linspace(5, 2**40, 1, dtype=xp.int32).tolist() == [5]
    with pytest.raises(TypeError, match="linspace: num is an integer, got 2.5"):
        xp.linspace(0, 1, 2.5)
    with pytest.raises(ValueError, match="linspace: num is 0 or more, got -1"):
        xp.linspace(0, 1, -1)


def test_numbers_are_not_put_beside_tensors():
    for f in (xp.concat, xp.stack):
        with pytest.raises(TypeError, match=rf"{f.__name__}: a tensor of Reel is expected, got float. Hint: asarray\(x\)"):
            f([reel.ones(1), 2.0])
    assert xp.concat(reel.ones(n) for n in (1, 2)).shape == (3,)
