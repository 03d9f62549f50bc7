"""reel.Run: folders that the programs write, and folders of one's own."""

import json
import math
import subprocess

import numpy as np
import pytest

import reel
from programs import program
from reel import _metrics, _run

DELAY, LENGTH, SYMBOLS, BATCH, STEPS = 6, 3, 4, 5, 12


def words(seed, stream, count):
    """The first words of a stream of Philox 4x32-10 (Salmon et al. 2011), as Reel's tasks draw them."""
    mask, out = 0xFFFFFFFF, []
    for counter in range(-(-count // 4)):
        c = [counter & mask, counter >> 32, stream & mask, stream >> 32]
        k = [seed & mask, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & mask, (a >> 32) ^ c[3] ^ k[1], a & mask]
            k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
        out += c
    return out[:count]


def copying(step):
    """A batch of the copying problem as the program makes it, x and y i32 [T, B]; a power of 2 rejects no draw."""
    T = DELAY + 2 * LENGTH
    x, y = np.zeros((2, T, BATCH), np.int32)
    x[DELAY + LENGTH - 1] = SYMBOLS + 1
    for b in range(BATCH):
        drawn = words(1, step * BATCH + b, 2 * LENGTH)
        for k in range(LENGTH):
            x[k, b] = y[DELAY + LENGTH + k, b] = 1 + (drawn[2 * k] << 32 | drawn[2 * k + 1]) % SYMBOLS
    return x, y


def run_program(out, cell, denormals="keep"):
    """Trains on the copying problem with the program, into the folder `out`."""
    task = ["--delay", DELAY, "--length", LENGTH, "--symbols", SYMBOLS, "--batch", BATCH, "--steps", STEPS]
    model = ["--cell", cell, "--hidden", 8, "--layers", 2, "--dropout", 0.2]
    rule = ["--optimizer", "adam", "--lr", 0.01, "--clip-norm", 0.2]
    rest = ["--valid-every", 4, "--valid-size", 10, "--threads", 1, "--denormals", denormals, "--quiet", "--out", out]
    command = [str(word) for word in (program("copying"), *task, *model, *rule, *rest)]
    subprocess.run(command, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run_program(tmp_path_factory.mktemp("runs") / "copying", "gru")


def test_a_run_of_a_program_is_read(folder):
    run = reel.Run(folder)
    assert run.config["cell"] == "gru" and run.config["hidden"] == 8 and run.config["lr"] == 0.01
    assert isinstance(run.config["gru"], dict)
    assert run.metrics["step"] == [4, 8, 12] and run.metrics["examples"] == [20, 40, 60]
    assert all(0 < loss < 3 for loss in run.metrics["valid_loss"])
    assert run.record["task"] == "copying" and run.record["finished"] and run.record["steps"] == STEPS
    assert {"embedding", "cell1.W_r", "head.V", "optimizer.head.V.0"} <= run.checkpoint().keys()
    assert run.record["best"]["valid_loss"] == min(run.metrics["valid_loss"])
    assert run.best().keys() == {"embedding", "head.V", "head.c"} | {n for n in run.best() if n.startswith("cell")}


def test_names_of_files_and_columns_are_those_of_the_programs(folder):
    for name in (_run.CONFIG, _run.METRICS, _run.RECORD, _run.MODEL, _run.BEST, _run.CHECKPOINT):
        assert (folder / name).is_file(), name
    head = (folder / _run.METRICS).read_text().splitlines()[0]
    assert head.split(",") == list(_metrics.COLUMNS)


def test_its_model_is_rebuilt(folder):
    run = reel.Run(folder)
    model = run.model()
    assert model.count == run.record["parameters"]
    assert all(np.array_equal(v.numpy(), run.best()[k].numpy()) for k, v in model.parameters().items())
    # The validation set: streams far from those of training are not known here, but any examples have a similar loss.
    losses = [reel.cross_entropy(model(x), reel.tensor(y)).item() for x, y in map(copying, range(STEPS))]
    assert np.mean(losses) == pytest.approx(run.metrics["valid_loss"][-1], rel=0.15)


@pytest.mark.parametrize("denormals", ["keep", "flush"])
@pytest.mark.parametrize("cell", ["gru", "full_urnn", "exprnn", "nnrnn"])  # retractions, projections, penalties
def test_training_in_python_gives_the_same_bits(tmp_path, cell, denormals):
    run = reel.Run(run_program(tmp_path / "copying", cell, denormals))
    threads = reel.threads()
    reel.set_threads(1)
    reel.flush_denormals(denormals == "flush")
    model = reel.Model(vocabulary=SYMBOLS + 2, outputs=SYMBOLS + 2, cell=cell, hidden=8, layers=2, dropout=0.2)
    optimizer = reel.optim.Adam(model, 0.01, clip_norm=0.2)
    history = reel.train(model, copying, reel.cross_entropy, steps=STEPS, optimizer=optimizer, valid_every=4,
                         run=tmp_path / "python", progress=False)  # fmt: skip
    reel.set_threads(threads)
    reel.flush_denormals(False)
    found = {**model.parameters(), **model.constants(), **optimizer.state_dict()}
    expected = {name: value for name, value in run.checkpoint().items() if not name.startswith("carry.")}
    assert found.pop("steps") == STEPS and found.keys() == expected.keys()
    for name in expected:
        assert np.array_equal(found[name].numpy(), expected[name].numpy()), name
    for column in ("step", "examples", "train_loss", "grad_norm"):
        assert history.metrics[column] == run.metrics[column]
    record = reel.Run(tmp_path / "python").record
    assert all(record[key] == run.record[key] != "" for key in ("processor", "kernels", "version"))


def write(path, name, text):
    (path / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def make(path, **config):
    return reel.Run.create(path / "run", {"cell": "rnn", **config})


def test_a_folder_of_your_own(tmp_path):
    config = {
        "cell": "rnn",
        "lr": 1e-5,
        "on": True,
        "text": 'a "b" \\ ü\n',
        "rnn": {"activation": "relu", "odd key": 1},
    }
    run = reel.Run.create(tmp_path / "a" / "b", config)
    assert run.config == config and run.metrics["step"] == []
    metrics = reel.Metrics()
    metrics.add(step=3, examples=60, seconds=0.5, train_loss=1e-7)
    run.write_metrics(metrics)
    read = reel.Run(run.path).metrics
    assert read["train_loss"] == [1e-7] and math.isnan(read["valid_loss"][0]) and read["step"] == [3]
    with pytest.raises(reel.Error, match="holds a run already: config.toml"):
        reel.Run.create(run.path)
    with pytest.raises(reel.Error, match="list"):
        reel.Run.create(tmp_path / "c", {"x": [1]})
    for config in ({1: 2}, {"lstm": {1: 2}}):
        with pytest.raises(reel.Error, match=r"\[config.toml\] a key must be text, got 1"):
            reel.Run.create(tmp_path / "c", config)
    assert not (tmp_path / "c").exists()


def test_numbers_of_numpy_and_numbers_that_json_has_not(tmp_path):
    config = {"i": np.int64(3), "half": np.float32(0.5), "x": np.float64(0.1), "yes": np.bool_(True)}
    config["cell"] = {"n": np.int32(2)}
    run = reel.Run.create(tmp_path / "run", config)
    assert run.config == {"i": 3, "half": 0.5, "x": 0.1, "yes": True, "cell": {"n": 2}} and run.config["yes"] is True
    inf, nan = math.inf, math.nan
    run.write_record({"a": [1.5, inf, (nan, -inf)], "b": {"c": inf, "d": np.float32(nan)}, "e": -inf, "n": np.int64(2)})

    def refused(word):
        raise ValueError(word)

    text = (tmp_path / "run" / "run.json").read_text()
    assert json.loads(text, parse_constant=refused) == run.record
    assert run.record == {"a": [1.5, None, [None, None]], "b": {"c": None, "d": None}, "e": None, "n": 2}


def test_metrics_and_best_parameters_with_numbers_of_numpy(tmp_path):
    run, metrics = reel.Run.create(tmp_path / "run"), reel.Metrics()
    metrics.add(step=np.int64(3), examples=np.int32(6), train_loss=np.float32(0.5), accuracy=reel.tensor(0.25))
    metrics["valid_loss"][0] = np.float64(0.125)
    run.write_metrics(metrics)
    assert (tmp_path / "run" / "metrics.csv").read_text().splitlines()[1] == "3,6,,0.5,0.125,0.25,"
    run.write_best({"w": reel.ones(1)}, np.int64(3), np.float64(0.5))
    assert reel.load_metadata(tmp_path / "run" / "best.safetensors") == {"step": "3", "valid_loss": "0.5"}
    with pytest.raises(reel.Error, match="there is no column 'stp'. Hint: step, examples"):
        metrics.add(stp=3)
    with pytest.raises(reel.Error, match="train_loss: a number is needed, got 'x'"):
        metrics.add(step=4, train_loss="x")
    assert all(len(column) == 1 for column in metrics.values())


def test_any_text_is_read_back_and_what_has_no_utf8_is_refused(tmp_path):
    config = {"name": "\U0001f600 \x7f\x00\x1f\u2028\"\\", "\U0001f600": 1}
    assert reel.Run.create(tmp_path / "run", config).config == config
    for config in ({"a": "\ud800"}, {"\udcff": 1}):
        with pytest.raises(reel.Error, match=r"\[config.toml\] a key or a text has no UTF-8: '.ud"):
            reel.Run.create(tmp_path / "no", config)
    assert not (tmp_path / "no").exists()


def test_metrics_to_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    metrics = reel.Metrics()
    metrics.add(step=3, train_loss=0.5)
    frame = metrics.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame["train_loss"].tolist() == [0.5]
    assert list(frame.columns) == list(metrics)


HEADER = "step,examples,seconds,train_loss,valid_loss,accuracy,grad_norm\n"


@pytest.mark.parametrize(
    "name, text, member, said",
    [
        ("config.toml", "cell = ", "config", "config.toml. is damaged"),
        ("config.toml", b"\xff", "config", "no UTF-8"),
        ("metrics.csv", "step,loss\n", "metrics", r"metrics.csv:1. is not a line"),
        ("metrics.csv", HEADER + "1,2,3,4,5,6\n", "metrics", "metrics.csv:2"),
        ("metrics.csv", HEADER + "1,2,3,4,5,6,x\n", "metrics", "metrics.csv:2.*Hint"),
        ("run.json", "{", "record", "run.json. is damaged"),
        ("run.json", "[1]", "record", "not a JSON object"),
    ],
)
def test_damaged_files(tmp_path, name, text, member, said):
    run = make(tmp_path)
    write(tmp_path / "run", name, text)
    with pytest.raises(reel.Error, match=said):
        getattr(run, member)


def test_a_row_that_is_being_written_does_not_count(tmp_path):
    run = make(tmp_path)
    write(tmp_path / "run", "metrics.csv", HEADER + "1,2,3,4,,6,7\n2,4")
    assert run.metrics["step"] == [1] and math.isnan(run.metrics["valid_loss"][0])


def test_what_is_missing(tmp_path):
    with pytest.raises(reel.Error, match="no.* is not a folder. Hint"):
        reel.Run(tmp_path / "no")
    with pytest.raises(reel.Error, match="not the folder of a run: no config.toml"):
        reel.Run(tmp_path)
    run = make(tmp_path)
    (tmp_path / "run" / "metrics.csv").unlink()
    for call, said in (
        (lambda: run.metrics, "metrics.csv. is not there"),
        (lambda: run.record, "run.json. is not there. Hint: .*when the run ends"),
        (run.checkpoint, "checkpoint.safetensors. is not there"),
        (run.model, "checkpoint.safetensors. is not there"),
        (lambda: run.model("last"), '"best" or "checkpoint", got'),
    ):
        with pytest.raises(reel.Error, match=said):
            call()


def test_a_path_with_a_zero_byte_is_refused(tmp_path):
    path = f"{tmp_path}/a\0b"
    for call in (
        reel.load_safetensors,
        reel.load_metadata,
        lambda path: reel.save_safetensors(path, {"w": reel.ones(1)}),
        reel.Run,
        reel.Run.create,
        reel.Model(inputs=1, outputs=1, hidden=2).save,
        reel.Model(inputs=1, outputs=1, hidden=2).load,
    ):
        with pytest.raises(reel.Error, match=r"/a\\x00b'\] is no path: it has a zero byte$"):
            call(path)
    assert list(tmp_path.iterdir()) == []


def test_hints_name_only_what_is_there(tmp_path):
    run = make(tmp_path)
    ended = "is not there. Hint: the folder has no parameters: the run ended before its first validation$"
    for call in (run.best, run.checkpoint, run.model):
        with pytest.raises(reel.Error, match=ended):
            call()
    write(tmp_path / "run", "run.json", '{"diverged_at_step": 3}')
    with pytest.raises(reel.Error, match="no parameters: the run diverged$"):
        run.best()
    write(tmp_path / "run", "run.json", "{")
    with pytest.raises(reel.Error, match="no parameters$"):
        run.best()
    reel.save_safetensors(tmp_path / "run" / "checkpoint.safetensors", {"w": reel.ones(1)})
    with pytest.raises(reel.Error, match=r"Hint: checkpoint\(\) has the last parameters$"):
        run.best()
    (tmp_path / "run" / "checkpoint.safetensors").rename(tmp_path / "run" / "best.safetensors")
    with pytest.raises(reel.Error, match=r"best\(\) has the parameters$"):
        run.checkpoint()


def test_initial_values_are_no_trained_model(tmp_path):
    """As those of a run that diverged at once. Its checkpoint has them, so that a program goes on."""
    model = reel.Model(inputs=2, outputs=1, cell="rnn", hidden=4)
    run, path = make(tmp_path, hidden=4), tmp_path / "run" / "checkpoint.safetensors"
    for metadata, initial in (({"step": "0", "schedule": "0"}, True), ({"step": "1", "schedule": "0"}, False)):
        reel.save_safetensors(path, model.parameters(), metadata)
        with pytest.raises(reel.Error, match="done no update$" if initial else r"checkpoint\(\) has the last parameters$"):
            run.best()
        for call in (lambda: run.model(every_step=True), lambda: model.load(path)):
            if initial:
                with pytest.raises(reel.Error, match="checkpoint.* has done no update, .* initial values. Hint: .*--resume"):
                    call()
            else:
                assert call().count == model.count
        assert run.checkpoint().keys() == model.parameters().keys()


@pytest.mark.parametrize("cell", ["srnn", "lstm", "gru", "urnn", "goru", "sru", "r_transformer"])
@pytest.mark.parametrize("shape", [{"inputs": 5}, {"inputs": 8}, {"vocabulary": 5, "input": "one-hot"}])
def test_models_are_rebuilt_from_weights(tmp_path, cell, shape):
    model = reel.Model(**shape, outputs=3, cell=cell, hidden=8, every_step=False)
    options = {"hidden": 8, "input": shape.get("input", "embedding")}  # a program's config does not have the shape
    run = reel.Run.create(tmp_path / "run", {"cell": cell, **options})
    run.write_best({**model.parameters(), **model.constants()}, 1, 0.5)
    with pytest.raises(reel.Error, match="whether outputs are at every step: there is no run.json yet. Hint"):
        run.model()
    run.write_record({"task": "mnist"})
    x = reel.zeros((3, 2), "i32") if "vocabulary" in shape else reel.normal((3, 2, shape["inputs"]), seed=1)
    assert np.array_equal(run.model()(x).numpy(), model(x).numpy()) and model(x).shape == (2, 3)
    assert run.model(every_step=True)(x).shape == (3, 2, 3)
    run.write_record({"task": "mine"})
    with pytest.raises(reel.Error, match="the task is 'mine'"):
        run.model()


def test_models_of_other_kinds_are_not_rebuilt(tmp_path):
    run = make(tmp_path)
    run.write_best({"story.W": reel.ones(2), "head.V": reel.ones((2, 2))}, 1, 0.5)
    with pytest.raises(reel.Error, match="no stack of cells with a head: story.W.*Hint: best"):
        run.model()
