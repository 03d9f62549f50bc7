"""reel.train: tasks that are learned, validation, early ends, and the folder that it writes."""

import os
import signal
import subprocess

import numpy as np
import pytest

import reel
from programs import program


def adding(step, T=12, B=32):
    """The adding problem: two of T numbers are marked; y [B, 1] is their sum."""
    rng = np.random.default_rng(step)
    x = np.zeros((T, B, 2), np.float32)
    x[..., 0] = rng.uniform(size=(T, B))
    for half in (0, T // 2):
        x[rng.integers(half, half + T // 2, B), np.arange(B), 1] = 1
    return x, (x[..., 0] * x[..., 1]).sum(0)[:, None]


def adder(**options):
    return reel.Model(**{"inputs": 2, "outputs": 1, "cell": "lstm", "hidden": 24, "every_step": False, **options})


def line(step):
    """y = 2 x, for a dict with one weight."""
    x = reel.uniform((1, 8), seed=3, stream=step)
    return x, 2 * x


def line_loss(p, x, y):
    return reel.mse(p["w"] * x, y)


def test_lengths_in_batches():
    """What is in the padding does not matter, in training and in validation."""
    lengths = np.arange(1, 33) % 12 + 1
    results = []
    for padding in (0, 5):

        def batch(i):
            x, y = adding(i)
            x[np.arange(12)[:, None] >= lengths] = padding
            return x, y, lengths

        model = adder(layers=2)
        options = {"steps": 4, "accumulate": 2, "valid": batch(99), "valid_every": 2, "progress": False}
        history = reel.train(model, batch, reel.mse, **options)
        results.append((history.losses, history.best_loss, [p.tolist() for p in model.parameters().values()]))
    assert results[0] == results[1]
    x, y, _ = batch(99)
    assert history.best_loss == reel.mse(model(x, lengths=lengths), reel.asarray(y)).item()
    with pytest.raises(reel.Error, match=r"lengths in a batch are for a Model. Hint: put them into x"):
        reel.train({"w": reel.ones(1)}, [(*line(0), [1])], line_loss, progress=False)
    with pytest.raises(reel.Error, match=r"a batch is a pair \(x, y\), or \(x, y, lengths\), got tuple of 4"):
        reel.train(model, [(x, y, lengths, 1)], reel.mse, progress=False)


def test_the_adding_problem_is_learned():
    model = adder()
    valid = [adding(10**6 + k) for k in range(4)]
    optimizer = reel.optim.Adam(model, 2e-2, clip_norm=1)
    history = reel.train(model, adding, reel.mse, steps=400, optimizer=optimizer, valid=valid, progress=False)
    assert history.steps == len(history.losses) == 400 and history.stopped == "steps"
    assert history.best_loss < 0.02 < 1 / 6  # the loss without memory
    # An independent mean over fresh examples, with the best parameters.
    x, y = adding(2 * 10**6, B=256)
    assert np.mean((model(x).numpy() - y) ** 2) < 0.03
    assert len(history.metrics["step"]) == 20 and min(history.metrics["valid_loss"]) == history.best_loss


def test_a_cell_of_your_own_is_trained():
    p = {"W": reel.normal((16, 1), seed=1) * 0.3, "R": reel.eye(16) * 0.9, "V": reel.normal((1, 16), seed=2) * 0.3}

    def loss(p, xs, y):
        step = lambda h, x: (reel.tanh(reel.linear(x, p["W"]) + reel.linear(h, p["R"])), None)  # noqa: E731
        h, _ = reel.scan(step, reel.zeros((xs.shape[1], 16)), xs)
        return reel.mse(reel.linear(h, p["V"]), y)

    def batch(i):
        xs = reel.uniform((10, 16, 1), seed=5, stream=i)
        return xs, reel.mean(xs, 0)

    before = loss(p, *batch(999)).item()
    reel.train(p, batch, loss, steps=150, optimizer=reel.optim.Adam(p, 1e-2), progress=False)
    assert loss(p, *batch(999)).item() < 0.1 * before


def test_losses_and_updates_are_those_of_a_loop_by_hand():
    p, q = {"w": reel.zeros(1)}, 0.0
    history = reel.train(
        p, line, line_loss, steps=5, optimizer=reel.optim.SGD(p, 0.5), schedule=lambda i: 1 / (1 + i), progress=False
    )
    for i in range(5):
        x = line(i)[0].numpy().astype(np.float64)
        assert history.losses[i] == pytest.approx(np.mean((q * x - 2 * x) ** 2), rel=1e-6)
        q -= 0.5 / (1 + i) * np.mean(2 * (q * x - 2 * x) * x)
    assert p["w"].item() == pytest.approx(q, rel=1e-6)


def test_kinds_of_batches():
    for batches, steps, made, stopped in (
        ([line(0), line(1)], None, 2, "steps"),
        ([line(0), line(1)], 5, 5, "steps"),
        (iter([line(0), line(1)]), 5, 2, "batches"),
        ((line(i) for i in range(3)), None, 3, "batches"),
        ([], 5, 0, "batches"),
    ):
        p = {"w": reel.zeros(1)}
        history = reel.train(p, batches, line_loss, steps=steps, progress=False)
        assert (history.steps, history.stopped) == (made, stopped)


def test_patience_and_best_parameters():
    for restore in (True, False):
        p = {"w": reel.full(1, 1.5)}
        optimizer = reel.optim.SGD(p, 1.9)  # too large: the loss grows
        wild = lambda p, x, y: reel.square(p["w"][0] - 2) * 1.2  # noqa: E731
        history = reel.train(
            p, line, wild, steps=50, optimizer=optimizer, valid=line(7), valid_every=1, patience=3,
            restore_best=restore, progress=False,
        )  # fmt: skip
        assert history.stopped == "patience" and history.steps == history.best_step + 3
        assert (p["w"].item() == history.best["w"].item()) == restore
        assert history.best_loss == min(history.metrics["valid_loss"])


def test_a_second_call_goes_on():
    steps = []
    p = {"w": reel.zeros(1)}
    optimizer = reel.optim.SGD(p, 0.1)
    for _ in range(2):
        reel.train(p, lambda i: steps.append(i) or line(i), line_loss, steps=3, optimizer=optimizer, progress=False)
    assert steps == [0, 1, 2, 3, 4, 5]


def test_parameters_that_are_replaced_between_calls():
    p = {"w": reel.zeros(1), "b": reel.zeros(1)}
    loss = lambda p, x, y: reel.mse(p["w"] * x + p["b"], y)  # noqa: E731
    optimizer = reel.optim.SGD(p, 0.1)
    reel.train(p, line, loss, steps=1, optimizer=optimizer, progress=False)
    p["w"].assign(reel.ones(1))
    reel.train(p, line, loss, steps=1, optimizer=optimizer, progress=False)
    p["w"] = reel.ones(1)
    with pytest.raises(reel.Error, match="w: the dict has another tensor than the optimizer.*Hint: assign"):
        reel.train(p, line, loss, steps=1, optimizer=optimizer, progress=False)
    del p["w"]
    with pytest.raises(reel.Error, match="w: the dict has another"):
        reel.train(p, line, loss, steps=1, optimizer=optimizer, progress=False)


def test_states_carry_over():
    x = reel.normal((12, 2, 1), seed=1, dtype="f64")
    seen = []

    def first_output(outputs, y):
        seen.append(outputs[0].numpy().copy())
        return reel.mse(outputs, y)

    model = reel.Model(inputs=1, outputs=1, cell="gru", hidden=3, dtype="f64")
    whole = model(x).numpy()
    still = reel.optim.SGD(model, 0.0)
    pieces = [(x[t : t + 4], x[t : t + 4]) for t in (0, 4, 8)]
    reel.train(model, pieces, first_output, optimizer=still, carry=True, progress=False)
    np.testing.assert_allclose(seen, whole[[0, 4, 8]], rtol=1e-12)


def test_states_that_cannot_carry_over():
    x = reel.zeros((4, 2, 2))
    for options, what in (
        ({"bidirectional": True}, "a bidirectional model"),
        ({"cell": "r_transformer"}, "a cell without states"),
    ):
        model = reel.Model(**{"inputs": 2, "outputs": 1, "cell": "gru", "hidden": 4, **options})
        with pytest.raises(reel.Error, match=rf"\[train\] carry: {what}.* reads whole sequences.*Hint"):
            reel.train(model, [(x, x[..., :1])], reel.mse, carry=True, progress=False)
        with pytest.raises(reel.Error, match=rf"\[model\] {what}.* reads whole sequences"):
            model(x, state=())
        reel.train(model, [(x, x[..., :1])], reel.mse, valid=(x, x[..., :1]), progress=False)


def test_ctrl_c_returns_what_there_is(tmp_path):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job may ignore it
    p = {"w": reel.zeros(1)}

    def batches(i):
        if i == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return line(i)

    history = reel.train(p, batches, line_loss, steps=100, run=tmp_path / "r", progress=False)
    assert history.stopped == "interrupted" and history.steps in (7, 8)
    assert reel.Run(tmp_path / "r").record["finished"] is False
    assert reel.Run(tmp_path / "r").best()["w"].item() == p["w"].item()


@pytest.mark.parametrize("error", [OSError("disk\nis gone"), SystemExit(3), reel.Error("[mine] no")])
@pytest.mark.parametrize("valid", [None, line(9)])
def test_any_exception_leaves_parameters_and_a_record(tmp_path, error, valid):
    p, at = {"w": reel.zeros(1)}, []

    def batches(i):
        at.append(p["w"].item())
        if i == 7:
            raise error
        return line(i)

    with pytest.raises(type(error)) as caught:
        reel.train(p, batches, line_loss, steps=100, valid=valid, valid_every=2, run=tmp_path / "r", progress=False)
    assert caught.value is error and caught.value.__context__ is None
    run = reel.Run(tmp_path / "r")
    assert run.record["finished"] is False and run.record["steps"] == 7
    assert run.record["error"] == " ".join(f"{type(error).__name__}: {error}".split())
    assert run.best()["w"].item() == (at[7] if valid is None else at[6])


def test_what_cannot_be_written_does_not_hide_the_exception(tmp_path, capsys):
    own = reel.Run.create(tmp_path / "r", {})

    def batches(i):
        (tmp_path / "r" / "run.json").mkdir(exist_ok=True)
        raise OSError("no more data")

    with pytest.raises(OSError, match="no more data"):
        reel.train({"w": reel.zeros(1)}, batches, line_loss, steps=9, run=own, progress=False)
    assert capsys.readouterr().err.startswith("[train] the end of the run is not written down: ")


def test_progress_says_what_validations_say(capsys):
    p = {"w": reel.zeros(1)}
    reel.train(p, line, line_loss, steps=4, valid=line(9), valid_every=2, accuracy=lambda *a: 0.25)
    out, err = capsys.readouterr()
    assert out == "" and [text.split()[1] for text in err.splitlines()] == ["2", "4"]
    assert "valid_loss" in err and "accuracy 0.25" in err


def test_a_run_folder_is_written_and_compare_reads_it(tmp_path):
    model = adder(hidden=8, cell="srnn", width=4, seed=5)
    optimizer = reel.optim.Adam(model, 1e-2, clip_norm=0.5, group_lr={"head": 0.02})
    folder = tmp_path / "run"
    history = reel.train(
        model, adding, reel.mse, steps=20, optimizer=optimizer, valid=adding(99), valid_every=5, run=folder,
        progress=False,
    )  # fmt: skip
    run = reel.Run(folder)
    assert run.metrics == {**history.metrics, "accuracy": run.metrics["accuracy"]}
    assert np.isnan(run.metrics["accuracy"]).all() and run.metrics["examples"] == [160, 320, 480, 640]
    assert run.config["srnn"] == {"width": 4} and run.config["seed"] == 5 and run.config["optimizer"] == "adam"
    assert run.config["lr"] == 1e-2 and run.config["clip-norm"] == 0.5 and run.config["group-lr"] == "head=0.02"
    record = run.record
    assert record["finished"] and record["steps"] == 20 and record["parameters"] == model.count
    assert record["valid_loss"] == history.metrics["valid_loss"][-1] and record["accuracy"] is None
    x = adding(3)[0]
    assert np.array_equal(run.model()(x).numpy(), model(x).numpy())
    with pytest.raises(reel.Error, match="holds a run already"):
        reel.train(model, adding, reel.mse, steps=1, run=folder, progress=False)
    with pytest.raises(reel.Error, match="run. holds a run already: best.safetensors. Hint"):
        reel.train(model, adding, reel.mse, steps=1, run=run, progress=False)
    assert reel.Run(folder).metrics == run.metrics and reel.Run(folder).record == record
    own = reel.Run.create(tmp_path / "own", {"note": "mine"})
    reel.train(model, adding, reel.mse, steps=1, run=own, progress=False)
    assert own.config == {"note": "mine"} and own.record["steps"] == 1
    out = tmp_path / "both.svg"
    done = subprocess.run([program("compare"), folder, "--out", out], capture_output=True, text=True)
    assert done.returncode == 0 or "gnuplot" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda p: reel.train(p["w"], line, line_loss, steps=1), "a Model, or a tuple, list or dict of tensors is expected"),
        (lambda p: reel.train(p, line, line_loss), "without end. Hint: steps"),
        (lambda p: reel.train(p, line, line_loss, steps=-1), "steps: an integer of 0 or more is needed, got -1"),
        (lambda p: reel.train(p, line, line_loss, steps=1, valid_every=0), "valid_every: an integer of 1 or more"),
        (lambda p: reel.train(p, line, line_loss, steps="3"), r"\[train\] steps: an integer of 0 .* got '3'"),
        (lambda p: reel.train(p, line, line_loss, steps=1, valid=3), "valid: a batch or a list of batches .* got 3"),
        (lambda p: reel.train(p, 3, line_loss, steps=1), "batches: an iterable or a function is needed, got 3"),
        (lambda p: reel.train(p, line, 3, steps=1), "loss: a function is needed, got 3"),
        (
            lambda p: reel.train(p, line, lambda p, x, y: line_loss(p, x, y).cast("c64"), steps=1),
            r"loss: a real scalar is needed, got c64 \(\). Hint",
        ),
        (lambda p: reel.train(p, line, line_loss, steps=1, carry=True), "carry is for a Model"),
        (lambda p: reel.train(p, line, line_loss, steps=1, patience=1), "patience needs valid"),
        (lambda p: reel.train(p, lambda i: 3, line_loss, steps=1), r"pair \(x, y\), or .*, got int"),
        (lambda p: reel.train(p, line, line_loss, steps=1, valid=[]), "no batch to validate on"),
        (lambda p: reel.train(p, line, lambda p, x, y: 1.0, steps=1), "scalar tensor, got float"),
        (lambda p: reel.train(p, line, line_loss, steps=1, optimizer=reel.optim.SGD(dict(p))), "other parameters"),
        (lambda p: reel.train(p, line, line_loss, steps=9, optimizer=reel.optim.SGD(p, 1e30)), "Hint: a lower lr"),
        (lambda p: reel.train(p, line, line_loss, steps=9, schedule=lambda i: float("nan")), "schedule .* got nan for"),
        (lambda p: reel.train(p, line, line_loss, steps=9, schedule=lambda i: 1 - i), "got -1.0 for update 2"),
    ],
)
def test_errors(call, words):
    with pytest.raises(reel.Error, match=words):
        call({"w": reel.zeros(1)})


