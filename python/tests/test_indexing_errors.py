"""x[key] with a key that does not go with x: an IndexError, as NumPy's, and a reel.Error."""

import pickle

import numpy as np
import pytest

import reel


@pytest.mark.parametrize(
    "key", [3, -4, [3], [-4], [0, 3], (0, 0), 1.0, "a", (..., ...), [True, False, True], ([0], [0])], ids=str
)
def test_errors_of_keys(key):
    x = reel.tensor([1.0, 2, 3])
    for error in (IndexError, reel.Error, reel.IndexingError):
        with pytest.raises(error, match=r"^\[index\] .* \(test_indexing_errors.py:\d+\)$"):
            x[key]


def test_what_they_say():
    x = reel.tensor([1.0, 2, 3])
    for key, text in (
        (3, "index 3 is not in an axis of 3"),
        ([0, -4], "index -4 is not in an axis of 3"),
        (reel.tensor([3]), "index 3 is not in an axis of 3"),
        ((0, 0), r"too many indices, 2, for a tensor of rank 1; got f32 \(3,?\)"),
    ):
        with pytest.raises(reel.IndexingError, match=text):
            x[key]


def test_loops_end_and_errors_are_pickled():
    assert [v.item() for v in reel.tensor([1.0, 2])] == [1, 2] and list(reel.ones((0, 2))) == []
    with pytest.raises(IndexError) as caught:
        reel.ones(2)[np.array([5])]
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is reel.IndexingError and str(again) == str(caught.value)
