"""Options that have no effect beside others: a warning at the caller's line."""

import copy
import warnings

import numpy as np
import pytest

import reel

ONE = r"it works between layers, and there is one. Hint: layers=2"


def said(make):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        make()
    assert all(w.filename == __file__ and w.category is UserWarning for w in seen)
    return [str(w.message) for w in seen]


def test_options_of_models():
    def model(**options):
        kind = {} if "vocabulary" in options else {"inputs": 2}
        return lambda: reel.Model(outputs=1, cell="gru", hidden=3, **kind, **options)

    for option in ("layer_norm", "residual", "variational_dropout"):
        assert said(model(**{option: True})) == [f"{option} = True has no effect: {ONE}"]
    assert said(model(dropout=0.5)) == [f"dropout = 0.5 has no effect: {ONE}"]
    assert said(model(variational_dropout=True, layers=2)) == ["variational_dropout = True has no effect: dropout is 0"]
    assert said(model(embedding=7)) == ["embedding = 7 has no effect: the inputs are numbers"]
    assert said(model(input="one-hot")) == ["input = 'one-hot' has no effect: the inputs are numbers"]
    text = ["embedding = 7 has no effect: input is one-hot"]
    assert said(model(vocabulary=4, input="one-hot", embedding=7)) == text
    everything = {"dropout": 0.5, "variational_dropout": True, "layer_norm": True, "residual": True, "layers": 2}
    assert said(model()) == said(model(**everything)) == said(model(vocabulary=4, embedding=7)) == []


def test_options_of_schedules():
    assert said(lambda: reel.optim.Schedule("constant", floor=0.5, every=5, factor=0)) == [
        "floor = 0.5 has no effect: it is for cosine, linear, and kind is constant",
        "every = 5 has no effect: it is for step, and kind is constant",
        "factor = 0 has no effect: it is for step, and kind is constant",
    ]
    assert said(lambda: reel.optim.Schedule("cosine", 10, floor=0.5, warmup=2)) == []
    assert said(lambda: reel.optim.Schedule("step", every=5, factor=0.1, warmup=2)) == []


def test_options_of_optimizers():
    p = {"w": reel.ones(2)}
    text = ["momentum = 0.5 has no effect: adam has none, but sgd"]
    assert said(lambda: reel.optim.Adam(p, momentum=0.5)) == said(lambda: reel.optim.Optimizer(p, "adam", momentum=0.5)) == text


def test_settings_of_cells():
    def model(cell, **settings):
        return lambda: reel.Model(inputs=2, outputs=1, hidden=4, cell=cell, **settings)

    text = "capacity = 4 has no effect: style is fft"
    assert said(model("goru", capacity=4)) == said(lambda: reel.cell("goru", 2, 4, capacity=4)) == [text]
    assert said(model(["gru", "goru"], **{"goru.capacity": 4})) == [f"goru.{text}"]
    assert said(model("lstm", chrono=9, forget_bias=1)) == ["forget_bias = 1 has no effect: chrono is 9"]
    assert said(model("lstm", chrono_draw="whole")) == ["chrono_draw = 'whole' has no effect: chrono is 0"]
    used = {"goru": {"style": "tunable", "capacity": 4}, "lstm": {"chrono": 9, "chrono_draw": "whole"}, "enrnn": {"epsilon": 0.1}}
    assert all(said(model(cell, **settings)) == [] for cell, settings in used.items())
    assert said(lambda: copy.deepcopy(reel.cell("goru", 2, 4, capacity=4))) == [text]
    assert reel.cells()["goru"]["settings"]["capacity"]["only_if"] == "style=tunable"


def test_a_model_of_a_run_says_it_once(tmp_path):
    with pytest.warns(UserWarning, match="dropout = 0.5 has no effect"):
        model = reel.Model(inputs=1, outputs=1, cell="gru", hidden=3, dropout=0.5)
    x = np.ones((3, 2, 1), np.float32)
    run = tmp_path / "run"
    assert said(lambda: reel.train(model, [(x, x)], reel.mse, progress=False, run=run)) == []
    assert said(lambda: reel.Run(run).model()) == []
