"""Tensors: dtypes, sharing memory, indexing, and what they print."""

import array
import copy
import math
import operator
import ctypes
import pickle
import weakref

import numpy as np
import pytest

import reel

DTYPES = ["float32", "float64", "complex64", "complex128", "int32", "bool"]


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_are_shared_both_ways(name):
    a = np.arange(6).reshape(2, 3).astype(name)
    x = reel.from_dlpack(a)
    assert x.shape == (2, 3) and x.ndim == 2 and x.size == 6 and x.dtype == reel._reel._dtype(name)
    a[1, 2] = 0
    assert x[1, 2].item() == 0
    back = x.numpy()
    assert back.dtype == a.dtype and np.shares_memory(back, a) and not back.flags.writeable
    assert np.shares_memory(np.from_dlpack(x), a)
    copy = np.array(x)
    assert not np.shares_memory(copy, a) and np.array_equal(copy, a)


def test_memory_outlives_its_first_owner():
    a = np.arange(1000.0)
    x = reel.asarray(a)
    del a
    y = (x + 1).numpy()
    del x
    assert y[999] == 1000


@pytest.mark.parametrize(
    "make",
    [
        lambda a: a.T,
        lambda a: a[::2, ::-1],
        lambda a: np.broadcast_to(a[0], (2, 3, 4)),
        lambda a: a[:0],
        lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    ],
)
def test_what_cannot_be_shared_is_copied(make):
    a = make(np.arange(12.0).reshape(3, 4))
    x = reel.asarray(a)
    assert np.array_equal(x.numpy(), a) and x.shape == a.shape


def test_weak_references():
    x, seen = reel.ones(3), []
    reference = weakref.ref(x, lambda _: seen.append("gone"))
    assert reference() is x and not seen
    del x
    assert reference() is None and seen == ["gone"]


def test_read_only_arrays_are_copied():
    a = np.arange(3.0)
    a.flags.writeable = False
    assert not np.shares_memory(reel.asarray(a).numpy(), a)


def test_numbers_and_lists():
    assert reel.tensor([1, 2]).dtype == reel.i32
    assert reel.tensor([1, 2.5]).dtype == reel.f32
    assert reel.tensor(1j).dtype == reel.c64
    assert reel.tensor([True]).dtype == reel.bool_
    assert reel.tensor(np.arange(2.0)).dtype == reel.f64
    assert reel.tensor(np.arange(2, dtype=np.float16)).dtype == reel.f32
    assert reel.tensor([1, 2], dtype="f64").dtype == reel.f64
    assert reel.asarray(np.arange(3)).dtype == reel.i32  # 64-bit integers fit or are refused
    for bad in ([2**31], ["a"], [[1], [1, 2]], [None], object()):
        with pytest.raises(reel.Error):
            reel.tensor(bad)
    complex_numbers = [1j, 2]
    for bad in (complex_numbers, np.array(complex_numbers), reel.tensor(complex_numbers)):
        for make in (reel.tensor, reel.asarray, lambda x, d: reel.array_api.asarray(x, dtype=reel.f32)):
            with pytest.raises(reel.Error, match=r"complex numbers do not become float32. Hint: reel.real\(x\)"):
                make(bad, "f32")
    with pytest.raises(reel.Error, match="complex"):
        reel.array_api.full(2, reel.tensor(1j), dtype=reel.f32)


@pytest.mark.parametrize("number", [math.nan, math.inf, 1e10, 2147483648.0, -2147483649.0])
def test_numbers_that_do_not_fit_i32(number):
    for bad in ([number, 1.0], np.array([1.0, number]), np.float64(number)):
        for make in (reel.tensor, reel.asarray):
            with pytest.raises(reel.Error, match=r"i32 holds -2147483648..2147483647, got "):
                make(bad, "i32")
    ends = [-2147483648.0, 2147483647.0]
    assert reel.tensor(ends, "i32").tolist() == ends
    x = reel.tensor([1, 2])
    assert reel.asarray(x, "i32") is x


@pytest.mark.parametrize("given", ["f32", "float32", np.float32, np.dtype("float32"), reel.f32])
def test_names_of_dtypes(given):
    assert reel.zeros(2, given).dtype == reel.f32
    assert reel.zeros(2, dtype=float).dtype == reel.f64 and reel.zeros(2, dtype=bool).dtype == reel.bool_
    assert reel.zeros(2, dtype=complex).dtype == reel.c128 and reel.zeros(2, dtype=np.bool_).dtype == reel.bool_


