"""All cells of the registry."""

import copy
import pickle

import numpy as np
import pytest

import reel


CELLS = list(reel.cells())


def make(name, **options):
    return reel.cell(name, 3, 4, dtype="f64", **options)


def values(cell, seed=9):
    """Other values of the parameters, near the cell's own."""
    return {
        name: p + 0.05 * reel.normal(p.shape, seed=seed, stream=k, dtype="f64").cast(p.dtype)
        for k, (name, p) in enumerate(cell.parameters().items())
    }


@pytest.mark.parametrize("name", CELLS)
def test_runs_steps_and_takes_parameters(name):
    cell, other = make(name), make(name)
    xs = reel.normal((5, 2, 3), seed=1, dtype="f64")
    hs, last = cell.run(xs)
    assert hs.shape == (5, 2, cell.output_size) and [(s.shape[1]) for s in last] == [w for _, w, _ in cell.states]
    again, _ = make(name).run(xs, cell.initial(2))
    assert np.array_equal(hs.numpy(), again.numpy())
    if cell.recurrent:
        state = cell.initial(2)
        for t, x in enumerate(xs):
            state = cell.step(state, x)
            np.testing.assert_allclose(cell.output(state).numpy(), hs[t].numpy(), rtol=1e-9, atol=1e-12)
    # Given parameters do what the cell's own would do.
    given = values(cell)
    for key, p in other.parameters().items():
        p.assign(given[key])
    for found, expected in zip(cell.run(xs, parameters=given)[1], other.run(xs)[1]):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in CELLS if make(name).recurrent])
