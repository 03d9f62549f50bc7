"""Arguments of the wrong kind are refused with the value, and those of NumPy are taken."""

import numpy as np
import pytest

import reel


@pytest.mark.parametrize("sequence", [[1.0, 2.0], (1.0, 2.0), "ab", b"ab", bytearray(b"ab")])
def test_a_product_with_a_sequence_does_not_repeat_it(sequence):
    """An i32 tensor of one element is an index for Python, by which it would repeat."""
    for x in (reel.tensor([2]), reel.tensor(2), reel.tensor([1.0, 2, 3])):
        for product in (lambda: x * sequence, lambda: sequence * x):
            with pytest.raises(TypeError, match=rf"\*: a tensor or a number is expected, got a {type(sequence).__name__}"):
                product()
    with pytest.raises(TypeError, match=r"got a list. Hint: reel.tensor\(\[...\]\)"):
        reel.tensor([2]) * [1.0, 2.0]
    assert [1, 2][reel.tensor(1)] == 2  # an index all the same


def test_what_multiplies_a_tensor_may_know_how():
    class Other:
        def __rmul__(self, x):
            return "mine"

    assert reel.tensor([2]) * Other() == "mine"
    with pytest.raises(TypeError, match="unsupported operand"):
        reel.tensor([2]) * None


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda b, i, c: c > 1, r"\[greater\] c64 elements are not supported; got c64 \(2,\)"),
        (lambda b, i, c: reel.tensor([1.0, 2]) >= c[:1], r"\[greater_equal\] .*; got f32 \(2,\), c64 \(1,\)"),
        (lambda b, i, c: b + 1, r"\[add\] bool elements are not supported"),
        (lambda b, i, c: b - 1, r"\[subtract\] bool elements"),
        (lambda b, i, c: 2 * b, r"\[multiply\] bool elements"),
        (lambda b, i, c: i / i, r"\[divide\] i32 elements"),
        (lambda b, i, c: i + 0.5, r"\[add\] 0.5 is not an integer"),
        (lambda b, i, c: i % 2.5, r"\[remainder\] 2.5 is not an integer"),
        (lambda b, i, c: i // 2.5, r"\[floor_divide\] 2.5 is not an integer"),
        (lambda b, i, c: i**2.5, r"\[pow\] i32 elements"),
    ],
)
def test_errors_of_operators_name_what_was_called(call, words):
    with pytest.raises(reel.Error, match=words + ".*test_arguments.py"):
        call(reel.tensor([True, False]), reel.tensor([1, 2]), reel.tensor([1j, 2]))


def test_extents_of_reshape():
    x = reel.arange(6)
    assert x.reshape(2, 3).shape == x.reshape((2, 3)).shape == x.reshape(np.int64(2), 3).shape == (2, 3)
    for given in ("a", None, 2.0, 2**70):
        with pytest.raises(TypeError, match=f"reshape: extents are integers, got {given!r}"):
            x.reshape(given)
    with pytest.raises(TypeError, match=r"reshape: extents are integers, got \(2, \(3,\)\)"):
        x.reshape(2, (3,))


def test_arrays_of_numpy_are_shapes_and_axes():
    shape = np.array([2, 3])
    assert reel.arange(6).reshape(shape).shape == reel.zeros(shape).shape == (2, 3)
    assert reel.zeros((2, 3, 4)).sum(shape - 2).shape == (4,)
    for wrong in (np.ones(2), np.ones((1, 2), int), np.array(["a"])):
        with pytest.raises(TypeError):
            reel.zeros(wrong)


def test_the_name_of_bool():
    x = reel.tensor([True, False])
    assert x.cast("i32").cast(x.dtype.name).dtype == reel.bool_ == x.cast("bool").dtype


@pytest.mark.parametrize("given", ["False", 1, None])
def test_flags_are_true_or_false(given):
    step, x = lambda h, x: (h + x, h), reel.arange(3)  # noqa: E731
    zero = reel.tensor(0)
    for loop in (reel.scan, reel.unroll):
        with pytest.raises(reel.Error, match=rf"\[{loop.__name__}\] reverse: True or False is needed, got {given!r}"):
            loop(step, zero, x, reverse=given)
        with pytest.raises(reel.Error, match=rf"\[{loop.__name__}\] length is an integer, got True"):
            loop(step, zero, length=True)
        assert loop(step, zero, x, reverse=np.bool_(True))[1].tolist() == [3, 2, 0]
    for option in ("backward", "measure"):
        with pytest.raises(reel.Error, match=rf"\[explain\] {option}: True or False is needed, got {given!r}"):
            reel.explain(step, zero, x, **{option: given})


def test_arguments_of_a_model_are_named():
    model = reel.Model(inputs=2, outputs=1, hidden=3)
    x, one = np.ones((4, 3, 2), "f4"), reel.ones((3, 3))
    optimizer = reel.optim.SGD(model)
    calls = (
        (lambda: model(x, step=1.0), r"[model] step: an integer of 0 or more is needed, got 1.0"),
        (lambda: model(x, state=[1]), "[model] state[0]: a tensor is expected, got 1"),
        (lambda: model(x, state=1), "[model] state: a list of tensors is expected, got 1"),
        (lambda: model(x, parameters=[1]), "[model] parameters: a dict of tensors by name is expected, got [1]"),
        (lambda: model(x, parameters={1: one}), "[model] parameters: their names are strings, got 1"),
        (lambda: model(x, parameters={"head.c": 1.0}), '[model] parameters["head.c"]: a tensor is expected, got 1.0'),
        (lambda: model.penalty({"head.c": None}), '[model] parameters["head.c"]: a tensor is expected, got None'),
        (lambda: model.initial(1.0), "[model] batch: an integer of 0 or more is needed, got 1.0"),
        (lambda: reel.optim.Adam(model, group_lr={1: 1}), "group_lr: the name of a group is needed, got 1"),
        (lambda: optimizer.step(model.parameters(), "a"), "lr_factor: a number is needed, got 'a'"),
    )
    for call, said in calls:
        with pytest.raises(reel.Error) as e:
            call()
        assert str(e.value) == said
    arrays = {name: value.numpy() for name, value in model.parameters().items()}
    state = [s.numpy() for s in model.initial(3)]
    assert model(x, state, arrays, np.int64(3))[0].tolist() == model(x, step=3).tolist()
