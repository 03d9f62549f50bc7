"""reel.Model, against loops in NumPy; its files."""

import copy
import math
import pickle

import numpy as np
import pytest

import reel


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_model(**options):
    return reel.Model(**{"vocabulary": 5, "outputs": 3, "cell": "lstm", "hidden": 4, "dtype": "f64", **options})


def lstm(p, x, prefix="cell."):
    """Long short-term memory by its equations: x [T, B, i] -> [T, B, n]."""
    h = c = np.zeros((x.shape[1], p[prefix + "b_i"].size))
    out = []
    for x_t in x:
        i, f, g, o = (
            x_t @ p[f"{prefix}W_{k}"].T + h @ p[f"{prefix}R_{k}"].T + p[f"{prefix}b_{k}"] + p[f"{prefix}b2_{k}"]
            for k in "ifgo"
        )
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.array(out)


def values_of(model):
    return {name: value.numpy() for name, value in model.parameters().items()}


def test_a_model_of_symbols_is_embedding_cells_and_head():
    model = lstm_model(layers=2, embedding=6)
    x = np.random.default_rng(0).integers(0, 5, (7, 2)).astype(np.int32)
    p = values_of(model)
    h = lstm(p, lstm(p, p["embedding"][x], "cell1."), "cell2.")
    np.testing.assert_allclose(model(x).numpy(), h @ p["head.V"].T + p["head.c"], rtol=1e-10)
    assert p["embedding"].shape == (5, 6) and model.count == sum(v.size for v in p.values())
    assert "cell2.W_i" in repr(model) and str(model.count) in repr(model)


def test_a_model_of_numbers_with_the_last_output_only():
    model = reel.Model(inputs=3, outputs=2, cell="rnn", hidden=4, every_step=False, dtype="f64")
    x = np.random.default_rng(1).normal(size=(6, 2, 3))
    p = values_of(model)
    h = np.zeros((2, 4))
    for x_t in x:
        h = np.tanh(h @ p["cell.W"].T + x_t @ p["cell.U"].T + p["cell.b"] + p["cell.b2"])
    np.testing.assert_allclose(model(x).numpy(), h @ p["head.V"].T + p["head.c"], rtol=1e-10)


def test_both_directions_with_layer_norm_and_residual():
    model = lstm_model(layers=2, input="one-hot", bidirectional=True, layer_norm=True, residual=True)
    x = np.random.default_rng(2).integers(0, 5, (7, 2)).astype(np.int32)
    for name in ("norm2.gain", "norm2.bias"):
        model.parameters()[name].assign(reel.uniform((8,), 0.5, 1.5, seed=3, dtype="f64"))
    p = values_of(model)

    def both(x, prefix):
        return np.concatenate([lstm(p, x, prefix), lstm(p, x[::-1], prefix + "backward.")[::-1]], -1)

    h = both(np.eye(5)[x], "cell1.")
    centred = h - h.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    h = h + both(p["norm2.gain"] * normed + p["norm2.bias"], "cell2.")
    np.testing.assert_allclose(model(x).numpy(), h @ p["head.V"].T + p["head.c"], rtol=1e-10)
    assert model.initial(2) == []
    with pytest.raises(reel.Error, match=r"a bidirectional model reads whole sequences: .*Hint.*test_model.py:\d+"):
        model(x, state=())


def test_symbols_that_are_not_there():
    for symbol in (-1, 5):
        with pytest.raises(reel.Error, match=rf"\[model\] symbols are 0 to 4, got {symbol} \(test_model.py:\d+"):
            lstm_model()(reel.tensor([[0, 1], [4, symbol]]))


def test_a_stack_of_unlike_layers():
    model = reel.Model(inputs=3, outputs=2, cell=["rnn", "lstm"], hidden=[5, 4], dtype="f64", **{"rnn.biases": 1})
    p = values_of(model)
    x = np.random.default_rng(3).normal(size=(6, 2, 3))
    assert "cell1.b2" not in p and p["cell2.W_i"].shape == (4, 5)
    h, below = np.zeros((2, 5)), []
    for x_t in x:
        h = np.tanh(h @ p["cell1.W"].T + x_t @ p["cell1.U"].T + p["cell1.b"])
        below.append(h)
    y = lstm(p, np.array(below), "cell2.") @ p["head.V"].T + p["head.c"]
    np.testing.assert_allclose(model(x).numpy(), y, rtol=1e-10)
    assert model.config["cell"] == "rnn,lstm" and model.config["hidden"] == "5,4" and model.config["layers"] == 2
    assert [s.shape for s in model.initial(3)] == [(3, 5), (3, 4), (3, 4)]


