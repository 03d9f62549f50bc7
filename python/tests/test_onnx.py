"""Files of the program to_onnx in ONNX Runtime: every cell with every choice of its settings, and the models of runs."""

import json
import subprocess

import numpy as np
import pytest

import reel
from programs import program

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
ort.set_default_logger_severity(3)  # it warns of optional inputs

INPUTS, HIDDEN = 5, 8
# Whole numbers, and choices that only go together.
MORE = {
    "goru": [{"style": "householder", "reflections": 2}, {"style": "tunable", "capacity": 4, "reset": "off"}],
    "gru": [{"reset": "before", "biases": "1"}, {"activation": "modrelu", "biases": "1"}],
    "enrnn": [{"short": 2, "epsilon": 0.1, "normalise": "on"}],
    "eurnn": [{"style": "tunable", "capacity": 4, "field": "complex"}],
    "lstm": [{"peephole": "full", "norm": "layer", "biases": "1", "initial": "trained"}],
    "lt_rnn": [{"pool": 2, "clip": 0.5}],
    "nru": [{"memory": 16, "heads": 4, "head_activation": "relu", "norm": "layer", "norm_limit": 1e6}],
    "rnn": [{"biases": "1", "norm": "layer"}],
    "sru": [{"p": 7, "q": 3}],
    "srnn": [{"width": 16, "activation": "elu"}],
}


