"""Golden values of the ops: NumPy against PyTorch forward, PyTorch's gradient against finite differences of NumPy.

For every case L = Re sum(conj(dy) * y); d<input> = dL/dinput, for complex inputs dL/dRe + i dL/dIm.
"""

import numpy as np
import torch

from common import assert_close, assert_same, central_differences, put, write

LEAKY_SLOPE = 0.01
F = torch.nn.functional


class Ops:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.tensors = {}

    def normal(self, *shape, kind="real"):
        x = np.array(self.rng.standard_normal(shape))
        return x + 1j * self.rng.standard_normal(shape) if kind == "complex" else x

    def integers(self, key, values):
        """A given of the case (targets, axes, shifts): stored as int32."""
        put(self.tensors, key, np.asarray(values, dtype=np.int32))

    def case(self, key, numpy_form, torch_form, **inputs):
        """Computes y and the gradients both ways, checks, and stores inputs, y, dy, d<input>."""
        y = np.asarray(numpy_form(*inputs.values()))
        leaves = [torch.tensor(a, requires_grad=True) for a in inputs.values()]
        torch_y = torch_form(*leaves)
        assert_same(key, y, torch_y.detach().numpy())
        dy = self.normal(*y.shape, kind="complex" if np.iscomplexobj(y) else "real")
        gradients = [g.resolve_conj().numpy() for g in torch.autograd.grad(torch_y, leaves, torch.tensor(dy))]
        numeric = central_differences(lambda v: np.sum(np.conj(dy) * numpy_form(*v.values())).real, inputs)
        for gradient, (name, value) in zip(gradients, inputs.items()):
            assert_close(f"{key}.d{name}", gradient, numeric[name])
            put(self.tensors, f"{key}.{name}", value)
            put(self.tensors, f"{key}.d{name}", gradient)
        put(self.tensors, f"{key}.y", y)
        put(self.tensors, f"{key}.dy", dy)


# ---------------------------------------------------------------- elementwise

def stable_sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


ANY = np.array([-2.5, -1.7, -0.9, -0.3, -0.04, 0.02, 0.4, 0.8, 1.3, 2.1])  # jittered; no kink at 0 is met
POSITIVE = np.array([0.05, 0.2, 0.5, 0.9, 1.0, 1.5, 2.0, 4.0, 10.0, 50.0, 1000.0])
SAFE = np.append(ANY, [-800.0, -40.0, -15.0, 15.0, 40.0, 800.0])  # a careless formula overflows or cancels here

# torch's own softplus switches to the identity at x > 20, 2e-9 off; logaddexp is exact.
UNARY = {
    "exp": (np.exp, torch.exp, ANY),
    "log": (np.log, torch.log, POSITIVE),
    "sqrt": (np.sqrt, torch.sqrt, POSITIVE),
    "tanh": (np.tanh, torch.tanh, SAFE),
    "sigmoid": (stable_sigmoid, torch.sigmoid, SAFE),
    "softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
                 lambda x: torch.logaddexp(x, torch.zeros_like(x)), SAFE),
    "relu": (lambda x: np.maximum(x, 0), torch.relu, ANY),
    "leaky_relu": (lambda x: np.where(x > 0, x, LEAKY_SLOPE * x), lambda x: F.leaky_relu(x, LEAKY_SLOPE), ANY),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), F.elu, SAFE),
    "sin": (np.sin, torch.sin, ANY),
    "cos": (np.cos, torch.cos, ANY),
    "abs": (np.abs, torch.abs, ANY),
    "square": (np.square, torch.square, ANY),
    "reciprocal": (np.reciprocal, torch.reciprocal, POSITIVE),
}

BINARY = {
    "add": (np.add, torch.add),
    "sub": (np.subtract, torch.sub),
    "mul": (np.multiply, torch.mul),
    "div": (np.divide, torch.div),
    "maximum": (np.maximum, torch.maximum),
    "minimum": (np.minimum, torch.minimum),
}
BROADCASTS = [((3, 4), (4,)), ((3, 4), (3, 1)), ((3, 4), ()), ((2, 1, 4), (3, 1))]


def away_from_zero(b):
    """A divisor: the same direction, at least 0.5 long."""
    return b * (1 + 0.5 / np.abs(b))


def elementwise(ops):
    for name, (numpy_form, torch_form, x) in UNARY.items():
        jitter = 1 + 0.1 * ops.rng.uniform(-1, 1, x.shape)
        ops.case(f"unary.{name}", numpy_form, torch_form, x=x * jitter)
    for name, forms in BINARY.items():
        for k, (a, b) in enumerate(BROADCASTS):
            ops.case(f"binary.{name}.{k}", *forms, a=ops.normal(*a), b=away_from_zero(ops.normal(*b)))
    for name in ("mul", "div"):
        for k in (0, 3):
            a, b = BROADCASTS[k]
            ops.case(f"complex.{name}.{k}", *BINARY[name], a=ops.normal(*a, kind="complex"),
                     b=away_from_zero(ops.normal(*b, kind="complex")))


# ---------------------------------------------------------------- matmul