@pytest.mark.parametrize(
    "given, words",
    [("f16", "f16"), (np.int64, "int64. Hint: i32"), (int, "int. Hint: i32"), ("int64", "int64. Hint: i32"), (3, "3")],
)
def test_dtypes_that_are_refused(given, words):
    x = reel.ones(2)
    rule = rf"\[dtype\] f32, f64, c64, c128, i32 or bool is expected, got {words} \(test_tensor.py:\d+\)"
    for f in (lambda d: reel.tensor([1], dtype=d), lambda d: reel.zeros(2, d), x.cast, lambda d: reel.asarray(x, d)):
        with pytest.raises(reel.Error, match=rule):
            f(given)


def test_functions_of_numpy():
    """They call the methods by NumPy's names, and the gradient goes through."""
    a = np.array([[1.0, 2, 3], [4, 5, 7]])
    x = reel.asarray(a)
    for f in (np.sum, np.mean, np.prod, np.max, np.min, np.var):
        for options in ({}, {"axis": 0}, {"axis": (0, 1)}, {"axis": 1, "keepdims": True}):
            y = f(x, **options)
            assert isinstance(y, reel.Tensor) and np.allclose(y.numpy(), f(a, **options), rtol=1e-12)
            assert np.shape(y) == np.shape(f(a, **options))
    assert np.var(x, ddof=1).item() == pytest.approx(np.var(a, ddof=1), rel=1e-12)
    assert np.any(x > 6, axis=0).tolist() == [False, False, True] and not np.all(x > 6)
    assert reel.grad(lambda x: np.sum(x * x))(x).tolist() == (2 * a).tolist()
    with pytest.raises(reel.Error, match=r"\[sum\] dtype and out must be None"):
        np.sum(x, out=a)


def test_an_array_that_must_not_be_copied():
    x = reel.ones(2)
    assert np.shares_memory(x.__array__(copy=False), x.numpy())
    assert not np.shares_memory(x.__array__(copy=True), x.numpy())
    assert x.__array__(np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="another dtype needs a copy"):
        x.__array__(np.float64, copy=False)


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        (1, 2),
        (0, 1, 2),
        slice(None),
        slice(1, 2),
        slice(None, None, -1),
        slice(None, None, 2),
        slice(3, 0, -2),
        (slice(None), 1),
        (..., 0),
        (0, ...),
        (..., slice(1, 3)),
        None,
        (None, 0),
        (slice(None), None, 1),
        (..., None),
        slice(5, 1),
        (slice(-2, None), slice(None), -1),
        np.int64(1),
        (1, ..., slice(None, None, 3)),
    ],
)
def test_indexing_is_numpys(key):
    a = np.arange(60.0).reshape(3, 4, 5)
    assert np.array_equal(reel.asarray(a)[key].numpy(), a[key])


def test_indexing_by_a_tensor():
    a, i = np.arange(12.0).reshape(3, 4), np.array([2, 0, 2], dtype=np.int32)
    x = reel.asarray(a)
    assert np.array_equal(x[reel.asarray(i)].numpy(), a[i])
    assert np.array_equal(x[:, i].numpy(), a[:, i])
    for bad in (3, (0, 4), -4):
        with pytest.raises(IndexError):
            x[bad]
    for bad in ((0, 0, 0), x > 2, "a", (..., ...), 1.0, (i, i)):
        with pytest.raises(reel.Error, match="test_tensor.py"):
            x[bad]
    with pytest.raises(reel.Error):
        x[reel.tensor([3])]