def to_onnx(*words):
    done = subprocess.run([program("to_onnx"), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def session(path):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"])


def outputs(model, feeds):
    return dict(zip([o.name for o in model.get_outputs()], model.run(None, feeds)))


def parts(name, value, complex_state):
    """A state of Reel as the tensors that a file has."""
    return {name + ".re": value.real, name + ".im": value.imag} if complex_state else {name: value}


def difference(found, expected):
    assert np.isfinite(found).all() and found.shape == expected.shape
    return np.max(np.abs(found - expected)) / max(1, np.max(np.abs(expected)))


def results(cell, x, state):
    """What a cell gives, as the tensors that a file has."""
    hs, last = cell.run(x, state)
    found = {"y": hs.numpy()}
    for (key, _, is_complex), s in zip(cell.states, last):
        found |= parts("last." + key, s.numpy(), is_complex)
    return found


def nudged(x, seed):
    """x, of which each number is a last place of f32 larger or smaller."""
    signs = np.random.default_rng(seed).choice([-1, 1], size=x.shape)
    return reel.tensor(x.numpy() * (1 + 2.0**-23 * signs)).cast(x.dtype)


def test_ops(tmp_path):
    """Each op that the table of to_onnx has, with what it computes in Reel (tests/onnx/onnx_cases.cpp)."""
    done = subprocess.run([program("onnx_cases"), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = [path.stem for path in sorted(tmp_path.glob("*.onnx"))]
    assert len(names) > 80
    for name in names:
        model = session(str(tmp_path / f"{name}.onnx"))
        tensors = {k: v.numpy() for k, v in reel.load_safetensors(str(tmp_path / f"{name}.safetensors")).items()}
        found = outputs(model, {i.name: tensors[i.name] for i in model.get_inputs()})
        for key, value in found.items():
            np.testing.assert_allclose(value, tensors[key], rtol=1e-5, atol=1e-5, err_msg=f"{name} {key}")


def settings_of(name):
    yield {}
    for setting, about in reel.cells()[name]["settings"].items():
        for choice in about.get("choices", ()):
            if choice != about["default"]:
                yield {setting: choice}
    yield from MORE.get(name, [])


def make(name, width, dtype, settings):
    return reel.cell(name, width, HIDDEN, seed=3, dtype=dtype, **settings)


def exported(tmp_path, cell, settings, *more):
    weights, path = str(tmp_path / "W.safetensors"), str(tmp_path / "cell.onnx")
    reel.save_safetensors(weights, {**cell.parameters(), **cell.constants()})
    words = [word for k, v in settings.items() for word in (f"--{cell.name}.{k}", v)]
    to_onnx("--cell", cell.name, "--input-size", cell.input_size, "--hidden", HIDDEN, "--dtype", cell.dtype.name, *words,
            "--weights", weights, "--output", path, *more)
    return session(path)


@pytest.mark.filterwarnings("ignore:.* has no effect: ")  # settings at random
@pytest.mark.parametrize("name", [n for n, c in reel.cells().items() if n != "r_transformer"])
def test_cell(name, tmp_path):
    worst = {"f32": 0.0, "rounding": 0.0, "f64": 0.0}
    tried = 0
    for settings in settings_of(name):
        width = HIDDEN if settings.get("inputs") == "identity" or name == "rnn-id" else INPUTS
        try:
            cells = {dtype: make(name, width, dtype, settings) for dtype in ("f64", "f32")}
        except reel.Error:  # choices that do not go together
            continue
        tried += 1
        for key, value in {**cells["f32"].parameters(), **cells["f32"].constants()}.items():
            exact = {**cells["f64"].parameters(), **cells["f64"].constants()}[key]
            exact.assign(value.cast(exact.dtype))
        models = {dtype: exported(tmp_path, cell, settings) for dtype, cell in cells.items()}
        for T, B in ((1, 1), (7, 3), (100, 1), (100, 3)):
            x = reel.normal((T, B, width), seed=T, dtype="f64")
            fresh = cells["f64"].initial(B)
            given = [s + 0.3 * reel.normal(s.shape, seed=7, stream=k, dtype="f64").cast(s.dtype)
                     for k, s in enumerate(fresh)]
            for state in (None, given):
                found, expected = {}, {}
                for dtype, cell in cells.items():
                    real = {"f32": np.float32, "f64": np.float64}[dtype]
                    feeds = {"x": x.numpy().astype(real)}
                    own = None
                    if state is not None:
                        own = [s.cast(f.dtype) for s, f in zip(state, cell.initial(B))]
                        for (key, _, is_complex), s in zip(cell.states, own):
                            feeds |= parts("first." + key, s.numpy(), is_complex)
                    expected[dtype] = results(cell, x.cast(dtype), own)
                    found[dtype] = outputs(models[dtype], feeds)
                    assert found[dtype].keys() == expected[dtype].keys()
                for key in expected["f64"]:
                    f64 = difference(found["f64"][key], expected["f64"][key])
                    f32 = difference(found["f32"][key], expected["f32"][key])
                    rounding = difference(expected["f32"][key].astype(np.float64), expected["f64"][key])
                    assert f64 < 1e-8, (settings, T, B, key)
                    # Some cells with random weights double a rounding error every few steps, also in Reel alone: how far
                    # that goes one run does not tell.
                    if f32 >= max(1e-5, 4 * rounding):
                        others = [results(cells["f32"], nudged(x, k).cast("f32"), own)[key] for k in range(4)]
                        rounding = max(rounding, *(difference(o.astype(np.float64), expected["f64"][key]) for o in others))
                    assert f32 < max(1e-5, 4 * rounding), (settings, T, B, key)
                    for kind, value in (("f32", f32), ("rounding", rounding), ("f64", f64)):
                        worst[kind] = max(worst[kind], value)
    assert tried > 0
    print(f"| {name} | {tried} | {worst['f32']:.1g} | {worst['rounding']:.1g} | {worst['f64']:.1g} |")


@pytest.mark.parametrize("name", ["lstm", "srnn", "eurnn"])
def test_lengths(name, tmp_path):
    settings = {"field": "complex"} if name == "eurnn" else {}
    cell = make(name, INPUTS, "f64", settings)
    model = exported(tmp_path, cell, settings, "--lengths")
    x = reel.normal((9, 4, INPUTS), seed=1, dtype="f64").numpy()
    lengths = np.array([9, 1, 5, 8])
    found = outputs(model, {"x": x, "lengths": lengths})
    for b, n in enumerate(lengths):
        hs, last = cell.run(reel.tensor(np.ascontiguousarray(x[:n, b : b + 1])))
        assert difference(found["y"][:n, b], hs.numpy()[:, 0]) < 1e-12
        for (key, _, is_complex), s in zip(cell.states, last):
            for part, value in parts("last." + key, s.numpy(), is_complex).items():
                assert difference(found[part][b], value[0]) < 1e-12


def test_cell_without_a_step_is_refused(tmp_path):
    done = subprocess.run([program("to_onnx"), "--cell", "r_transformer", "--output", str(tmp_path / "m.onnx")],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "[r_transformer] this cell reads whole sequences" in done.stderr
    assert not (tmp_path / "m.onnx").exists()


MODELS = {
    "gru": [],
    "lstm_two_layers": ["--cell", "lstm", "--layers", 2],
    "unlike_layers": ["--cell", "gru,srnn,eurnn", "--hidden", "6,6,8", "--layer-norm"],
    "residual_norm": ["--cell", "gru", "--layers", 3, "--residual", "--layer-norm"],
    "bidirectional": ["--cell", "lstm", "--layers", 2, "--bidirectional"],
    "bidirectional_residual": ["--cell", "gru", "--layers", 2, "--bidirectional", "--residual"],
    "zoneout": ["--cell", "lstm", "--zoneout", 0.2],
    "trained_start": ["--cell", "lstm", "--lstm.initial", "trained"],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Sequences of unequal length, with columns far from 0 and of unlike size."""
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("data") / "data.csv"
    rows = ["id,a,b,kind,size"]
    sequences = []
    for s in range(40):
        n = int(rng.integers(4, 9))
        a, b = 1000 + 50 * rng.standard_normal(n), 0.01 * rng.standard_normal(n)
        a, b = np.round(a, 3), np.round(b, 6)
        sequences.append(np.stack([a, b], 1))
        kind = "up" if a[-1] > a[0] else "down"
        rows += [f"{s},{a[t]:.3f},{b[t]:.6f},{kind},{a[: t + 1].mean() + 100 * b[t]:.5f}" for t in range(n)]
    path.write_text("\n".join(rows) + "\n")
    return str(path), sequences


def train(task, out, *words):
    subprocess.run([program(task), *map(str, words), "--out", str(out), "--quiet"], check=True, capture_output=True)


@pytest.mark.parametrize("target,at", [("kind", "last"), ("size", "each")])
@pytest.mark.parametrize("name", MODELS)
def test_model_of_a_table(name, target, at, table, tmp_path):
    data, sequences = table
    out, path = tmp_path / "run", str(tmp_path / "model.onnx")
    hidden = [] if "--hidden" in MODELS[name] else ["--hidden", 6]
    cell = [] if "--cell" in MODELS[name] else ["--cell", "gru"]
    train("table", out, "--data", data, "--group", "id", "--target", target, "--inputs", "a,b", "--at", at, "--epochs", 2,
          *cell, *hidden, *MODELS[name])
    answers = tmp_path / "answers.npy"
    subprocess.run([program("predict"), str(out), "--input", data, "--output", str(answers), "--quiet"], check=True)
    expected = np.load(answers)
    to_onnx(out, "--lengths", "--output", path)
    model = session(path)
    lengths = np.array([len(s) for s in sequences])
    x = np.full((lengths.max(), len(sequences), 2), 7.0)
    for b, s in enumerate(sequences):
        x[: len(s), b] = s
    y = outputs(model, {"x": x, "lengths": lengths})["y"]
    found = y if at == "last" else np.concatenate([y[:n, b] for b, n in enumerate(lengths)])
    assert difference(found, expected.reshape(found.shape)) < 1e-5
    meta = model.get_modelmeta().custom_metadata_map
    assert json.loads(meta["reel.inputs"]) == ["a", "b"]
    if target == "kind":
        assert sorted(json.loads(meta["reel.classes"])) == ["down", "up"]

    # Without lengths, one sequence is whole; its second half goes on from the states after the first.
    to_onnx(out, "--output", path)
    model = session(path)
    one = x[: lengths[0], :1]
    whole = outputs(model, {"x": one})
    assert difference(whole["y"], y[:, :1] if at == "each" and lengths[0] == len(y) else
                      (y[: lengths[0], :1] if at == "each" else y[:1])) < 1e-5
    if "--bidirectional" in MODELS[name]:
        assert list(whole) == ["y"]
        return
    half = lengths[0] // 2
    first = outputs(model, {"x": one[:half]})
    rest = outputs(model, {"x": one[half:], **{k.replace("last.", "first."): v for k, v in first.items() if k != "y"}})
    assert difference(rest["y"], whole["y"][half:] if at == "each" else whole["y"]) < 1e-5


def test_targets_far_from_0(tmp_path):
    """Values near 1.7e9, of which f32 knows one in 128, are as predict has them; table.json must be there."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(80).round(4)
    data, out, path, answers = (str(tmp_path / n) for n in ("data.csv", "run", "m.onnx", "y.npy"))
    rows = [f"{v},{1.7e9 + 40 * v:.3f}" for v in x]
    (tmp_path / "data.csv").write_text("\n".join(["x,time", *rows]) + "\n")
    train("table", out, "--data", data, "--target", "time", "--inputs", "x", "--at", "each", "--window", 8, "--steps", 9,
          "--cell", "gru", "--hidden", 6)
    subprocess.run([program("predict"), out, "--input", data, "--output", answers, "--quiet"], check=True)
    to_onnx(out, "--output", path)
    model = session(path)
    y = outputs(model, {"x": x.reshape(-1, 1, 1)})["y"]
    assert y.dtype == np.float64 and np.abs(y.reshape(-1) - np.load(answers).reshape(-1)).max() < 1e-3
    (tmp_path / "run" / "table.json").unlink()
    done = subprocess.run([program("to_onnx"), out, "--output", path], capture_output=True, text=True)
    assert done.returncode == 1 and "table.json] is gone" in done.stderr


def test_characters(tmp_path):
    (tmp_path / "text.txt").write_text("abé\n" * 300)
    out, path = str(tmp_path / "run"), str(tmp_path / "m.onnx")
    train("charlm", out, "--text", tmp_path / "text.txt", "--cell", "gru", "--hidden", 4, "--batch", 2, "--unroll", 9,
          "--steps", 2)
    to_onnx(out, "--output", path)
    assert json.loads(session(path).get_modelmeta().custom_metadata_map["reel.characters"]) == ["\n", "a", "b", "é"]


@pytest.mark.parametrize("dtype,bound", [("f32", 1e-5), ("f64", 1e-13)])
@pytest.mark.parametrize("kind", ["embedding", "one-hot"])
def test_model_of_symbols(kind, dtype, bound, tmp_path):
    out, path = tmp_path / "run", str(tmp_path / "model.onnx")
    train("copying", out, "--cell", "lstm,gru", "--hidden", "6,7", "--input", kind, "--delay", 5, "--length", 3,
          "--symbols", 4, "--steps", 3, "--dtype", dtype)
    to_onnx(out, "--output", path)
    model = session(path)
    x = np.random.default_rng(1).integers(0, 6, (11, 3))
    run = reel.Run(out).model()
    assert difference(outputs(model, {"x": x})["y"], run(reel.tensor(x.astype(np.int32))).numpy()) < bound


@pytest.mark.parametrize("words,error", [
    (["--cell", "lstm"], "--output: the name of the file is needed"),
    (["RUN", "--hidden", "3", "--output", "m.onnx"], "--hidden: RUN has this setting already; leave it out"),
    (["RUN", "--srnn.width", "3", "--output", "m.onnx"], "--srnn.width: RUN has this setting already; leave it out"),
    (["--cell", "lstm", "--layer", "2", "--output", "m.onnx"], "--layer chooses from the --weights of a run"),
    (["--cell", "lstm", "--weights", "", "--output", "m.onnx"], "--weights: the name of the file is empty"),
    (["RUN", "--output", "model.json"], "--output model.json: a name that ends with .onnx is expected"),
    (["--cell", "lstm", "--weights", "W.onnx", "--output", "W.onnx"], "this is the file of --weights"),
])
def test_bad_usage(words, error, tmp_path):
    done = subprocess.run([program("to_onnx"), *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and error in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "m.onnx").exists()


def test_an_ending_in_capitals(tmp_path):
    to_onnx("--cell", "rnn", "--output", str(tmp_path / "M.ONNX"))
    assert (tmp_path / "M.ONNX").exists()
