"""reel.tensor and reel.asarray of what is no array of numbers, and of buffers."""

import array
import decimal
import fractions
import math

import numpy as np
import pytest

import reel


@pytest.mark.parametrize(
    "data",
    [
        [None, 1.0],
        "1.5",
        ["1.5"],
        b"ab",
        np.array(["2020-01-01"], "M8[D]"),
        np.array([3], "m8[s]"),
        np.zeros(2, [("a", "f4")]),
        np.array([1.0, None], object),
    ],
    ids=repr,
)
def test_what_is_no_number_with_and_without_a_dtype(data):
    for dtype in (None, "f32", "f64", "i32", "c64", "bool"):
        for make in (reel.tensor, reel.asarray):
            with pytest.raises(reel.Error, match=r"\[tensor\] numbers are expected, got elements of type "):
                make(data, dtype)


def test_numbers_that_numpy_has_no_dtype_for():
    assert reel.tensor([2**70, 1], "f64").tolist() == [2.0**70, 1]
    assert reel.tensor([2**70, 1j], "c128").tolist() == [2.0**70, 1j]
    assert reel.tensor([fractions.Fraction(1, 2), decimal.Decimal("1.5")], "f32").tolist() == [0.5, 1.5]
    with pytest.raises(reel.Error, match="i32 holds -2147483648..2147483647, got "):
        reel.tensor([2**70], "i32")
    for x in (3e10, -2147483649.0, math.inf, math.nan):
        for outside in (x, reel.tensor([1.5, x], "f64"), reel.tensor(2 * x)):
            with pytest.raises(reel.Error, match="i32 holds -2147483648..2147483647, got "):
                reel.tensor(outside, "i32")
    assert reel.tensor(reel.tensor([1.5, -2147483648.0, 2147483647.0], "f64"), "i32").tolist() == [1, -(2**31), 2**31 - 1]
    with pytest.raises(reel.Error, match="complex numbers do not become float32"):
        reel.tensor([2**70, 1j], "f32")
    with pytest.raises(reel.Error, match="too large"):
        reel.tensor([10**400], "f32")


@pytest.mark.parametrize("kind", "dfi")
def test_asarray_shares_buffers(kind):
    numbers = array.array(kind, [1, 2, 3])
    x, y = reel.asarray(numbers), reel.asarray(memoryview(numbers))
    numbers[0] = 7
    assert x.tolist() == y.tolist() == [7, 2, 3]
    assert reel.asarray(array.array("h", [1, 2])).dtype == reel.i32  # a copy
    assert reel.asarray(numbers, "c64").dtype == reel.c64


def test_an_integer_that_is_no_double_overflows_as_in_python():
    x = reel.ones(1)
    calls = (
        lambda: x + 10**400,
        lambda: -(10**400) * x,
        lambda: x ** (10**400),
        lambda: reel.exp(10**400),
        lambda: reel.clamp(x, 0, 10**400),
        lambda: reel.full((2,), 10**400),
        lambda: reel.full_like(x, -(10**400)),
    )
    for call in calls:
        with pytest.raises(OverflowError, match="int too large to convert to float"):
            call()