def test_iteration_and_length():
    x = reel.tensor([[1, 2], [3, 4]])
    assert len(x) == 2 and [row.tolist() for row in x] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError):
        len(reel.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        list(reel.tensor(1))


def test_values():
    assert reel.tensor(2.5).item() == 2.5 and isinstance(reel.tensor(2).item(), int)
    assert reel.tensor(1 + 2j).item() == 1 + 2j and reel.tensor(True).item() is True
    assert float(reel.tensor([2])) == 2 and int(reel.tensor(3)) == 3 and bool(reel.tensor(1)) and not reel.tensor(0)
    with pytest.raises(reel.Error, match=r"one element.*test_tensor.py:\d+"):
        reel.zeros(2).item()
    assert repr(reel.tensor([1.5, 2])) == "Tensor(f32 (2,) [1.5, 2])"


def test_formats_of_scalars():
    x = reel.tensor(1.23456)
    assert f"{x:.3f}" == "1.235" and f"{reel.tensor(7):4d}" == "   7" and f"{x}" == str(x)
    assert f"{reel.tensor(1 + 2j):.1f}" == "1.0+2.0j"
    with pytest.raises(reel.Error, match=r"\[format\] a format is for a scalar, got .3f for f32 \(2,\).*x.numpy()"):
        f"{reel.zeros(2):.3f}"


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2)])
def test_copies_and_pickles(name, shape):
    x = reel.asarray(np.ones(shape, name))
    for y in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x)), copy.deepcopy({"x": [x]})["x"][0]):
        assert y.dtype == x.dtype and y.shape == x.shape and np.array_equal(y.numpy(), x.numpy())
        assert x.size == 0 or not np.shares_memory(y.numpy(), x.numpy())


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        reel.tensor,
        reel.asarray,
        reel.from_dlpack,
        lambda x: reel.tensor(x, "f64").cast("f32"),
        lambda x: reel.tensor([x[0], x[1]]),
        lambda x: reel.tensor(([x[0], x[1]], [1, 1j])).real()[0],
        lambda x: reel.asarray([x, (0, True)])[0],
        reel.array_api.asarray,
        lambda x: reel.array_api.from_dlpack(x, copy=True),
    ],
)
def test_a_copy_in_a_gradient_keeps_it(copied):
    def f(x):
        y = copied(x)
        assert y.dtype == x.dtype and y.tolist() == x.tolist()
        return reel.sum(y * y * x)

    assert reel.grad(f)(reel.tensor([1.0, 2])).tolist() == [3, 12]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, reel.tensor, reel.asarray, reel.from_dlpack])
def test_a_copy_in_a_step_keeps_the_gradient(copied):
    def last(w):
        step = lambda h, x: (copied(copied(w) * h), None)  # noqa: E731
        return reel.sum(reel.scan(step, reel.ones(2), length=2)[0])

    assert reel.grad(last)(reel.tensor([1.0, 3])).tolist() == [2, 6]


def test_a_copy_of_a_constant_is_its_own():
    outside = reel.zeros(2)

    def f(x):
        inside = reel.zeros(2)
        copies = [make(y) for make in (copy.copy, reel.tensor) for y in (outside, inside)]
        outside.assign(reel.ones(2)), inside.assign(reel.ones(2))
        assert all(y.tolist() == [0, 0] for y in copies)
        return reel.sum(x)

    reel.grad(f)(reel.ones(2))


@pytest.mark.parametrize("dtype", [None, "f64", "c128", "i32"])
def test_lists_of_tensors_are_the_same_in_a_gradient(dtype):
    x = reel.tensor([1.5, -2.5], "f64")
    lists = [[x[0], 0.1], [x > 0, [False, True]], [x, np.ones(2)], [x[0], 1j], [[1, 2], reel.tensor([3, 4])]]
    found = []

    def f(y):
        for data in lists:
            try:
                made = reel.tensor(data, dtype)
                found.append((made.dtype, made.tolist()))
            except reel.Error as e:
                found.append(str(e))
        return reel.sum(y)

    f(x), reel.grad(f)(x)
    assert found[: len(lists)] == found[len(lists) :]


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
def test_lists_have_the_precision_of_what_is_in_them(name):
    a = np.array([0.1, 0.7]).astype(name)
    x = reel.tensor(a)
    wide = "c128" if name[0] == "c" else "f64"
    lists = [
        ([x[0], x[1]], a),
        ([a[0], a[1]], a),
        ([x, a], np.stack([a, a])),
        ([[x[0], 0.3], [a[1], 2]], np.array([[a[0], 0.3], [a[1], 2]])),
        ([x[0], np.float64(0.3)], np.array([a[0], np.float64(0.3)])),
    ]
    made = [reel.tensor(data) for data, _ in lists]
    assert [y.dtype for y in made] == [x.dtype] * 4 + [getattr(reel, wide)]

    def f(y):
        made.extend(reel.tensor(data) for data, _ in lists)
        return reel.sum(reel.tensor([y[0], 0.3]).cast("c128").real())

    assert reel.grad(f)(x).dtype == x.dtype
    for y, (_, expected) in zip(made, lists * 2):
        np.testing.assert_array_equal(y.numpy(), expected.astype(y.numpy().dtype))