def test_divergence_keeps_the_parameters_and_is_recorded(tmp_path):
    p = {"w": reel.ones(1)}
    poisoned = lambda i: line(i) if i < 3 else (line(i)[0], line(i)[1] * float("nan"))  # noqa: E731
    with pytest.raises(reel.Error, match=r"the loss became nan at step 4.*Hint: a lower lr, or clip_norm=1"):
        reel.train(p, poisoned, line_loss, steps=9, run=tmp_path / "r", progress=False)
    assert np.isfinite(p["w"].item()) and p["w"].item() != 1
    assert reel.Run(tmp_path / "r").record["diverged_at_step"] == 4


@pytest.mark.parametrize("shape", [(32, 5), (32,)])
def test_examples_of_a_function_are_rows(shape):
    X, y = np.ones(shape, np.float32), np.ones(32, np.float32)
    p = {"w": reel.zeros([5] if len(shape) == 2 else [])}

    def loss(p, x, y):
        return reel.mse(x @ p["w"] if x.ndim == 2 else x * p["w"], y)

    optimizer = reel.optim.SGD(p, 1e-3)
    history = reel.train(p, [(X, y)] * 3, loss, optimizer=optimizer, valid_every=1, progress=False)
    assert history.metrics["examples"] == [32, 64, 96]


