"""Random steps: reel.scan gives the values, gradients and second gradients of reel.unroll."""

import os
import random

import numpy as np
import pytest

import reel

STEPS = int(os.environ.get("REEL_RANDOM_STEPS", "600"))
SEED = int(os.environ.get("REEL_RANDOM_SEED", "1"))

# Functions of one tensor, or of two that broadcast, which are smooth or have kinks where random numbers are not.
ONE = [
    *(reel.tanh, reel.sigmoid, reel.sin, reel.cos, reel.relu, reel.square, reel.erf, reel.atan, reel.softplus),
    *(reel.softsign, reel.silu, reel.elu, reel.gelu, reel.leaky_relu, reel.abs, reel.neg, reel.floor, reel.sign),
    *(reel.round, reel.stop_gradient),
    lambda x: reel.exp(0.3 * x),
    lambda x: reel.expm1(0.2 * x),
    lambda x: reel.log1p(reel.square(x)),
    lambda x: reel.log(reel.square(x) + 0.3),
    lambda x: reel.sqrt(reel.abs(x) + 0.1),
    lambda x: reel.rsqrt(1 + x * x),
    lambda x: reel.reciprocal(1.3 + x * x),
    lambda x: reel.clamp(x, -0.5, 0.5),
    lambda x: reel.sinh(0.3 * x),
    lambda x: reel.cosh(0.3 * x),
    lambda x: reel.asin(0.9 * reel.tanh(x)),
    lambda x: reel.acos(0.9 * reel.sin(x)),
    lambda x: reel.tan(0.4 * reel.tanh(x)),
    lambda x: reel.scale_gradient(x, 0.5),
    lambda x: (1.1 + x * x) ** 0.7,
    lambda x: x**3,
    lambda x: 2 * x - 1,
]
TWO = [
    *(reel.add, reel.subtract, reel.multiply, reel.multiply, reel.maximum, reel.minimum),
    lambda a, b: a / (1.5 + b * b),
    lambda a, b: reel.atan2(a, b + 3),
    lambda a, b: reel.hypot(a, b + 0.1),
    lambda a, b: reel.pow(1.2 + a * a, reel.tanh(b)),
    lambda a, b: reel.remainder(a, 1.5 + b * b),
    lambda a, b: reel.where(reel.greater(a, b), a, 0.5 * b),
    lambda a, b: reel.where(reel.equal(a, reel.max(a)), a * b, b),
    lambda a, b: reel.masked_fill(a, reel.greater(b, 0), 0.25),
]
OVER_AXES = [
    *(reel.sum, reel.mean, reel.max, reel.min, reel.logsumexp, reel.var),
    lambda x, *how: reel.prod(1.2 + 0.3 * reel.tanh(x), *how),
    lambda x, *how: reel.norm(x + 0.01, 1.0, *how),
    lambda x, *how: reel.norm(x + 0.01, 2.0, *how),
    lambda x, *how: reel.norm(x + 0.01, float("inf"), *how),
]
OVER_AN_AXIS = [
    *(reel.softmax, reel.log_softmax, reel.cumsum, reel.flip),
    lambda x, axis: reel.cumsum(x, axis, True),
    *(reel.cummax, reel.cummin, reel.logcumsumexp, reel.sort),
    lambda x, axis: reel.cumprod(1.2 + 0.3 * reel.tanh(x), axis),
    lambda x, axis: reel.top_k(x, (x.shape[axis] + 1) // 2, axis).values,
    lambda x, axis: reel.take_along(reel.sin(x), reel.argsort(x, axis, descending=True), axis),
    lambda x, axis: reel.roll(x, 2, axis),
    lambda x, axis: reel.pad(x, axis, 1, 2),
    lambda x, axis: reel.repeat(x, 2, axis),
    lambda x, axis: reel.concat([x, reel.tanh(x)], axis),
    lambda x, axis: reel.stack([x, x * x], axis),
    lambda x, axis: reel.slice(x, axis, x.shape[axis] // 3, x.shape[axis]),
    lambda x, axis: reel.slice(x, axis, 0, 1),
    lambda x, axis: reel.unstack(x, axis)[-1],
    lambda x, axis: reel.unsqueeze(x, axis),
    lambda x, axis: reel.take_along(x, reel.unsqueeze(reel.argmax(x, axis), axis), axis),
    lambda x, axis: reel.one_hot(reel.argmax(x, axis), x.shape[axis], "f64"),
    lambda x, axis: reel.index_select(x, axis, reel.tensor([0, x.shape[axis] - 1, 0], "i32")),
    lambda x, axis: reel.scatter_add(x, reel.cast(reel.greater(x, 0), "i32"), axis, 2),
    lambda x, axis: x[(slice(None),) * axis + (slice(None, None, -2),)],
]
OF_ROWS = [
    *(lambda x: reel.standardize(x, 0.1), lambda x: reel.sum(x), lambda x: reel.reshape(x, (-1,))),
    lambda x: reel.pick(x, reel.argmax(x)),
    lambda x: reel.place(reel.max(x, (-1,)), reel.argmax(x), x.shape[-1]),
    lambda x: reel.segment_sum(reel.tensor([i % 2 for i in range(x.shape[0])], "i32"), x, 2),
    lambda x: reel.irfft(reel.rfft(x) * (0.5 + 0.2j), x.shape[-1]),
    lambda x: reel.imag(reel.fft(reel.complex(x, 0.3 * x))),
    lambda x: reel.abs(reel.polar(1.5 + reel.tanh(x), x) + 3),
    lambda x: reel.real(reel.modrelu(reel.complex(x + 1, x + 0.5), reel.full((x.shape[-1],), 0.1, "f64"))),
]
OF_A_MATRIX = [
    *(reel.det, reel.inverse, reel.tril, reel.diag, reel.matrix_trace),
    lambda A: reel.solve(A, reel.transpose(A)),
    lambda A: reel.slogdet(A).log_abs,
    lambda A: reel.cholesky(reel.matmul(A, reel.transpose(A))),
    lambda A: reel.matrix_exp(reel.skew(A)),
    lambda A: reel.cayley(reel.skew(A)),
    lambda A: reel.triangular_solve(reel.tril(A), A),
]


def count(shape):
    return int(np.prod(shape))


class Body:
    """A step of random ops on what it is given; the same ones each time it is called, by shapes and the seed alone."""

    def __init__(self, seed, values, symbols, matrices, loop):
        self.random, self.values, self.symbols = random.Random(seed), values, symbols
        self.matrices, self.loop = matrices, loop

    def value(self, of=lambda x: True):
        """One that was computed, more often a late one."""
        late = [x for x in self.values[-6:] if of(x)]
        return self.random.choice(late if late and self.random.random() < 0.6 else list(filter(of, self.values)))

    def of_rank(self, lowest):
        x = self.value()
        return x if len(x.shape) >= lowest else reel.expand(x, (2,) * (lowest - len(x.shape)) + tuple(x.shape))

    def fitted(self, x, shape):
        """Elements of x in another shape."""
        if tuple(x.shape) == tuple(shape):
            return x
        flat = reel.tile(reel.reshape(x, (-1,)), (-(-count(shape) // count(x.shape)),))
        return reel.reshape(reel.slice(flat, 0, 0, count(shape)), tuple(shape))

    def broadcasts(self, a, b):
        try:
            return count(np.broadcast_shapes(tuple(a.shape), tuple(b.shape))) <= 2000
        except ValueError:
            return False

    def two(self):
        a = self.value()
        b = self.value(lambda b: self.broadcasts(a, b))
        return self.random.choice(TWO)(*self.random.sample([a, b], 2))

    def over_axes(self):
        x = self.of_rank(1)
        axes = self.random.sample(range(len(x.shape)), self.random.randint(1, len(x.shape)))
        return self.random.choice(OVER_AXES)(x, axes, self.random.random() < 0.5)

    def over_an_axis(self):
        x = self.of_rank(1)
        return self.random.choice(OVER_AN_AXIS)(x, self.random.randrange(len(x.shape)))

    def product(self):
        x, kind = self.of_rank(2), self.random.randrange(4)
        if kind == 0:
            return reel.matmul(x, reel.transpose(x))
        if kind == 1:
            return reel.matmul(reel.transpose(x), reel.tanh(x))
        W = self.random.choice([W for W in self.matrices if W.shape[1] == x.shape[-1]] or [None])
        if W is None or kind == 2:
            W = self.fitted(self.value(), (self.random.choice([1, 4, 7]), x.shape[-1]))
        return reel.linear(x, W)

    def compared(self):
        """What a product is compared with: the gradient, which may compute the product again, compares once more."""
        x = self.product()
        x = x * self.random.choice([2, reel.sum(self.value()), *filter(lambda y: self.broadcasts(x, y), self.values)])
        kinds = [lambda: reel.max(x, -1, True), lambda: reel.min(x, -1, True), lambda: reel.clamp(0.25 * x + 0.5, 0, 1)]
        kinds += [lambda: reel.where(reel.equal(x, reel.max(x, -1, True)), x, 0.5 * x)]
        return self.random.choice(kinds)()

    def matrix(self):
        n = self.random.choice([2, 3])
        A = self.fitted(reel.tanh(self.value()), self.random.choice([(n, n), (2, n, n)]))
        return self.random.choice(OF_A_MATRIX)(0.2 * A + 1.5 * reel.eye(n, "f64"))

    def gather(self):
        if not self.symbols:
            return self.random.choice(OF_ROWS)(self.of_rank(1))
        table = self.random.choice([W for W in self.matrices if W.shape[0] >= 3])
        table = table if self.random.random() < 0.5 else reel.exp(table)
        return reel.embedding(self.random.choice(self.symbols), table)

    def nested(self):
        x = self.of_rank(2)
        if count(x.shape) > 200 or x.shape[0] > 6:
            return reel.mean(x, (0,))
        last, ys = self.loop(lambda h, u: (reel.tanh(0.7 * h + u), h * u), reel.mean(x, (0,)), x)
        return self.random.choice([last, ys])

    def run(self, ops):
        of = lambda functions: lambda: self.random.choice(functions)(self.of_rank(1))
        kinds = [of(ONE)] * 5 + [self.two] * 6 + [self.over_axes] * 4 + [self.over_an_axis] * 6 + [self.product] * 4
        kinds += [of(OF_ROWS)] * 3 + [self.gather] * 3 + [self.compared] * 4 + [self.matrix, self.nested]
        for _ in range(ops):
            y = self.random.choice(kinds)()
            y = y if count(y.shape) <= 2000 else reel.mean(y)
            self.values.append(y if self.random.random() < 0.5 else reel.tanh(y))


class Case:
    """Sizes, tensors and a step, all by a seed."""

    def __init__(self, seed):
        self.seed, pick, draw = seed, random.Random(seed), np.random.default_rng(seed)
        new = lambda *shape: reel.tensor(draw.uniform(-1, 1, shape))
        T, B, n = pick.choice([1, 2, 3, 5, 8, 13]), pick.choice([1, 2, 3, 5, 8, 20]), pick.choice([1, 2, 4, 9, 16, 33])
        states = pick.choices([(B, n), (B, n), (n,), (), (B, 2, n), (B, 1)], k=pick.choice([1, 1, 2, 3]))
        inputs = pick.choices([(T, B, n), (T, n), (T,)], k=pick.randrange(3))
        self.parts = [len(states), len(inputs), 4, 2]
        weights = [(n, n), (4, n), (n, 4), (3, n), (n,), (B, 1)]
        self.parameters = tuple(new(*shape) for shape in [*states, *inputs, *weights])
        self.symbols = [reel.tensor(draw.integers(0, 3, (T, B)), "i32")][: pick.randrange(2)]
        self.options = {"reverse": pick.random() < 0.3}
        if not inputs and not self.symbols:
            self.options["length"] = T
        self.every, self.ops = pick.choice([0, 0, 0, 1, 2, 3]), pick.choice([3, 5, 8, 12])
        self.second = pick.random() < 0.3
        sizes = f"T {T}, B {B}, n {n}, states {states}, inputs {inputs}"
        self.about = f"seed {seed}: {sizes}, {self.ops} ops, {self.options}"

    def objective(self, loop):
        """The function of the parameters, by reel.scan or reel.unroll."""
        options = {**self.options, **({"checkpoint_every": self.every} if loop is reel.scan else {})}

        def total(parameters):
            left = list(parameters)
            states, inputs, matrices, biases = ([left.pop(0) for _ in range(k)] for k in self.parts)
            xs = (tuple(inputs), tuple(self.symbols)) if inputs or self.symbols else None

            def step(state, x):
                given, symbols = ((), ()) if xs is None else x
                body = Body(self.seed, [*biases, *state, *given], list(symbols), matrices, loop)
                body.run(self.ops)
                following = tuple(
                    reel.tanh(body.fitted(body.value(), s.shape) + body.random.choice([0, 0.5]) * s) for s in state
                )
                return following, tuple(body.value() for _ in range(body.random.randint(1, 3)))

            last, ys = loop(step, tuple(states), xs, **options)
            draw = np.random.default_rng(self.seed)
            weighted = lambda y: reel.sum(y * reel.tensor(draw.uniform(-1, 1, tuple(y.shape))))
            return sum((weighted(y) for y in last), sum((weighted(y) for y in ys), reel.tensor(0.0, "f64")))

        return total

    def results(self, loop):
        """The value, its gradients, and those of a projection of the gradients."""
        total, draw = self.objective(loop), np.random.default_rng(self.seed)
        value, gradients = reel.value_and_grad(total)(self.parameters)
        results = [value, *gradients]
        if self.second:
            direction = [reel.tensor(draw.uniform(-1, 1, tuple(p.shape))) for p in self.parameters]
            dot = lambda gradients: sum((reel.sum(g * d) for g, d in zip(gradients, direction)), reel.zeros((), "f64"))
            results += reel.grad(lambda p: dot(reel.grad(total)(p)))(self.parameters)
        return [np.array(r) for r in results]


@pytest.mark.parametrize("first", range(0, STEPS, 100))
def test_scan_is_unroll(first):
    compared = 0
    for seed in range(SEED * 10**6 + first, SEED * 10**6 + min(first + 100, STEPS)):
        case = Case(seed)
        alone, in_loop = case.results(reel.unroll), case.results(reel.scan)
        for k, (a, b) in enumerate(zip(alone, in_loop)):
            if not np.isfinite(a).all():
                continue
            compared += a.size
            assert b == pytest.approx(a, rel=1e-7, abs=1e-8 * (0.01 + np.abs(a).max(initial=0))), f"{case.about}, {k}"
    assert compared > 1000
