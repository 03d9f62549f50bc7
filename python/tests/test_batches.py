"""reel.train: which batches it takes, and what goes on from one to the next."""

import numpy as np
import pytest

import reel


class Passes:
    """An iterable that counts how often it is gone through."""

    def __init__(self, *batches):
        self.batches, self.count = batches, 0

    def __iter__(self):
        self.count += 1
        return iter(self.batches)


def batch(k=1, size=2):
    return np.full((3, size, 1), k, "f4"), np.ones((3, size, 1), "f4")


def model(**options):
    return reel.Model(inputs=1, outputs=1, hidden=4, **options)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_no_batch_is_taken_from_an_iterator_beyond_the_steps(accumulate):
    taken = []

    def batches():
        for k in range(100):
            taken.append(k)
            yield batch(k)

    rest = batches()
    for call in (1, 2, 3):
        history = reel.train(model(), rest, reel.mse, steps=2, accumulate=accumulate, progress=False)
        assert (history.steps, history.stopped, len(taken)) == (2, "steps", 2 * accumulate * call)


def test_each_pass_asks_once_for_an_iterator():
    batches, valid = Passes(*map(batch, range(4))), Passes(batch())
    reel.train(model(), batches, reel.mse, steps=12, valid=valid, valid_every=4, progress=False)
    assert (batches.count, valid.count) == (3, 3)
    history = reel.train(model(), Passes(), reel.mse, steps=3, progress=False)
    assert (history.steps, history.stopped) == (0, "batches")


def test_validation_batches_of_an_iterator_are_kept():
    valid = (batch(k) for k in range(2))
    history = reel.train(model(), [batch()], reel.mse, steps=3, valid=valid, valid_every=1, progress=False)
    assert len(history.metrics["valid_loss"]) == 3


def test_states_carry_over_until_an_iterable_starts_again():
    def losses(batches, steps):
        m = model(cell="gru", seed=1)
        still = reel.optim.SGD(m, lr=0)
        return reel.train(m, batches, reel.mse, steps=steps, carry=True, optimizer=still, progress=False).losses

    three = [batch(k) for k in range(3)]
    found = losses(three, 6)
    assert found[:3] == found[3:] == losses(lambda i: three[i], 3)
    assert found[1] != losses([three[1]], 1)[0]


class Says(Passes):
    """Says that it has another number of batches than it has."""

    def __init__(self, says, *batches):
        super().__init__(*batches)
        self.says = says

    def __len__(self):
        if self.says is None:
            raise TypeError("its dataset has no length")
        return self.says


@pytest.mark.parametrize("says", [None, 0, 2, 3, 10])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_once_through_batches_whatever_their_length_says(tmp_path, says, accumulate):
    batches = Says(says, *map(batch, range(3)))
    m, run = model(), tmp_path / "r"
    history = reel.train(m, batches, reel.mse, accumulate=accumulate, valid=batch(), run=run, progress=False)
    assert (history.steps, batches.count) == (-(-3 // accumulate), 1)
    assert history.stopped == ("steps" if says == 3 else "batches")
    assert reel.Run(run).record["steps"] == history.steps


def test_batches_by_number_end_where_their_length_says():
    class Numbered:  # as a dataset that computes its elements: every number has one
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return batch(i)

    history = reel.train(model(), Numbered(), reel.mse, progress=False)
    assert (history.steps, history.stopped) == (3, "steps")


@pytest.mark.parametrize("structure", [lambda y, w: (y, w), lambda y, w: {"y": y, "w": w}, lambda y, w: ((y, w), w)])
def test_batches_count_by_the_first_tensor_of_y(structure):
    """In validation and in accumulated gradients; halves of unequal size are one large batch."""

    def first(y):
        return y["y"] if isinstance(y, dict) else y[0][0] if isinstance(y[0], tuple) else y[0]

    def loss(p, x, y):
        return reel.mean(p["w"] * first(y))

    ys = [np.full(n, k, "f4") for n, k in ((6, 1), (2, 5))]
    batches = [(y, structure(y, np.ones(1, "f4"))) for y in ys]
    p = {"w": reel.ones(())}
    history = reel.train(
        p, batches, loss, accumulate=2, optimizer=reel.optim.SGD(p, 1), valid=batches, restore_best=False, progress=False
    )
    assert history.losses == [2]
    assert p["w"].item() == 1 - 2
    assert history.metrics["valid_loss"] == [-2]
