"""Ops against NumPy, and what is declared against what is bound."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import reel

ROOT = Path(__file__).resolve().parents[2]
rng = np.random.default_rng(0)
A = rng.normal(size=(4, 4))
X = rng.uniform(0.1, 0.9, size=(3, 4))
Z = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))
I = np.array([2, 0, 1], dtype=np.int32)
STACK = np.random.default_rng(1).normal(size=(3, 4, 4))
MANY = np.random.default_rng(2).normal(size=(2, 1, 4, 4)) + 3 * np.eye(4)

CASES = {
    "exp": (np.exp, X),
    "log": (np.log, X),
    "sqrt": (np.sqrt, X),
    "tanh": (np.tanh, X),
    "sin": (np.sin, X),
    "asin": (np.arcsin, X),
    "floor": (np.floor, 5 * A),
    "round": (np.round, 5 * A),
    "abs": (np.abs, Z),
    "conj": (np.conj, Z),
    "imag": (np.imag, Z),
    "angle": (np.angle, Z),
    "real": (np.real, Z),
    "relu": (lambda x: np.maximum(x, 0), A),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), A),
    "square": (np.square, A),
    "sum": (np.sum, A),
    "prod": (np.prod, X),
    "max": (np.max, A),
    "mean": (np.mean, A),
    "var": (np.var, A),
    "std_dev": (np.std, A),
    "argmax": (lambda x: np.argmax(x, -1), A),
    "cumsum": (lambda x: np.cumsum(x, -1), A),
    "cumprod": (lambda x: np.cumprod(x, -1), Z),
    "cummax": (lambda x: np.maximum.accumulate(x, -1), A),
    "cummin": (lambda x: np.minimum.accumulate(x, -1), A),
    "logcumsumexp": (lambda x: np.logaddexp.accumulate(x, -1), A),
    "argsort": (np.argsort, A),
    "sort": (np.sort, A),
    "transpose": (np.transpose, X),
    "flip": (lambda x: np.flip(x, -1), X),
    "tril": (np.tril, A),
    "triu": (np.triu, A),
    "diag": (np.diag, A),
    "inverse": (np.linalg.inv, A),
    "det": (np.linalg.det, A),
    "pinv": (np.linalg.pinv, X),
    "fft": (np.fft.fft, Z),
    "ifft": (np.fft.ifft, Z),
    "rfft": (np.fft.rfft, X),
    "fft2": (np.fft.fft2, Z),
    "eigvals": (np.linalg.eigvals, A),
    "norm": (np.linalg.norm, A),
    "zeros_like": (np.zeros_like, A),
    "matrix_trace": (np.trace, A),
    "softmax": (lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), A),
    "isnan": None,
}
del CASES["isnan"]


@pytest.mark.parametrize("name", CASES)
def test_one_argument(name):
    expected, x = CASES[name]
    found = getattr(reel, name)(reel.asarray(x)).numpy()
    want = expected(x)
    if name == "eigvals":
        found, want = np.sort_complex(found), np.sort_complex(want)
    np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "found, expected",
    [
        (lambda: reel.sum(X, 0), X.sum(0)),
        (lambda: reel.sum(X, [-1], keep_dims=True), X.sum(-1, keepdims=True)),
        (lambda: reel.max(X, (0, 1)), X.max()),
        (lambda: reel.asarray(X).mean(1), X.mean(1)),
        (lambda: reel.reshape(X, (2, -1)), X.reshape(2, -1)),
        (lambda: reel.permute(X, (1, 0)), X.T),
        (lambda: reel.concat([reel.asarray(X), reel.asarray(X)], 1), np.concatenate([X, X], 1)),
        (lambda: reel.stack([reel.asarray(X), reel.asarray(X)]), np.stack([X, X])),
        (lambda: reel.where(X > 0.5, X, 0), np.where(X > 0.5, X, 0)),
        (lambda: reel.clamp(X, 0.3, 0.6), X.clip(0.3, 0.6)),
        (lambda: reel.index_select(X, 0, I), X[I]),
        (lambda: reel.one_hot(I, 3, "f64"), np.eye(3)[I]),
        (lambda: reel.matmul(A, A, transpose_b=True), A @ A.T),
        (lambda: reel.linear(X, A), X @ A.T),
        (lambda: reel.linear(X, A, A[0]), X @ A.T + A[0]),
        (lambda: reel.outer(A[0], A[1]), np.outer(A[0], A[1])),
        (lambda: reel.einsum("ij,kj->ik", X, A), X @ A.T),
        (lambda: reel.einsum("ii", A), np.trace(A)),
        (lambda: reel.einsum("...ij,kj", STACK, A), np.einsum("...ij,kj", STACK, A)),
        (lambda: reel.einsum("...i->...", STACK), STACK.sum(-1)),
        (lambda: reel.einsum("ij,ik,ikl->i", X, X, STACK), np.einsum("ij,ik,ikl->i", X, X, STACK)),
        (lambda: reel.einsum("ij,kj,kl", A, A, A), A @ A.T @ A),
        (lambda: reel.einsum("ii,jk,kl,lm->mj", A, A, A, A), np.trace(A) * (A @ A @ A).T),
        (lambda: reel.einsum("...ij,...jk,ki", STACK, STACK, A), np.einsum("...ij,...jk,ki", STACK, STACK, A)),
        (lambda: reel.matmul(STACK, MANY), STACK @ MANY),
        (lambda: reel.asarray(MANY) @ A, MANY @ A),
        (lambda: reel.solve(MANY, STACK), np.linalg.solve(MANY, STACK[None])),
        (lambda: reel.solve(A, X.T), np.linalg.solve(A, X.T)),
        (lambda: reel.svd(A).S, np.linalg.svd(A)[1]),
        (lambda: abs(reel.qr(A).R), abs(np.linalg.qr(A)[1])),
        (lambda: reel.eigh(A + A.T).values, np.linalg.eigvalsh(A + A.T)),
        (lambda: reel.slogdet(A).log_abs, np.linalg.slogdet(A)[1]),
        (lambda: reel.pow(X, A[:3]), X ** A[:3]),
        (lambda: reel.atan2(A, A.T), np.arctan2(A, A.T)),
        (lambda: reel.maximum(X, 0.5), np.maximum(X, 0.5)),
        (lambda: reel.roll(X, 1), np.roll(X, 1, -1)),
        (lambda: reel.pad(X, 0, 1, 2), np.pad(X, ((1, 2), (0, 0)))),
        (lambda: reel.tile(X, (2, 1)), np.tile(X, (2, 1))),
        (lambda: reel.repeat(X, 2, 0), np.repeat(X, 2, 0)),
        (lambda: reel.split(X, 2)[1], X[:, 2:]),
        (lambda: reel.linspace(0, 1, 5, "f64"), np.linspace(0, 1, 5)),
        (lambda: reel.full((2, 2), 3j, "c128"), np.full((2, 2), 3j)),
        (lambda: reel.eye(3), np.eye(3)),
        (lambda: reel.arange(4), np.arange(4)),
        (lambda: reel.irfft(np.fft.rfft(X)), X),
        (lambda: reel.istft(reel.stft(np.ones(64), 16), 16), np.ones(64)),
        (lambda: reel.mse(X, 0 * X, reduction="sum"), (X**2).sum()),
        (lambda: reel.huber_loss(X, 0 * X, 0.5), np.where(X < 0.5, X**2 / 2, 0.5 * (X - 0.25)).mean()),
        (lambda: reel.mse(X, 0 * X, weight=reel.asarray(X)), (X**3).sum() / X.sum()),
        (
            lambda: reel.cross_entropy(A, np.array([0, 1, 2, 3], np.int32)),
            -np.log(np.diag(np.exp(A) / np.exp(A).sum(1, keepdims=True))).mean(),
        ),
    ],
)
def test_more_arguments(found, expected):
    np.testing.assert_allclose(found().numpy(), expected, rtol=1e-10, atol=1e-12)


def test_random_numbers_repeat():
    a, b = (reel.normal((1000,), seed=3, stream=s).numpy() for s in (0, 1))
    assert np.array_equal(a, reel.normal((1000,), seed=3).numpy()) and not np.array_equal(a, b)
    assert abs(a.mean()) < 0.1 and abs(a.std() - 1) < 0.1
    assert sorted(reel.permutation(5, seed=1).tolist()) == [0, 1, 2, 3, 4]
    assert set(reel.integers((100,), 2, 4, seed=1).tolist()) == {2, 3}
    assert 0 < reel.bernoulli((100,), 0.5, seed=1).numpy().sum() < 100
    assert reel.uniform((3,), 2, 3, seed=1).numpy().min() >= 2


# Ops of the headers that Python has by another name, or not, and why.
ELSEWHERE = {
    "constant": "scalars are Python's numbers",
    "share": "the derivative of maximum",
    "numpy_permutation": "NumPy has it",
    "exchange": "of rotation layers, which are not bound",
    "rotate": "of rotation layers, which are not bound",
}


def test_every_declared_op_is_bound():
    declared = set()
    for header in ("ops", "fourier", "linalg", "rotation", "spectral"):
        text = (ROOT / "ops" / f"{header}.h").read_text()
        declared |= set(re.findall(r"^(?:Tensor|Tensors|\w+Result|Lu|Qr|SignAndLog) (\w+)\(", text, re.M))
    declared -= {"operator"}
    text = (ROOT / "ops/functors/names.h").read_text()
    declared |= {name for _, name in re.findall(r"X\((\w+), (\w+)\)", text)}
    assert len(declared) > 150
    assert {name for name in declared if not hasattr(reel, name)} == set(ELSEWHERE)


def test_every_function_says_what_it_does():
    functions = [f for name, f in vars(reel).items() if callable(f) and not name.startswith("_")]
    assert len(functions) > 170
    for f in functions:
        text = (f.__doc__ or "").split("\n\n")[-1].strip()
        assert len(text) > 2, f


def test_docstrings_stand_alone():
    """They refer to nothing that help() does not show, and name the arguments that there are."""
    functions = {name: f for name, f in vars(reel._reel).items() if callable(f) and not isinstance(f, type)}
    said = {name: f.__doc__ for name, f in functions.items() if name[0] != "_"}
    assert len(said) > 170
    for name, text in said.items():
        words = text.split("\n\n", 1)[-1]
        assert not re.search(r"^(The same (for|times)|Throws|For bool)|that product|formula above|Tensor::", words), name
        assert set(re.findall(r"`(\w+)`", words)) <= set(re.findall(r"(\w+): ", text)), name
    for name, words in (
        ("affine", r"\n\nscale x \+ shift"),
        ("pow", r"\n\na\^b, real"),
        ("warm_spectral_radius", r"\n\nspectral_radius\(A\), equal"),
        ("triangular_solve", "X with A X = B"),
        ("householder_apply", r"householder_product\(U\)"),
        ("householder_product", "columns of A"),
        ("polar", r"a e\^\(i b\)"),
        ("complex", r"a \+ i b"),
        ("skew", "triangle of A"),
        ("irfft", r"parts of x\[0\]"),
    ):
        assert re.search(words, said[name]), name


def test_reshape_fills_in_one_extent():
    assert reel.reshape(reel.ones(6), (2, -1)).shape == (2, 3)
    with pytest.raises(reel.Error, match=r"\[reshape\] -1 can stand for one extent, but 0 and 2 are -1; got f32 \(6,\)"):
        reel.reshape(reel.ones(6), (-1, 3, -1))


def test_a_warm_spectral_radius_follows_the_matrix():
    n = 256
    T = rng.normal(size=(n, n)) / 16
    leading = reel.leading_columns(n)
    for _ in range(4):
        T = T + 1e-4 * rng.normal(size=(n, n))
        expected = np.abs(np.linalg.eigvals(T)).max()
        assert reel.warm_spectral_radius(T, leading).item() == pytest.approx(expected, rel=1e-12)
        assert reel.warm_spectral_radius(T, None).item() == pytest.approx(expected, rel=1e-12)
    assert reel.leading_columns(64) is None


def test_reductions_take_both_spellings():
    x = reel.asarray(A)
    for name in ("sum", "mean", "prod", "max", "min", "var", "std_dev", "norm", "logsumexp"):
        f, method = getattr(reel, name), getattr(x, name)
        expected = f(x, axes=0, keep_dims=True).numpy()
        assert expected.shape == (1, 4)
        for found in (f(x, axis=0, keepdims=True), method(axis=0, keepdims=True), method(axes=0, keep_dims=True)):
            np.testing.assert_array_equal(found.numpy(), expected)
        if name != "norm":  # whose second argument is p
            for found in (f(x, 0, keepdims=True), method(0, keepdims=True), f(x, 0, True)):
                np.testing.assert_array_equal(found.numpy(), expected)
        np.testing.assert_array_equal(f(x, axis=1).numpy(), f(x, axes=1).numpy())
    assert reel.any(x > 0, axis=0).shape == reel.all(x > 0, axis=(0,)).shape == (4,)
    for name in ("sum", "mean", "prod", "max", "min", "logsumexp"):  # no axis: each element by itself
        for found in (getattr(reel, name)(x, ()), getattr(x, name)(axis=(), keepdims=True)):
            np.testing.assert_allclose(found.numpy(), A, rtol=1e-15)
    np.testing.assert_allclose(reel.norm(x, 2, ()).numpy(), abs(A), rtol=1e-15)
    np.testing.assert_array_equal(reel.var(x, axis=()).numpy(), 0 * A)
    np.testing.assert_array_equal(np.sum(x, axis=()).numpy(), A)
    assert reel.any(x > 0, axis=()).tolist() == (A > 0).tolist() and reel.sum(reel.tensor(3.0), ()).item() == 3
    np.testing.assert_allclose(reel.std_dev(x, axis=0, ddof=1).numpy(), A.std(0, ddof=1), rtol=1e-12)
    assert reel.squeeze(reel.ones((1, 3, 1)), axis=0).shape == (3, 1)
    for ones in (reel.squeeze(reel.ones((1, 3, 1)), []), reel.ones((1, 3, 1)).squeeze(axis=())):
        assert ones.shape == (1, 3, 1) and ones.squeeze(None).shape == ones.squeeze().shape == (3,)
    assert reel.grad(lambda x: reel.sum(reel.mean(x, axis=0)))(x).tolist() == [[0.25] * 4] * 4
    assert "None | None" not in reel.sum.__doc__ and "axes: int" in reel.sum.__doc__


def test_any_and_all_of_nothing():
    nothing = reel.zeros((0, 3), dtype="bool")
    assert reel.all(nothing, [0]).cast("i32").tolist() == [1, 1, 1]  # as np.all
    assert reel.any(nothing, [0]).cast("i32").tolist() == [0, 0, 0]


def test_stack_along_any_axis():
    parts = [X, 2 * X, 3 * X, 4 * X, 5 * X]
    for axis in (0, 1, 2, -1, -3):
        np.testing.assert_array_equal(reel.stack([reel.asarray(p) for p in parts], axis).numpy(), np.stack(parts, axis))
    with pytest.raises(reel.Error, match=r"axis.*test_ops.py:\d+"):
        reel.stack([reel.ones(2)], axis=2)


@pytest.mark.parametrize("bad", [-1, 2**64, 1.5, "a", True])
def test_seeds_that_are_refused(bad):
    for call in (
        lambda: reel.normal(3, seed=bad),
        lambda: reel.uniform(3, seed=1, stream=bad),
        lambda: reel.cell("gru", 2, 3, seed=bad),
    ):
        with pytest.raises(reel.Error, match=r"seed and stream are integers from 0 to 2\^64 - 1, got .*test_ops.py:\d+"):
            call()
    assert reel.normal(3, seed=np.int64(2**62)).shape == reel.normal(3, seed=2**64 - 1).shape


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_an_element_does_not_depend_on_its_neighbours(name, dtype):
    f = getattr(reel, name)
    x = (np.random.default_rng(0).uniform(-1, 1, 512) * np.tile([1, 100, 500, 1e7], 128)).astype(dtype)
    alone = np.array([f(reel.tensor(x[i : i + 1])).numpy()[0] for i in range(512)])
    assert np.array_equal(f(reel.tensor(x)).numpy(), alone)


def test_floor_division_and_remainder_are_those_of_numpy():
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        a = np.concatenate([rng.normal(size=500), rng.integers(-99, 99, 500) * 0.1, [1, -1, 1e8, 1e10, 0, -0.0, 3]])
        b = np.concatenate([rng.normal(size=500), np.full(500, 0.1), [0.1, 0.1, 0.1, 3, 2, 2, np.inf]])
        a, b = a.astype(dtype), b.astype(dtype)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal((reel.tensor(a) // reel.tensor(b)).numpy(), a // b)
            np.testing.assert_array_equal((reel.tensor(a) % reel.tensor(b)).numpy(), a % b)
    a = np.array([-1, 1, -1, 1, 0.0, -29812660], "float32")
    b = np.array([np.inf, np.inf, -np.inf, -np.inf, -np.inf, 0.9922347664833069], "float32")
    assert (reel.tensor(a) // reel.tensor(b)).tolist() == [-1, 0, 0, -1, 0, -30045976]
    assert (reel.tensor(a[:2], "f64") // math.inf).tolist() == [-1, 0]
    for dtype in ("float32", "float64"):  # zeros have signs; a - a % b overflows
        a = np.array([-1, -3, 0.0, -0.0, 2, 0.9 * np.finfo(dtype).max], dtype)
        b = np.array([-1e20, -np.inf, -5, 5, 1e20, -0.7 * np.finfo(dtype).max], dtype)
        y = (reel.tensor(a) // reel.tensor(b)).numpy()
        np.testing.assert_array_equal(y, a // b)
        np.testing.assert_array_equal(np.signbit(y), np.signbit(a // b))
    assert (1 / (reel.tensor([0.0]) // 1)).item() == math.inf and (7.5 // reel.tensor([2.0])).tolist() == [3.0]


def test_long_dot_products_are_accurate():
    x = np.random.default_rng(0).random(1_000_000, "float32")
    exact = np.dot(x.astype("float64"), x.astype("float64"))
    t, rows = reel.tensor(x), reel.tensor(np.stack([x, x, x]))
    for y in (reel.dot(t, t), reel.vdot(t, t), reel.einsum("i,i->", t, t), reel.matmul(rows, t)[1]):
        assert abs(y.item() / exact - 1) < 1e-6


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: reel.uniform(2, 0, 1e39, seed=1), r"\[uniform\] the bounds must be finite in f32, .* got 0 and 1e\+39"),
        (lambda: reel.uniform(2, -3e38, 3e38, seed=1), r"\[uniform\] .* finite in f32"),
        (lambda: reel.normal(2, 0, 1e39, seed=1), r"\[normal\] .* finite in f32, got 0 and 1e\+39"),
        (lambda: reel.pinv(reel.ones((2, 2)), math.nan), r"\[pinv\] rcond is a number, got nan"),
        (
            lambda: reel.triangular_solve(reel.ones((2, 2)), reel.ones((2, 2)), tolerance=math.nan),
            r"\[triangular_solve\] tolerance is a number, got nan",
        ),
        (lambda: reel.eye(2**31), r"\[eye\] a tensor has at most 2.58 elements.*test_ops.py"),
        (lambda: reel.linspace(0, 1, 2**62), r"\[linspace\] a tensor has at most 2.58 elements.*test_ops.py"),
        (lambda: reel.tensor([1.0]) // reel.tensor([2]), r"\[floor_divide\] both sides must have one dtype"),
    ],
)
def test_options_that_are_refused(call, words):
    with pytest.raises(reel.Error, match=words):
        call()
    assert reel.uniform(2, 0, 1e39, seed=1, dtype="f64").numpy().max() > 1e37


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda i: i // 0, r"\[floor_divide\] the divisor of integers is not 0, got 0"),
        (lambda i: i % reel.tensor([1, 0]), r"\[remainder\] .* got 0 at element 1"),
        (lambda i: 5 // (i - 7), r"\[floor_divide\] .* got 0 at element 0"),
        (lambda i: i**-2, r"\[pow\] the exponent of integers is 0 or more, got -2"),
        (lambda i: 0 ** (i - 9), r"\[pow\] .* got -2 at element 0"),
        (lambda i: i**40, r"\[pow\] the result must fit i32, got .* at element 0. Hint"),
        (lambda i: reel.tensor(-(2**31)) // -1, r"\[floor_divide\] the result must fit i32, got 2147483648"),
    ],
)
def test_integers_without_a_result(call, words):
    with pytest.raises(reel.Error, match=words):
        call(reel.tensor([7, 8]))
    assert (reel.tensor([-2]) ** 31).numpy().tolist() == [-(2**31)]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda i, v: 12 // i, r"\[floor_divide\] the divisor of integers is not 0, got 0; in step 2 of scan"),
        (lambda i, v: 12 % i, r"\[remainder\] .* got 0; in step 2 of scan"),
        (lambda i, v: 2**i, r"\[pow\] the exponent of integers is 0 or more, got -1; in step 3 of scan"),
        (lambda i, v: 10 ** (10 - i), r"\[pow\] the result must fit i32, got 10000000000; in step 2 of"),
        (lambda i, v: (-(2**31) + 2 - i) // -1, r"\[floor_divide\] the result must fit i32, got 2147483648; in step 0 of"),
        (lambda i, v: reel.full(2, v / 2, "i32"), r"\[full\] an i32 is an integer .* got 1.5; in step 0 of"),
        (lambda i, v: reel.full_like(i, 1e9 * v), r"\[full_like\] an i32 is .* got 3000000000; in step 0 of"),
        (lambda i, v: reel.tensor(1e9 * v, "i32"), r"\[tensor\] i32 holds .* got 3000000000; in step 0 of"),
    ],
)
def test_a_step_checks_its_integers_as_it_runs(call, words):
    def step(i, _):
        return i - 1, call(i, reel.tensor(i, "f64"))

    with pytest.raises(reel.Error, match=words):
        reel.scan(step, reel.tensor([3, 2]), length=9)


@pytest.mark.parametrize("call", [lambda i: i // 3, lambda i: i % 3, lambda i: -20 // i, lambda i: -20 % i, lambda i: i**3])
def test_integers_of_a_step(call):
    def step(i, x):
        return i + 1, (call(i), call(x))

    start, xs = reel.tensor([1, 5]), reel.tensor([[1, 2], [3, 4], [5, 6]])
    looped, unrolled = reel.scan(step, start, xs), reel.unroll(step, start, xs)
    for a, b in zip(looped[1], unrolled[1]):
        assert a.dtype == "i32" and a.tolist() == b.tolist()
    i = np.array([1, 5])
    assert unrolled[1][0].tolist() == [[int(v) for v in call(i + t)] for t in range(3)]


def test_functions_of_integers_are_those_of_the_operators():
    i = reel.tensor([-7, 7])
    assert reel.remainder(i, 3).tolist() == (i % 3).tolist() == [2, 1]
    assert reel.pow(i, 2).tolist() == (i**2).tolist() == [49, 49]
    assert reel.remainder(i, 3).dtype == reel.pow(i, 2).dtype == "i32"


def test_reductions_over_no_axes_have_all_axes():
    x = reel.uniform((2, 1, 2, 1, 2, 1, 2, 3), seed=1)
    assert reel.sum(x, ()).tolist() == reel.max(x, ()).tolist() == x.tolist()
    assert reel.grad(lambda x: reel.sum(reel.sum(x, ())))(x).tolist() == reel.ones(x.shape).tolist()


@pytest.mark.parametrize("call", [lambda b: b & 1.5, lambda b: b | 2, lambda b: 2 ^ b, lambda b: b == 2])
def test_numbers_that_are_no_bool(call):
    b = reel.tensor([True, False])
    with pytest.raises(reel.Error, match="neither True nor False, and the tensor is bool"):
        call(b)
    assert (b & True).numpy().tolist() == [True, False] and (1 ^ b).numpy().tolist() == [False, True]


def test_lists_as_indices_and_extents_as_arguments():
    x = reel.reshape(reel.arange(12, "f32"), (3, 4))
    a = x.numpy()
    for key in ([0, 2], [[0, 1], [2, 2]], [-1]):
        assert np.array_equal(x[key].numpy(), a[key]) and np.array_equal(x[:, key].numpy(), a[:, key])
    assert reel.grad(lambda x: reel.sum(x[[0, 0, 2]]))(x).numpy()[:, 0].tolist() == [2, 0, 1]
    with pytest.raises(reel.Error, match="an i32 tensor or a list"):
        x[[0.5]]
    assert x[[]].shape == (0, 4) and x[:, []].shape == (3, 0)
    y = reel.reshape(reel.arange(120, "f32"), (2, 3, 4, 5))
    i, none = [[1, 1, 0]], None
    for key in (
        np.s_[0, :, i], np.s_[0, ..., i], np.s_[i, :, 0], np.s_[:, 0, :, i], np.s_[0, none, i], np.s_[none, 0, ..., i],
        np.s_[:, 0, i], np.s_[:, i, 0], np.s_[..., i, 0], np.s_[0, i, :], np.s_[:, 0, none, i], np.s_[0, 1, ..., 2, i],
        np.s_[[], :, 0], np.s_[:, :, 0, i], np.s_[1, i, none, 2], np.s_[:, 0, :, 1], np.s_[0, :, [2]],
    ):  # fmt: skip
        np.testing.assert_array_equal(y[key].numpy(), y.numpy()[key])
    assert np.array_equal(x.reshape(2, 6).numpy(), a.reshape(2, 6)) and x.reshape(2, -1, 3).shape == (2, 2, 3)
    assert x.reshape(12).shape == x.reshape((12,)).shape == (12,)


def test_two_numbers_are_no_operands():
    with pytest.raises(reel.Error, match=r"\[where\] at least one operand must be a tensor. Hint: full_like"):
        reel.where(reel.ones(3) > 0, 1.0, 0.0)


def test_power_takes_integers_as_the_operator_does():
    x = reel.tensor([2, -3])
    assert reel.power(x, 3).tolist() == (x**3).tolist() == [8, -27]
    assert reel.power(x, 3).dtype == "i32"
    for exponent, said in ((-1, "the exponent of integers is 0 or more"), (40, "the result must fit i32"), (0.5, "i32 elem")):
        with pytest.raises(reel.Error, match=rf"^\[power\] {said}.*test_ops"):
            reel.power(x, exponent)
