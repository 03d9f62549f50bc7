"""Optimisers of model.parameters(), as PyTorch's are made."""

import numpy as np
import pytest

import reel


@pytest.mark.parametrize("cell", ["full_urnn", "enrnn", "ornn", "spectral_rnn", "lstm"])
def test_parameters_keep_the_constraints_of_their_model(cell):
    x, y = reel.normal((6, 4, 2), seed=1, dtype="f64"), reel.normal((6, 4, 1), seed=2, dtype="f64")
    results = []
    for target in (lambda m: m, lambda m: m.parameters()):
        model = reel.Model(inputs=2, outputs=1, cell=cell, hidden=8, dtype="f64")
        optimizer = reel.optim.Adam(target(model), 0.05)
        for _ in range(5):
            optimizer.step(reel.grad(lambda p: reel.mse(model(x, parameters=p), y))(model.parameters()))
        results.append({name: p.numpy() for name, p in model.parameters().items()})
    for name, p in results[0].items():
        np.testing.assert_array_equal(results[1][name], p)


def test_of_a_cell():
    cells = [reel.cell("ornn", 2, 4) for _ in range(2)]
    for cell, target in zip(cells, (cells[0], cells[1].parameters())):
        reel.optim.SGD(target, 0.5).step({name: reel.ones(p.shape) for name, p in cell.parameters().items()})
    assert all(p.tolist() == cells[1].parameters()[name].tolist() for name, p in cells[0].parameters().items())
