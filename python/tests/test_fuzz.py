"""Random bad calls: each returns or raises a Python exception, and Reel works afterwards."""

import os
import random
import resource

import numpy as np
import pytest

import reel

CALLS = int(os.environ.get("REEL_FUZZ_CALLS", "1000"))
ACCEPTED = (
    reel.Error,
    TypeError,
    ValueError,
    IndexError,
    OverflowError,
    RuntimeError,
    MemoryError,
    KeyError,
    AttributeError,
)


@pytest.fixture
def memory_limit():
    """8 GB more than are mapped now: some calls ask for as much as there is."""
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 8 * 10**9, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def leaked():
    kept = []
    reel.scan(lambda h, x: (kept.append(h) or h + x, None), reel.zeros(3), reel.zeros((2, 3)))
    return kept[0]


def anything(rng, abstract):
    dims = tuple(rng.choice([0, 1, 2, 3, 5]) for _ in range(rng.randrange(4)))
    dtype = rng.choice(["f32", "f64", "c64", "c128", "i32", "bool"])
    return rng.choice(
        [
            lambda: reel.full(dims, rng.choice([0, 1, -1, 2]), dtype),
            lambda: reel.full(dims, 1, dtype),
            lambda: reel.full(dims, 1, "f32"),
            lambda: reel.full((3, 3), 1, "f64"),
            lambda: abstract,
            lambda: np.ones(dims, rng.choice(["f4", "f8", "i8", "O", "U1", "u1", "f2"])),
            lambda: None,
            lambda: rng.choice([0, 1, -1, 3, 2**31, 2**63, -(2**70), 10**400]),
            lambda: rng.choice([0.5, 1e308, float("nan")]),
            lambda: rng.choice(["", "f32", "ij,jk", "ii->", "lstm", "\0", "é"]),
            lambda: [1, 2],
            lambda: (0, -1),
            lambda: [None],
            lambda: [reel.ones(2), reel.ones(3)],
            lambda: {},
            lambda: 1j,
            lambda: True,
            lambda: slice(None, None, -2),
            lambda: lambda *a: a[0],
            lambda: lambda *a: None,
            lambda: lambda h, x: (h, x),
            lambda: object(),
            lambda: reel.Tensor,
            lambda: ...,
            lambda: reel.f32,
            lambda: reel.cell("gru", 3, 3),
        ]
    )()


def test_bad_calls(memory_limit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some calls write files, of any name
    rng = random.Random(int(os.environ.get("REEL_FUZZ_SEED", "1")))
    abstract = leaked()
    kept = ("set_threads", "flush_denormals")  # they hold for all that follows
    functions = [f for n, f in vars(reel).items() if callable(f) and n[0] != "_" and n not in kept]
    methods = [
        getattr(reel.Tensor, n)
        for n in dir(reel.Tensor)
        if n not in ("__class__", "__getattribute__", "__setattr__", "__delattr__", "__del__")
    ]
    methods = [m for m in methods if callable(m)] + [
        getattr(reel.Cell, n) for n in ("run", "step", "output", "initial")
    ]
    raised = 0
    for _ in range(CALLS):
        f = rng.choice(functions + methods)
        arguments = [anything(rng, abstract) for _ in range(rng.randrange(5))]
        try:
            result = f(*arguments)
            if callable(result) and not isinstance(result, type):
                result(*[anything(rng, abstract) for _ in range(rng.randrange(3))])
        except ACCEPTED:
            raised += 1
    assert CALLS // 4 < raised < CALLS
    assert reel.grad(lambda x: reel.sum(x * x))(reel.ones(2)).tolist() == [2, 2]
