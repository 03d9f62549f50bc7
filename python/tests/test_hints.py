"""Errors of what users of other libraries try first, which say how Reel does it."""

import numpy as np
import pytest
import reel


def test_functions_by_the_names_of_other_libraries():
    for name, ours in (("cat", "concat"), ("clip", "clamp"), ("gather", "take_along"), ("topk", "top_k"),
                       ("detach", "stop_gradient")):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'. Hint: {ours}$"):
            getattr(reel, name)
        assert callable(getattr(reel, ours))
    with pytest.raises(AttributeError, match="no attribute 'nothing'$"):
        reel.nothing


def test_a_slice_that_starts_at_a_value_of_the_step():
    table = reel.tensor(np.arange(12.0).reshape(6, 2))
    starts = reel.tensor([0, 3, 4])
    with pytest.raises(IndexError, match=r"not values of a traced step. Hint: x\[start \+ reel.arange\(n\)\]"):
        reel.scan(lambda h, u: (h + reel.sum(table[u : u + 2]), ()), reel.zeros((), "f64"), starts)
    last, _ = reel.scan(lambda h, u: (h + reel.sum(table[u + reel.arange(2)]), ()), reel.zeros((), "f64"), starts)
    assert last.item() == sum(np.arange(12.0).reshape(6, 2)[u : u + 2].sum() for u in (0, 3, 4))


def test_a_ring_buffer():
    def step(ring, x):
        u, row = x
        return reel.where(reel.one_hot(u, len(ring))[:, None] > 0, row, ring), ring[u]

    rows = np.arange(10.0).reshape(5, 2)
    last, read = reel.scan(step, reel.zeros((3, 2), "f64"), (reel.tensor([0, 1, 2, 0, 1]), reel.tensor(rows)))
    assert last.tolist() == rows[[3, 4, 2]].tolist()
    assert read.tolist() == np.concatenate([np.zeros((3, 2)), rows[:2]]).tolist()