def test_zoneout_moves_states_to_the_mean_outside_of_training():
    model = reel.Model(inputs=3, outputs=2, cell="rnn", hidden=4, zoneout=0.25, dtype="f64")
    p = values_of(model)
    x = np.random.default_rng(4).normal(size=(6, 2, 3))
    h, out = np.zeros((2, 4)), []
    for x_t in x:
        h = 0.25 * h + 0.75 * np.tanh(h @ p["cell.W"].T + x_t @ p["cell.U"].T + p["cell.b"] + p["cell.b2"])
        out.append(h @ p["head.V"].T + p["head.c"])
    np.testing.assert_allclose(model(x).numpy(), out, rtol=1e-10)
    assert model(x, step=1).tolist() == model(x, step=1).tolist() != model(x, step=2).tolist()


def test_a_run_of_a_stack_is_read_again(tmp_path):
    model = reel.Model(inputs=3, outputs=2, cell="gru,rnn", hidden="5,4", zoneout=0.1, **{"gru.biases": 1})
    x = np.random.default_rng(5).normal(size=(6, 2, 3)).astype(np.float32)
    y = np.zeros((6, 2, 2), np.float32)
    reel.train(model, [(x, y)] * 3, reel.mse, progress=False, run=tmp_path / "run")
    again = reel.Run(tmp_path / "run").model()
    assert again.config == model.config and again(x).tolist() == model(x).tolist()


@pytest.mark.parametrize("every_step", [True, False])
@pytest.mark.parametrize("options", [{}, {"layers": 2}, {"bidirectional": True}, {"cell": "r_transformer"}])
def test_lengths(every_step, options):
    model = reel.Model(
        **{"vocabulary": 5, "outputs": 2, "cell": "lstm", "hidden": 4, "every_step": every_step} | options
    )
    x, lengths = reel.integers((6, 3), 0, 5, seed=1), [6, 2, 4]
    y = model(x, lengths=lengths)
    for b, n in enumerate(lengths):
        alone = model(x[:n, b : b + 1])
        found = y[:n, b : b + 1] if every_step else y[b : b + 1]
        np.testing.assert_allclose(found.numpy(), alone.numpy(), rtol=1e-4, atol=1e-6)
    gradient = reel.grad(lambda p: reel.sum(model(x, parameters=p, lengths=lengths)))(model.parameters())
    assert gradient.keys() == model.parameters().keys()
    with pytest.raises(reel.Error, match=r"\[model\] lengths are 0 to the 6 steps of the input, got 7 for sequence 0"):
        model(x, lengths=[7, 2, 4])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_and_pickles(copied):
    """An average of the parameters, say, which a copy keeps."""
    model = lstm_model(cell=["gru", "srnn"], hidden=[4, 8], dropout=0.5, seed=3, **{"srnn.width": 6})
    model.parameters()["head.c"].assign(reel.ones(3, "f64"))
    other = copied(model)
    x = reel.integers((8, 3), 0, 5, seed=1)
    assert other.config == model.config and other.settings == model.settings and repr(other) == repr(model)
    for options in ({}, {"step": 4}):
        assert np.array_equal(other(x, **options).numpy(), model(x, **options).numpy())
    for name, p in other.parameters().items():
        p.assign(0.5 * p)
        assert not np.shares_memory(p.numpy(), model.parameters()[name].numpy())
    assert model.parameters()["head.c"].tolist() == [1] * 3


def test_one_hot_symbols():
    model = lstm_model(input="one-hot")
    x = np.array([[0, 3], [4, 1]], np.int32)
    p = values_of(model)
    assert "embedding" not in p and p["cell.W_i"].shape == (4, 5)
    np.testing.assert_allclose(model(x).numpy(), lstm(p, np.eye(5)[x]) @ p["head.V"].T + p["head.c"], rtol=1e-10)