def test_a_list_of_f64_is_a_state():
    x = reel.tensor([0.1, 0.7], "f64")
    step = lambda h, _: (reel.tensor([h[1], 0.1 * h[0]]), None)  # noqa: E731
    for loop in (reel.scan, reel.unroll):
        last = lambda h: reel.sum(loop(step, h, length=2)[0])  # noqa: E731,B023
        np.testing.assert_allclose(loop(step, x, length=2)[0].numpy(), 0.1 * x.numpy(), rtol=1e-15)
        np.testing.assert_allclose(reel.grad(last)(x).numpy(), [0.1, 0.1], rtol=1e-15)


def test_arrays_of_the_standard_library_and_of_pytorch_in_lists_keep_their_precision():
    assert reel.tensor([array.array("d", [0.1])]).tolist() == [[0.1]]
    assert reel.tensor([np.int64(2), 0.1]).dtype == reel.tensor([array.array("f", [1])]).dtype == reel.f32
    torch = pytest.importorskip("torch")
    assert reel.tensor([torch.tensor(0.1, dtype=torch.float64)]).tolist() == [0.1]


def test_arrays_that_are_refused():
    wide, other = np.array([1e300], np.longdouble), np.arange(3.0).astype(">f8")
    with pytest.raises(reel.Error, match=r"\[from_dlpack\] elements are f32, .* got >f8. Hint: convert"):
        reel.from_dlpack(other)
    assert reel.asarray(other).tolist() == [0, 1, 2]
    with pytest.raises(reel.Error, match=r"\[from_dlpack\] elements are f32, .* got float16. Hint: convert"):
        reel.from_dlpack(np.ones(2, np.float16))
    for x, name in (("a", "str"), (None, "NoneType")):
        with pytest.raises(reel.Error, match=rf"\[from_dlpack\] an array is expected, got {name}"):
            reel.from_dlpack(x)
    for make in (reel.tensor, reel.asarray):
        with pytest.raises(reel.Error, match=r"\[tensor\] data: numbers, lists .* got None"):
            make(None)
    if wide.dtype.itemsize > 8:
        for make in (reel.tensor, reel.asarray):
            with pytest.raises(reel.Error, match=r'\[tensor\] .*f64 or narrower, got \w+. Hint: dtype="f64"'):
                make(wide)
            with pytest.raises(reel.Error, match=r'c128 or narrower, got \w+. Hint: dtype="c128"'):
                make(wide * 1j)
            assert make(wide, dtype="f64").item() == 1e300


class Producer:
    """An array of another library, with whatever its __dlpack__ does."""

    def __init__(self, dlpack):
        self.dlpack = dlpack

    def __dlpack__(self, **options):
        return self.dlpack(**options)

    def __dlpack_device__(self):
        return 1, 0


def test_a_capsule_is_taken_once():
    for array in (np.arange(3.0), reel.tensor([0.0, 1, 2])):
        for source in (array.__dlpack__(), Producer(lambda capsule=array.__dlpack__(), **options: capsule)):
            x = reel.from_dlpack(source)
            with pytest.raises(reel.Error, match=r"\[from_dlpack\] an unused DLPack capsule is expected, .* gives none. Hint"):
                reel.from_dlpack(source)
            assert x.tolist() == [0, 1, 2]
    with pytest.raises(reel.Error, match="Producer gives none"):
        reel.from_dlpack(Producer(lambda **options: 3))


def test_what_a_producer_raises_passes_through():
    def refuse(**options):
        raise BufferError("Can't export tensors that require grad")

    with pytest.raises(BufferError, match="Can't export tensors"):
        reel.from_dlpack(Producer(refuse))
    with pytest.raises(TypeError, match="argument"):
        reel.from_dlpack(Producer(lambda needed: None))
    a = np.arange(3.0)
    old = reel.from_dlpack(Producer(lambda: a.__dlpack__()))  # of a library that knows no versions
    assert old.tolist() == [0, 1, 2] and np.shares_memory(old.numpy(), a)


def test_assign():
    x, y = reel.zeros(3), reel.ones(3)
    x.assign(y)
    assert x.tolist() == [1, 1, 1] and x.version == 1
    with pytest.raises(reel.Error, match="cannot replace"):
        x.assign(reel.zeros(2))