def test_a_tuple_is_one_batch_and_a_list_is_many():
    """x and y may be pairs themselves, so a tuple of two pairs is refused."""
    x, y = np.full((4, 3), 1.0, np.float32), np.full((4, 3), 3.0, np.float32)

    def loss(p, xs, ys):
        x, y = (part[0] if isinstance(part, tuple) else part for part in (xs, ys))
        return reel.mse(x * p["w"], y)

    def valid_loss(valid):
        history = reel.train({"w": reel.ones(())}, [(x, x)], loss, valid=valid, progress=False)
        return history.metrics["valid_loss"][-1]

    pair = ((x, x), (y, y))
    for one in ((x, y), [(x, y)], [(x, y)] * 2, ((x, x), y), (x, (y, y)), [pair], ((x, y),) * 3, ((x, y),) * 4):
        assert valid_loss(one) == pytest.approx(4, rel=1e-5)
    for unclear in (pair, ([x, x], [y, y])):
        with pytest.raises(reel.Error, match=r"valid: a tuple of pairs may be one batch or two. Hint: \[batch\], or list"):
            valid_loss(unclear)


def test_what_is_no_optimizer_and_a_batch_without_a_list():
    p, x = {"w": reel.ones(2)}, np.ones((3, 2), "f4")
    loss = lambda p, x, y: reel.mse(x @ p["w"], y)  # noqa: E731
    with pytest.raises(reel.Error, match=r"\[train\] optimizer: .* got 'adam'. Hint: reel.optim.Adam\(model\)"):
        reel.train(p, [(x, x[:, 0])], loss, optimizer="adam")
    with pytest.raises(reel.Error, match=r"\[train\] batches: .* seems to be one. Hint: \[\(x, y\)\]"):
        reel.train(p, (x, x[:, 0]), loss, steps=2)
    assert reel.train(p, ((x, x[:, 0]), (x, x[:, 1])), loss, progress=False).steps == 2