def test_states_carry_over():
    model = lstm_model(layers=2)
    x = reel.integers((8, 2), 0, 5, seed=1)
    whole, last = model(x, state=())
    first, state = model(x[:3], state=model.initial(2))
    second, end = model(x[3:], state=state)
    np.testing.assert_allclose(np.concatenate([first.numpy(), second.numpy()]), whole.numpy(), rtol=1e-12)
    assert [s.shape for s in end] == [(2, 4)] * 4
    assert all(np.allclose(a.numpy(), b.numpy(), rtol=1e-12) for a, b in zip(last, end))


@pytest.mark.parametrize("cell", list(reel.cells()))
def test_gradients_of_every_cell_are_slopes(cell):
    model = reel.Model(inputs=3, outputs=2, cell=cell, hidden=4, dtype="f64", seed=3)
    x = reel.normal((4, 2, 3), seed=1, dtype="f64")
    other, direction = (
        {
            name: reel.normal(value.shape, seed=seed, stream=k, dtype="f64").cast(value.dtype)
            for k, (name, value) in enumerate(model.parameters().items())
        }
        for seed in (4, 5)
    )
    p = {name: value + 0.05 * other[name] for name, value in model.parameters().items()}  # away from kinks at 0

    def loss(p):
        penalty = model.penalty(p)
        value = reel.sum(reel.square(model(x, parameters=p)))
        return value if penalty is None else value + penalty

    gradient = reel.grad(loss)(p)
    slope = sum(np.vdot(direction[k].numpy(), gradient[k].numpy()).real for k in p)
    eps = 1e-6
    up, down = (loss({k: p[k] + s * eps * direction[k] for k in p}).item() for s in (1, -1))
    assert abs(slope - (up - down) / (2 * eps)) < 1e-5 * max(1, abs(slope)) and slope != 0


def test_dropout_is_a_function_of_seed_and_step():
    x = reel.integers((8, 3), 0, 5, seed=1)
    model, same, other = (lstm_model(layers=2, dropout=0.5, seed=s) for s in (1, 1, 2))
    for name, value in model.parameters().items():
        other.parameters()[name].assign(value)
    ys = [model(x), model(x, step=0), same(x, step=0), model(x, step=1), other(x, step=0)]
    ys = [y.numpy() for y in ys]
    assert np.array_equal(ys[1], ys[2])
    assert all(not np.array_equal(ys[a], ys[b]) for a, b in ((0, 1), (1, 3), (1, 4)))


def test_penalty():
    model = reel.Model(inputs=2, outputs=1, cell="nnrnn", hidden=4, delta=3, T_decay=0, dtype="f64")
    alpha = reel.tensor(np.array([1.5, 0.0]))
    gradient = reel.grad(lambda a: model.penalty({"cell.alpha": a}))(alpha)
    assert model.penalty({"cell.alpha": alpha}).item() == 3 * (0.25 + 1)  # delta |alpha - 1|^2
    assert gradient.tolist() == [3.0, -6.0] and lstm_model().penalty() is None


def test_how_the_head_starts():
    glorot, eunn = (6 / (4 + 3)) ** 0.5, (6 / (5 + 3)) ** 0.5  # 4 units, 5 symbols, 3 outputs
    for start, most, bias in (("linear", 1 / 2, None), ("glorot-uniform", glorot, 0), ("eunn", eunn, 0.01)):
        model = lstm_model(input="one-hot", head_init=start)
        values = values_of(model)
        assert 0.6 * most < abs(values["head.V"]).max() <= most and model.config["head-init"] == start
        assert bias is None or np.all(values["head.c"] == bias)
    assert np.all(values_of(lstm_model(head_init="glorot-normal"))["head.c"] == 0)
    assert np.array_equal(values_of(lstm_model())["head.V"], values_of(lstm_model(head_init="linear"))["head.V"])


def test_seeds_and_settings():
    assert values_of(lstm_model())["head.V"].tolist() == values_of(lstm_model())["head.V"].tolist()
    assert values_of(lstm_model())["head.V"].tolist() != values_of(lstm_model(seed=2))["head.V"].tolist()
    narrow, wide = (reel.Model(inputs=2, outputs=1, hidden=8, width=w) for w in (4, 32))
    assert narrow.count < wide.count
    deep = reel.Model(inputs=2, outputs=1, hidden=8, layers=2, **{"srnn.layers": 3})  # of the stack, and of its cells
    assert sum(name.startswith("cell2.") for name in deep.parameters()) > 5
    whole = reel.Model(inputs=2, outputs=1, cell="r_transformer", hidden=8)
    assert whole(reel.ones((3, 1, 2))).shape == (3, 1, 1)  # a whole sequence at once


