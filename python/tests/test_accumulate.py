"""reel.train(accumulate=n): several batches for one update."""

import numpy as np
import pytest

import reel
from test_train import adder, adding


def test_accumulated_batches_are_one_large_batch():
    """Halves of unequal size, with a schedule, clipping and weight decay: the same updates as by the whole."""

    def whole_batch(i):
        x, y = adding(i, B=32)
        return x, y.astype(np.float64)

    def halves(i):
        x, y = whole_batch(i // 2)
        cut = slice(0, 12) if i % 2 == 0 else slice(12, 32)
        return x[:, cut], y[cut]

    def trained(batches, **options):
        model = adder(dtype="f64")
        optimizer = reel.optim.AdamW(model, 1e-2, clip_norm=0.1)
        schedule = reel.optim.Schedule("cosine", 20, warmup=5)
        history = reel.train(
            model, batches, reel.mse, steps=20, optimizer=optimizer, schedule=schedule, progress=False, **options
        )
        return history, {name: p.numpy() for name, p in model.parameters().items()}

    whole, expected = trained(whole_batch)
    cut, got = trained(halves, accumulate=2)
    assert whole.steps == cut.steps == 20
    assert whole.metrics["examples"] == cut.metrics["examples"]
    assert np.allclose(whole.losses, cut.losses, rtol=1e-9)
    for name in expected:
        assert np.allclose(got[name], expected[name], rtol=1e-7, atol=1e-10), name


def test_accumulation_of_a_list_and_an_iterator():
    five = [adding(i) for i in range(5)]
    assert reel.train(adder(), five, reel.mse, accumulate=2, progress=False).steps == 3  # the last one of one batch
    history = reel.train(adder(), iter(five), reel.mse, accumulate=2, progress=False)
    assert history.steps == 3 and history.stopped == "batches"
    assert reel.train(adder(), five, reel.mse, steps=7, accumulate=3, progress=False).steps == 7  # over and over
    with pytest.raises(reel.Error, match="accumulate: an integer of 1 or more is needed, got 0"):
        reel.train(adder(), five, reel.mse, accumulate=0)


def test_an_iterator_may_reuse_its_arrays():
    """The gradient of a batch is computed before the next one is taken."""

    def batches(copy):
        x, y = np.zeros((12, 8, 2), np.float32), np.zeros((8, 1), np.float32)
        for i in range(12):
            x[:], y[:] = adding(i, B=8)
            yield (x.copy(), y.copy()) if copy else (x, y)

    for accumulate in (1, 2, 4, 5):
        losses = [
            reel.train(adder(), batches(copy), reel.mse, accumulate=accumulate, progress=False).losses
            for copy in (True, False)
        ]
        assert losses[0] == losses[1] and len(losses[0]) == -(-12 // accumulate)


def test_the_mean_weighs_batches_by_their_sizes():
    """Also where the first has no entries, and where there are fewer than `accumulate` at the end."""

    def loss(p, x, y):
        return reel.sum(p["w"] * y) / max(y.size, 1)  # its gradient is the mean of y

    def moved(sizes, accumulate):
        p = {"w": reel.zeros(())}
        ys = [np.full(n, float(i + 1), np.float32) for i, n in enumerate(sizes)]
        optimizer = reel.optim.SGD(p, 1)
        reel.train(p, [(y, y) for y in ys], loss, optimizer=optimizer, accumulate=accumulate, progress=False)
        return p["w"].item()

    assert moved([2, 3, 0, 5], 4) == pytest.approx(-(2 * 1 + 3 * 2 + 5 * 4) / 10)
    assert moved([0, 3, 1], 3) == pytest.approx(-(3 * 2 + 3) / 4)
    assert moved([2, 2, 2], 2) == pytest.approx(-(1 + 2) / 2 - 3)


def test_no_elements_to_take_a_mean_of():
    p, none = {"w": reel.ones(1)}, (np.ones(1, "f4"), np.zeros(0, "f4"))
    with pytest.raises(reel.Error, match="accumulate: an update needs elements in y, got none in the batches from 0 on"):
        reel.train(p, [none] * 2, lambda p, x, y: reel.sum(p["w"] * x), accumulate=2, progress=False)