def test_arrays_stand_for_tensors():
    a = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    x = reel.tensor(a)
    assert reel.Tensor(a).tolist() == reel.Tensor([[0, 1, 2], [3.0, 4, 5]]).tolist() == x.tolist()
    assert reel.stack([a, x]).numpy().tolist() == np.stack([a, a]).tolist()
    assert reel.concat([x, a, a], 1).numpy().tolist() == np.concatenate([a, a, a], 1).tolist()
    y = reel.zeros((2, 3))
    y.assign(a)
    a[:] = 7  # what was given is copied
    assert y.tolist() == x.tolist()
    cell = reel.cell("gru", 3, 4, seed=1)
    sequence = np.ones((5, 2, 3), np.float32)
    outputs, state = cell.run(sequence, lengths=np.array([5, 2]))
    expected, last = cell.run(reel.tensor(sequence), lengths=reel.tensor([5, 2]))
    assert outputs.tolist() == expected.tolist()
    assert cell.step([s.numpy() for s in state], sequence[0])[0].tolist() == cell.step(last, x * 0 + 1)[0].tolist()
    with pytest.raises(reel.Error, match=r"f64 \(2, 3\) cannot replace f32 \(2, 3\)"):
        y.assign(np.ones((2, 3)))
    for given in (np.array(["a"]), [[1.0, 2, 3]] * 2, None):
        with pytest.raises(TypeError):
            y.assign(given)


def test_functions_of_numbers():
    for f in ("exp", "log", "tanh", "abs", "sqrt", "conj", "angle"):
        y = getattr(reel, f)(0.5)
        assert y.shape == () and y.dtype == reel.f32
        np.testing.assert_allclose(y.numpy(), getattr(np, f)(0.5), rtol=1e-6)
    assert abs(reel.exp(1j).item() - np.exp(1j)) < 1e-15


def test_operators_with_arrays_and_numbers():
    a = np.array([1.0, 2.0, -3.0])
    x = reel.asarray(a)
    for mixed, expected in (
        (x + a, a + a),
        (a + x, a + a),
        (2 - x, 2 - a),
        (x / 2, a / 2),
        (2 / x, 2 / a),
        (x * 2j, a * 2j),
        (x**2, a**2),
        (x % 2, a % 2),
        (x // 2, a // 2),
        (-x, -a),
        (abs(x), abs(a)),
        (np.float32(2) * x, 2 * a),
        (x * np.float64(3), 3 * a),
        (x @ x, a @ a),
    ):
        assert isinstance(mixed, reel.Tensor)
        np.testing.assert_allclose(mixed.numpy(), expected, rtol=1e-12)
    assert (x > 0).tolist() == [True, True, False] and (x == a).tolist() == [True] * 3
    assert (~(x > 0) | (x > 1)).tolist() == [False, True, True]
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        x + None


@pytest.mark.parametrize(
    "given", [np.array([1.0, 2.0, 3.0]), np.float64(0.1), np.float32(2), np.array(0.1), np.ones((2, 1))]
)
def test_operators_with_numpy_on_the_left(given):
    """NumPy asks the tensor, so the result is a tensor, with its gradient."""
    a = np.array([0.1, 2.0, -3.0], np.float32)
    x = reel.asarray(a)
    names = "add sub mul truediv floordiv mod pow lt le gt ge eq ne".split()
    for name in names:
        y = getattr(operator, name)(given, x)
        swapped = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}.get(name)
        other = given[()] if swapped and given.ndim == 0 else given
        expected = getattr(operator, swapped)(x, other) if swapped else getattr(x, f"__r{name}__")(given)
        assert isinstance(y, reel.Tensor) and y.dtype == expected.dtype, name
        np.testing.assert_array_equal(y.numpy(), expected.numpy())
    assert (np.eye(3) @ x.cast("f64")).tolist() == x.cast("f64").tolist()
    assert reel.grad(lambda x: reel.sum(given * x))(x).shape == (3,)
    assert (np.array([True, False]) & reel.tensor([True, True])).tolist() == [True, False]
    assert isinstance(np.ones(3) ** reel.full((), 2, "f64"), reel.Tensor)