def test_files(tmp_path):
    path = tmp_path / "model.safetensors"
    model, other = lstm_model(), lstm_model(seed=2)
    model.save(path)
    assert other.load(path) is other
    x = reel.integers((8, 3), 0, 5, seed=1)
    assert np.array_equal(model(x).numpy(), other(x).numpy())
    own = {**reel.load_safetensors(path), "optimizer.head.c.0": reel.ones(3), "carry.0": reel.ones(2)}
    reel.save_safetensors(path, own)  # as a checkpoint
    other.load(path)
    for build, words in (
        (lambda: lstm_model(hidden=5), r"embedding is f64 \(5, 4\), the model has f64 \(5, 5\)"),
        (lambda: lstm_model(layers=2), "lacks cell1.*and has cell.*print"),
        (lambda: lstm_model(dtype="f32"), "the model has f32"),
    ):
        bad = build()
        before = values_of(bad)["head.c"].copy()
        with pytest.raises(reel.Error, match=f"model.safetensors.*{words}"):
            bad.load(path)
        assert np.array_equal(before, values_of(bad)["head.c"])


def test_constants_are_in_files(tmp_path):
    model = reel.Model(inputs=2, outputs=1, cell="srnn", hidden=4)
    for cell in reel.cells():
        model = reel.Model(inputs=2, outputs=1, cell=cell, hidden=4)
        if model.constants():
            break
    model.save(tmp_path / "m.safetensors")
    assert reel.load_safetensors(tmp_path / "m.safetensors").keys() >= model.constants().keys() != set()