def matmuls(ops):
    """Keys end in the transpose flags of a and b: n plain, t transposed (plain transpose, never conjugated)."""
    shapes = {"": ((3, 4), (4, 5)), "batched_": ((2, 3, 4), (2, 4, 5)), "shared_": ((2, 3, 4), (4, 5))}
    for group, kind in (("matmul", "real"), ("complex.matmul", "complex")):
        for prefix, (a, b) in shapes.items():
            for flags in ("nn", "tn", "nt", "tt"):
                if kind == "complex" and prefix and prefix + flags != "batched_nn":
                    continue  # the files stay small
                turn_a, turn_b = (flag == "t" for flag in flags)
                shape_a = a[:-2] + a[-2:][::-1] if turn_a else a
                shape_b = b[:-2] + b[-2:][::-1] if turn_b else b

                def form(x, y, turn_a=turn_a, turn_b=turn_b):
                    return (x.swapaxes(-1, -2) if turn_a else x) @ (y.swapaxes(-1, -2) if turn_b else y)
                ops.case(f"{group}.{prefix}{flags}", form, form, a=ops.normal(*shape_a, kind=kind),
                         b=ops.normal(*shape_b, kind=kind))


# ---------------------------------------------------------------- reductions, losses

def reductions(ops):
    forms = {"sum": (np.sum, torch.sum), "mean": (np.mean, torch.mean), "max": (np.max, torch.amax)}
    for name, (numpy_form, torch_form) in forms.items():
        for axes in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)):
            key = f"reduce.{name}.{''.join(map(str, axes))}"
            ops.integers(f"{key}.axes", axes)
            ops.case(key, lambda x: numpy_form(x, axis=axes), lambda x: torch_form(x, dim=axes), x=ops.normal(2, 3, 4))


def logsumexp(x):
    top = np.max(x, axis=-1, keepdims=True)
    return top[..., 0] + np.log(np.sum(np.exp(x - top), axis=-1))


def log_softmax(x):
    return x - logsumexp(x)[..., None]


def losses(ops):
    """Over the last axis of [5, 7] logits. `offset`: whole rows moved by +-1000; `spread`: entries moved by +-1000."""
    targets = np.array([3, 0, 6, 3, 2], dtype=np.int32)
    rows = np.array([0, 1000, -1000, 1000, -1000.0])[:, None]
    entries = 1000.0 * ops.rng.integers(-1, 2, (5, 7))
    for name, shift in (("plain", 0.0), ("offset", rows), ("spread", entries)):
        x = 2 * ops.normal(5, 7) + shift
        ops.case(f"logsumexp.{name}", logsumexp, lambda x: torch.logsumexp(x, -1), x=x)
        ops.case(f"log_softmax.{name}", log_softmax, lambda x: torch.log_softmax(x, -1), x=x)
        ops.integers(f"cross_entropy.{name}.targets", targets)  # y is the mean over the rows, in nats
        ops.case(f"cross_entropy.{name}", lambda x: -np.mean(log_softmax(x)[np.arange(5), targets]),
                 lambda x: F.cross_entropy(x, torch.tensor(targets).long()), x=x)


# ---------------------------------------------------------------- moving entries

def layout(ops):
    indices = np.array([[4, 0, 4, 1], [5, 4, 0, 4]], dtype=np.int32)  # 4 and 0 repeat, 2 and 3 are never used
    ops.integers("embedding.indices", indices)
    ops.case("embedding", lambda w: w[indices], lambda w: F.embedding(torch.tensor(indices).long(), w),
             table=ops.normal(6, 3))

    for k, (shift, axis) in enumerate([(1, 2), (-2, 1), (5, 0)]):  # y[j] = x[j - shift], cyclic
        ops.integers(f"roll.{k}.shift", [shift])
        ops.integers(f"roll.{k}.axis", [axis])
        ops.case(f"roll.{k}", lambda x: np.roll(x, shift, axis), lambda x: torch.roll(x, shift, axis),
                 x=ops.normal(2, 3, 4))

    for k, (before, after) in enumerate([((0, 0, 2), (0, 0, 1)), ((1, 0, 0), (0, 2, 0)), ((1, 1, 1), (1, 0, 1))]):
        ops.integers(f"pad.{k}.before", before)  # zeros, for each axis in order
        ops.integers(f"pad.{k}.after", after)
        last_axis_first = [n for pair in reversed(list(zip(before, after))) for n in pair]  # PyTorch's order
        ops.case(f"pad.{k}", lambda x: np.pad(x, list(zip(before, after))), lambda x: F.pad(x, last_axis_first),
                 x=ops.normal(2, 3, 4))

    for k, axes in enumerate([(2, 0, 1), (1, 0, 2), (0, 2, 1)]):  # axis j of y is axis axes[j] of x
        ops.integers(f"permute.{k}.axes", axes)
        ops.case(f"permute.{k}", lambda x: np.transpose(x, axes), lambda x: torch.permute(x, axes),
                 x=ops.normal(2, 3, 4))


def generate(folder):
    ops = Ops(seed=30)
    for family in (elementwise, matmuls, reductions, losses, layout):
        family(ops)
    return [write(folder, "ops", ops.tensors)]