def test_functions_of_numpy_that_take_no_tensor():
    x = reel.ones(3)
    for call, words in (
        (lambda: np.log10(x), r"\[log10\] NumPy's function takes no tensor of Reel. Hint: reel.log, or x.numpy\(\)"),
        (lambda: np.isnan(x), "Hint: reel.is_nan, or"),
        (lambda: np.exp(x), "Hint: reel.exp, or"),
        (lambda: np.spacing(x), r"Hint: x.numpy\(\)"),
        (lambda: np.add.reduce(x), r"Hint: x.numpy\(\)"),
        (lambda: np.add(np.ones(3), x, out=np.ones(3)), r"of a tensor, as for array \+= tensor. Hint"),
        (lambda: np.ones(3).__iadd__(x), r"Hint: array = array \+ tensor, or x.numpy\(\)"),
    ):
        with pytest.raises(reel.Error, match=words + r".*test_tensor.py:\d+"):
            call()
    assert np.add(np.ones(3, np.float32), x).tolist() == [2, 2, 2] and np.log10(np.asarray(x)).tolist() == [0, 0, 0]
    with pytest.raises(TypeError):
        np.array(["a", "b", "c"], dtype=object) + x
    assert (np.array(["a", "b", "c"]) == x) is False and (np.array(["a", "b", "c"]) != x) is True


def test_a_dtype_equals_its_name():
    for d in reel.DType:
        name = "bool" if d == reel.bool_ else d.name
        assert d == name and name == d and not d != name and hash(d) == hash(name) and {name: 1}[d] == 1
        assert d != "no" and d != 3 and d is not None and [d != e for e in reel.DType].count(False) == 1
        assert pickle.loads(pickle.dumps(d)) is d
    assert reel.ones(3).dtype == "f32" and reel.ones(3).dtype != "f64" and reel.ones(3).dtype in ("f32", "f64")


def test_buffers_without_strides():
    numbers = (ctypes.c_double * 3)()
    assert reel.from_dlpack(numbers).numpy().tolist() == [0, 0, 0] and (reel.ones(1) + numbers).dtype == reel.f64
    for moment in (np.datetime64("2020", "D"), np.timedelta64(3, "D")):
        with pytest.raises((reel.Error, TypeError)):
            reel.ones(1) + moment
        with pytest.raises(reel.Error, match="elements are f32"):
            reel.from_dlpack(moment)


def test_arrays_of_the_standard_library_keep_their_dtype():
    given = array.array("d", [1, 2])
    assert reel.tensor(given).dtype == reel.from_dlpack(given).dtype == (reel.ones(1) + given).dtype == reel.f64
    assert reel.tensor(array.array("f", [1])).dtype == reel.tensor([1.0]).dtype == reel.f32


def test_operands_of_other_dtypes_are_copied_as_by_tensor():
    i = np.arange(2)
    for x in (reel.arange(2) + i, i + reel.arange(2), reel.add(i, reel.arange(2))):
        assert x.dtype == reel.i32 and x.numpy().tolist() == [0, 2]
    assert reel.embedding(i, reel.ones((3, 2))).shape == (2, 2)
    assert (reel.ones(2) + np.ones(2, "f2")).dtype == reel.f32
    with pytest.raises(reel.Error, match="i32 holds .*, got 1099511627776 at element 0"):
        reel.arange(1) + np.array([2**40])
    with pytest.raises(reel.Error, match="elements are f64 or narrower"):
        reel.ones(1) + np.ones(1, np.longdouble)


def test_indices_from_the_end():
    x = reel.tensor([1.0, 2, 3])
    assert x[reel.tensor([-1, 0])].numpy().tolist() == [3, 1] and x[np.array([[-3]])].numpy().tolist() == [[1]]
    assert reel.grad(lambda x: reel.sum(x[reel.tensor([-1, -1])]))(x).numpy().tolist() == [0, 0, 2]
    with pytest.raises(IndexError, match="index -4 is not in an axis of 3"):
        x[reel.tensor([0, -4])]


def test_arrays_of_jax_are_copied():
    """They never change, but their DLPack capsules, of the kind without a version, do not say so."""

    class Array:
        def __init__(self):
            self.memory = np.arange(4, dtype=np.float32)

        def __dlpack__(self, **_):
            return self.memory.__dlpack__()

        def __dlpack_device__(self):
            return self.memory.__dlpack_device__()

    ours, theirs = Array(), Array()
    theirs.__class__ = type("ArrayImpl", (Array,), {"__module__": "jaxlib._jax"})
    for array in (ours, theirs):
        reel.from_dlpack(array).assign(reel.zeros(4))
    assert ours.memory.tolist() == [0, 0, 0, 0] and theirs.memory.tolist() == [0, 1, 2, 3]