def test_safetensors_files(tmp_path):
    path = tmp_path / "x.safetensors"
    z = np.arange(4).reshape(2, 2) * (1 + 1j)
    reel.save_safetensors(path, {"z": z, "i": reel.tensor([1, 2]), "t": np.arange(6.0).reshape(2, 3).T}, {"step": "3"})
    found = reel.load_safetensors(path)
    assert list(found) == ["z", "i", "t"] and reel.load_metadata(path)["step"] == "3"
    assert np.array_equal(found["z"].numpy(), z) and found["i"].tolist() == [1, 2]
    assert np.array_equal(found["t"].numpy(), np.arange(6.0).reshape(2, 3).T)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    for call, words in (
        (lambda: reel.load_safetensors(path), "x.safetensors"),
        (lambda: reel.load_safetensors(tmp_path / "no"), "no.*No such file"),
        (lambda: reel.save_safetensors(path, {"x": np.arange(3)}), "x must be a tensor, or an array of f32.* got an array of int64. Hint: reel.tensor"),
        (lambda: reel.save_safetensors(path, {"x": np.array(["a"])}), r"got an array of <U1 \("),
        (lambda: reel.save_safetensors(path, reel.ones(2)), "a tuple, list or dict of tensors is expected, got reel.Tensor"),
        (lambda: reel.save_safetensors(path, {}, {"n": 3}), "metadata: texts are needed, got 'n': 3. Hint"),
        (lambda: reel.save_safetensors(path, {}, "n"), "metadata: a dict of texts is needed, got 'n'"),
        (lambda: reel.save_safetensors(tmp_path / "no" / "x", {"x": reel.ones(2)}), "No such file"),
    ):
        with pytest.raises(reel.Error, match=words):
            call()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: reel.Model(outputs=2), "one of inputs .* and vocabulary"),
        (lambda: reel.Model(inputs=1, vocabulary=2, outputs=2), "one of inputs"),
        (lambda: lstm_model(outputs=0), "outputs: an integer of 1 or more is needed, got 0"),
        (lambda: lstm_model(outputs=10**30), "outputs: an integer from 1 to 9223372036854775807 is needed, got 10"),
        (lambda: lstm_model(layers=0), "layers: an integer from 1 to 1000 is needed, got 0"),
        (lambda: lstm_model(layers=1001), "layers: an integer from 1 to 1000 is needed, got 1001"),
        (lambda: lstm_model(hidden=[2] * 1001), "layers: an integer from 1 to 1000 is needed, got 1001"),
        (lambda: lstm_model(layers="3"), "layers: an integer from 1 to 1000 is needed, got '3'"),
        (lambda: lstm_model(hidden=0), "hidden: an integer of 1 or more is needed, got 0"),
        (lambda: lstm_model(hidden=math.nan), "hidden: an integer of 1 or more is needed, got nan"),
        (lambda: lstm_model(inputs=2.5), "inputs: an integer of 0 or more is needed, got 2.5"),
        (lambda: lstm_model(seed=-1), "seed: an integer of 0 or more is needed, got -1"),
        (lambda: lstm_model(cell=None), "cell: a name or a list of names is needed, got None"),
        (lambda: lstm_model(cell=["gru", 3]), r"cell: a name or a list of names is needed, got \['gru', 3\]"),
        (lambda: lstm_model(dropout="a"), "dropout: a number is needed, got 'a'"),
        (lambda: lstm_model(residual=2), "residual: True or False is needed, got 2"),
        (lambda: lstm_model(input=3), "input: a text is needed, got 3"),
        (lambda: lstm_model(cell="srnn", width=-1), "^srnn.width: an integer in 1..[0-9]+ expected, got -1"),
        (lambda: lstm_model(dropout=1), "dropout: a share from 0 to below 1"),
        (lambda: lstm_model(input="onehot"), "is not one of embedding, one-hot"),
        (lambda: lstm_model(head_init="glorot"), 'head_init: "glorot" is not one of linear, glorot-normal'),
        (lambda: lstm_model(dtype="i32"), "dtype: f32 or f64"),
        (lambda: lstm_model(cell="lsmt"), "Hint: cell = lstm"),
        (lambda: lstm_model(width=2), "lstm.width: the cell lstm has no such setting"),
        (lambda: lstm_model(cell=["gru", "rnn"], hidden=[4, 4, 4]), "hidden: 3 sizes for 2 cells"),
        (lambda: lstm_model(cell=["gru", "rnn"], layers=3), "layers: cell and hidden have 2 layers, got 3"),
        (lambda: lstm_model(cell=["gru", "rnn"], biases=1), 'biases.*Hint: "gru.biases"'),
        (lambda: lstm_model(hidden="4,x"), "hidden: integers are needed, got '4,x'"),
        (lambda: lstm_model(hidden=[]), "hidden"),
        (lambda: lstm_model(zoneout=1.0), "zoneout.*a share from 0 to below 1"),
        (lambda: lstm_model()(reel.ones((2, 2))), r"i32 \[T, B\], got f32.*test_model.py:\d+"),
        (lambda: lstm_model()(reel.full((2, 2), 5, "i32")), "5"),
        (lambda: reel.Model(inputs=3, outputs=1)(reel.ones((2, 2, 4))), "with i = 3, got f32"),
        (lambda: reel.Model(inputs=3, outputs=1)(reel.ones((0, 2, 3))), "1 or more time steps"),
        (lambda: lstm_model()(reel.zeros((2, 2), "i32"), state=[reel.ones(2)]), "is 2 tensors, or none"),
        (lambda: lstm_model()(reel.zeros((2, 2), "i32"), state=[reel.ones((2, 4))] * 2), "must be f64"),
        (lambda: lstm_model()(reel.zeros((2, 2), "i32"), parameters={"q": reel.ones(2)}), 'is called "q"'),
        (lambda: lstm_model()(reel.zeros((2, 2), "i32"), parameters={"head.c": reel.ones(2)}), "head.c is f64"),
        (lambda: lstm_model().initial(-1), "0 or more"),
    ],
)
def test_errors(call, words):
    with pytest.raises(reel.Error, match=words):
        call()


def test_a_setting_of_a_cell_that_the_model_has_not():
    for cell in ("gru", ["gru", "lstm"]):
        names = ", ".join([cell] if isinstance(cell, str) else cell)
        with pytest.raises(reel.SettingError, match=f"srnn.width: is a setting of srnn, and the model has {names}$"):
            reel.Model(inputs=1, outputs=1, cell=cell, **{"srnn.width": 3})


def test_a_setting_is_given_once():
    for settings in ({"width": 4, "srnn.width": 5}, {"srnn.width": 5, "width": 5}):
        with pytest.raises(reel.SettingError, match="^width: is given twice, as width and as srnn.width. Hint: leave one out$"):
            reel.Model(inputs=1, outputs=1, cell="srnn", **settings)
    model = reel.Model(inputs=1, outputs=1, cell="srnn", layers=2, **{"srnn.layers": 3})  # the model's and the cell's
    assert model.settings == {"layers": 3}