def test_a_loop_of_steps_takes_parameters(name):
    """Initial states and outputs depend on them, too."""
    cell = make(name)
    xs, given = reel.normal((3, 2, 3), seed=1, dtype="f64"), values(cell)

    def loss(outputs):
        return lambda p: reel.sum(reel.square(reel.abs(outputs(p))))

    def loop(p):
        state, hs = cell.initial(2, parameters=p), []
        for x in xs:
            state = cell.step(state, x, parameters=p)
            hs.append(cell.output(state, parameters=p))
        return reel.stack(hs)

    found, gradient = reel.value_and_grad(loss(loop))(given)
    value, expected = reel.value_and_grad(loss(lambda p: cell.run(xs, parameters=p)[0]))(given)
    np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-9)
    for key in given:
        np.testing.assert_allclose(gradient[key].numpy(), expected[key].numpy(), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", CELLS)
def test_gradients_of_parameters(name):
    cell = make(name)
    xs = reel.normal((4, 2, 3), seed=1, dtype="f64")
    given, direction = values(cell), values(make(name), seed=10)
    direction = {k: direction[k] - given[k] for k in given}

    def loss(p):
        hs, _ = cell.run(xs, parameters=p)
        return reel.sum(reel.square(reel.abs(hs)))

    gradient = reel.grad(loss)(given)
    slope = sum(np.vdot(direction[k].numpy(), gradient[k].numpy()).real for k in given)
    eps = 1e-6
    shifted = [loss({k: given[k] + s * eps * direction[k] for k in given}).item() for s in (1, -1)]
    assert abs(slope - (shifted[0] - shifted[1]) / (2 * eps)) < 1e-6 * max(1, abs(slope)) and slope != 0


@pytest.mark.parametrize("name", CELLS)
def test_symbols_and_a_table(name):
    """Symbols with a table are what the table's rows are: outputs, states, and gradients, which add up in the table."""
    cell = make(name)
    table = reel.normal((7, 3), seed=2, dtype="f64")
    symbols = reel.tensor(np.random.default_rng(0).integers(0, 7, (5, 2)).astype(np.int32))
    for every_step in (True, False):

        def loss(table, values, looked_up):
            xs = reel.embedding(symbols, table) if looked_up else symbols
            h, last = cell.run(
                xs, parameters=values, table=None if looked_up else table, every_step=every_step or looked_up
            )
            h = h if every_step or not looked_up else h[-1]
            return sum((reel.sum(reel.square(reel.abs(s))) for s in last), reel.sum(reel.sin(h)))

        p = values(cell)
        found, expected = (reel.value_and_grad(loss, argnums=(0, 1))(table, p, way) for way in (False, True))
        np.testing.assert_allclose(found[0].item(), expected[0].item(), rtol=1e-12)
        np.testing.assert_allclose(found[1][0].numpy(), expected[1][0].numpy(), rtol=1e-9, atol=1e-12)
        for key, g in found[1][1].items():
            np.testing.assert_allclose(g.numpy(), expected[1][1][key].numpy(), rtol=1e-9, atol=1e-12)


def test_settings():
    wide = reel.cell("srnn", 2, 8, width=16, gate=False)
    assert wide.parameters().keys() < reel.cell("srnn", 2, 8).parameters().keys()
    assert reel.cells()["srnn"]["settings"]["gate"]["choices"] == ("on", "off")
    assert reel.cell("lstm", 2, 8, seed=2).dtype == reel.f32
    for call, words in (
        (lambda: reel.cell("srnnn", 2, 8), 'no cell "srnnn"; known are'),
        (lambda: reel.cell("lsmt", 2, 8), "Hint: cell = lstm"),
        (lambda: reel.cell("srnn", 2, 8, widht=4), "srnn.widht: .* no such setting. Hint: .*width"),
        (lambda: reel.cell("srnn", 2, 8, width="x"), '"x" is not an integer'),
        (lambda: reel.cell("srnn", 2, 8, width=0), "an integer in 1"),
        (lambda: reel.cell("srnn", 2, 8, activation="sin"), "is not one of relu, tanh"),
        (lambda: reel.cell("srnn", 2, 0), "1 or more units"),
        (lambda: reel.cell("srnn", 0, 2), "1 or more inputs"),
        (lambda: reel.cell("srnn", 2, 2, dtype="c64"), "f32 or f64"),
        (
            lambda: reel.cell("rnn", 2, 8).run(reel.zeros((3, 1, 2)), parameters={"Q": reel.zeros((8, 8))}),
            r'no parameter is called "Q". Hint: they are U, W, b, b2 \(test_cells.py',
        ),
    ):
        with pytest.raises(reel.Error, match=words):
            call()
    assert issubclass(reel.SettingError, reel.Error)


def test_bad_calls():
    cell = reel.cell("lstm", 3, 4)
    x = reel.zeros((2, 3))
    for call in (
        lambda: cell.run(x),
        lambda: cell.run(reel.zeros((5, 2, 4))),
        lambda: cell.run(reel.zeros((5, 2, 3), "f64")),
        lambda: cell.run(reel.zeros((5, 2, 3)), table=reel.zeros((7, 3))),
        lambda: cell.run(reel.zeros((5, 2), "i32"), table=reel.zeros((7, 2))),
        lambda: cell.run(reel.zeros((5, 2), "i32"), table=reel.zeros((7, 3), "f64")),
        lambda: cell.run(reel.full((5, 2), 7, "i32"), table=reel.zeros((7, 3))),
        lambda: cell.step(cell.initial(3), x),
        lambda: cell.step([], x),
        lambda: cell.output([]),
        lambda: cell.step(cell.initial(2)[:1], x),
        lambda: cell.initial(-1),
        lambda: cell.initial(2, parameters={"q": x}),
        lambda: cell.output(cell.initial(2), parameters={"q": x}),
        lambda: cell.run(reel.zeros((5, 2, 3)), parameters={"q": x}),
        lambda: cell.run(reel.zeros((5, 2, 3)), parameters={"W_i": x}),
    ):
        with pytest.raises(reel.Error, match="test_cells.py"):
            call()
    whole = reel.cell("r_transformer", 3, 4)
    with pytest.raises(reel.Error, match="whole sequence"):
        whole.step([], x)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("every_step", [True, False])
def test_lengths(name, every_step):
    """Sequences of unequal length give what each gives alone."""
    cell, lengths = make(name), [5, 2, 3]
    xs = reel.normal((5, 3, 3), seed=1, dtype="f64")
    hs, last = cell.run(xs, parameters=values(cell), lengths=reel.tensor(lengths), every_step=every_step)
    for b, n in enumerate(lengths):
        alone, end = cell.run(xs[:n, b : b + 1], parameters=values(cell), every_step=every_step)
        found = hs[:n, b : b + 1] if every_step else hs[b : b + 1]
        np.testing.assert_allclose(found.numpy(), alone.numpy(), rtol=1e-9, atol=1e-12)
        for x, y in zip(last, end):
            np.testing.assert_allclose(x[b : b + 1].numpy(), y.numpy(), rtol=1e-9, atol=1e-12)
    for bad, words in (
        ([5, 2], r"lengths must be i32 \[B\] with B = 3, got i32 \(2,\)"),
        ([5.0, 2.0, 3.0], r"lengths must be i32"),
        ([5, 6, 3], "lengths are 0 to the 5 steps of the input, got 6 for sequence 1"),
        ([5, 0, -1], ".*got -1 for sequence 2"),
    ):
        with pytest.raises(reel.Error, match=rf"\[{name}\] {words}.*test_cells.py"):
            cell.run(xs, lengths=reel.tensor(bad))


@pytest.mark.parametrize("name", CELLS)
def test_copies_and_pickles(name):
    cell = reel.cell(name, 3, 4, 7, "f64")
    for key, value in values(cell).items():
        cell.parameters()[key].assign(value)
    xs = reel.normal((4, 2, 3), seed=1, dtype="f64")
    for other in (copy.deepcopy(cell), pickle.loads(pickle.dumps(cell))):
        assert repr(other) == repr(cell) and np.array_equal(other.run(xs)[0].numpy(), cell.run(xs)[0].numpy())
        key, p = next(iter(other.parameters().items()))
        p.assign(p + 1)
        assert not np.array_equal(p.numpy(), cell.parameters()[key].numpy())
    narrow = copy.deepcopy(reel.cell("srnn", 2, 8, width=16, gate=False))
    assert [p.shape for p in narrow.parameters().values()] == [
        p.shape for p in reel.cell("srnn", 2, 8, width=16, gate=False).parameters().values()
    ]