class Table:
    """Columns as an array, without a dtype of its own, as a DataFrame."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
def test_what_numpy_makes_an_array_of_keeps_its_dtype(name):
    table = Table(np.ones((2, 3), name))
    kept = reel.tensor(np.ones(1, name)).dtype
    for x in (reel.tensor(table), reel.asarray(table), reel.tensor([table, table])):
        assert x.dtype == kept
    assert reel.tensor(table, "c64").dtype == reel.c64
    assert reel.tensor([Table(np.ones(3, "f4")), np.ones(3)]).dtype == reel.f64


def test_data_frames_keep_their_dtype():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"dtype": [1.0, 2.0], "n": [1, 2]})
    assert reel.tensor(frame).dtype == reel.asarray(frame["dtype"]).dtype == reel.f64
    assert reel.tensor(frame.astype("f4")).dtype == reel.f32
    assert reel.tensor(frame[["n"]]).dtype == reel.i32


@pytest.mark.parametrize(
    "said, hint",
    [
        ("Got unsupported ScalarType BFloat16", ". Hint: convert it first, as by x.float()"),
        ("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.", ""),
        ("The numpy.ndarray conversion method __array__() was called on traced array", ""),
    ],
)
def test_the_hint_of_another_library_is_the_only_one(said, hint):
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            raise TypeError(said)

    for make in (reel.tensor, reel.asarray):
        with pytest.raises(reel.Error) as e:
            make(Foreign())
        assert str(e.value).startswith(f"[tensor] {said}{hint}") and ("Hint" in str(e.value)) == bool(hint)


def test_masked_elements_are_refused():
    x = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    for make in (reel.tensor, reel.asarray):
        for data in (x, [x, x], [1.0, [x]], (x[0], np.ma.masked)):
            with pytest.raises(reel.Error, match=r"1 of [13] elements are masked, and have no numbers. Hint: x.filled\(0\)"):
                make(data)
        assert make(x.filled(0)).tolist() == [1, 0, 3]
        assert make(x[::2]).tolist() == make(np.ma.array([1.0, 3.0])).tolist() == [1, 3]
    with pytest.raises(reel.Error, match="1 of 3 elements are masked"):
        reel.grad(reel.sum)(x)
    for compute in (lambda: reel.ones(3, "f64") + x, lambda: reel.ones(3, "f64") * x, lambda: reel.exp(x)):
        with pytest.raises(reel.Error, match="1 of 3 elements are masked"):
            compute()
    assert (reel.ones(2, "f64") + x[::2]).tolist() == [2, 4]


def test_from_dlpack_refuses_masked_elements():
    x = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    with pytest.raises(reel.Error, match=r"\[from_dlpack\] 1 of 3 elements are masked"):
        reel.from_dlpack(x)
    assert reel.from_dlpack(x[::2]).tolist() == [1, 3]
    whole = np.ma.array([1.0, 3.0], mask=False)
    shared = reel.from_dlpack(whole)
    whole[0] = 5
    assert shared.tolist() == [5, 3]


def test_masked_arrays_of_numpy_take_tensors_and_have_no_gradient():
    x, t = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]), reel.tensor([2.0, 2, 2], "f64")
    for y, expected in ((x * t, [2, None, 6]), (x + t, [3, None, 5]), (x - t, [-1, None, 1]), (x / t, [0.5, None, 1.5])):
        assert y.tolist() == expected
    for f in (lambda t: reel.sum(x * (t + 1)), lambda t: x / (t + 1), lambda t: x**t, lambda t: x < t):
        with pytest.raises(reel.Error, match=r"\[numpy.ma\] NumPy's masked arrays have no gradient.*Hint: reel.tensor\("):
            reel.grad(f)(t)
    assert reel.grad(lambda t: reel.sum(t * (x * reel.ones(3, "f64")).filled(0)))(t).tolist() == [1, 0, 3]


def test_numpy_takes_dtypes():
    for name in ("float32", "float64", "complex64", "complex128", "int32", "bool"):
        assert np.zeros(2, reel.zeros(2, name).dtype).dtype == name


def test_complex_numbers_of_python_take_the_precision_of_the_tensor():
    """In functions as by operators."""
    z, x, mask = reel.tensor([1 + 2j, 3]), reel.tensor([1.0, 2.0]), reel.tensor([True, False])
    assert z.dtype == reel.c64
    for t in (z, x):
        for y, expected in (
            (reel.add(t, 1j), t + 1j),
            (reel.subtract(1j, t), 1j - t),
            (reel.multiply(t, 1j), t * 1j),
            (reel.divide(1j, t), 1j / t),
            (reel.pow(t, 1j), t**1j),
            (reel.equal(t, 1j), t == 1j),
            (reel.not_equal(1j, t), t != 1j),
        ):
            assert y.dtype == expected.dtype and y.tolist() == expected.tolist()
    assert reel.where(mask, z, 1j).tolist() == [1 + 2j, 1j] and reel.where(mask, 1j, z).dtype == reel.c64
    assert reel.masked_fill(z, mask, 1j).tolist() == [1j, 3]
    assert reel.add(1j, 2).item() == reel.add(1j, 2 + 0j).item() == 2 + 1j
