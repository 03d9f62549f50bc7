"""reel.load_plugin: cells in C++ of another project, compiled here with the headers of the build."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reel

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_cell" / "lem.cpp"

SECOND_TANH = """
namespace {
struct SecondTanh {
  static constexpr reel::Traits traits{.name = "tanh", .kind = reel::Kind::elementwise, .cost = 1, .differentiable = false};
  reel::Spec infer(reel::Inputs in) const { return in[0].spec(); }
  void run(reel::Inputs, reel::Tensor&) const {}
};
REEL_OP(SecondTanh)
}
"""


def compiled(source, folder):
    """The path of the shared library that is made of a source."""
    headers = Path(reel._reel.__file__).parents[2] / "include"
    compiler = shutil.which("g++")
    if not (headers / "reel").is_dir() or not compiler:
        pytest.skip("there are no headers of Reel, or no g++")
    library = folder / "plugin.so"
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-fno-gnu-unique", f"-I{headers}", str(source), "-o", str(library), "-lfmt"]
    subprocess.run(command, check=True)
    return library


def python(code, folder, plugins=""):
    """Another Python, in a folder."""
    package = str(Path(reel.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": package, "REEL_PLUGINS": plugins}
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)


def test_a_cell_of_a_plugin(tmp_path):
    library = compiled(EXAMPLE, tmp_path)
    reel.load_plugin(library)
    reel.load_plugin(library)  # nothing new
    assert reel.cells()["lem"]["settings"]["dt"]["kind"] == "real"
    cell = reel.cell("lem", 3, 5, dt=0.5, dtype="f64")
    xs = reel.normal([7, 2, 3], seed=1, dtype=reel.f64)
    p = {name: value.numpy() for name, value in cell.parameters().items()}
    y = z = np.zeros((2, 5))
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    gate = lambda g, h, x: h @ p["W" + g].T + x @ p["V" + g].T + p["b" + g]  # noqa: E731
    for x in xs.numpy():
        dt1, dt2 = 0.5 * sigmoid(gate("1", y, x)), 0.5 * sigmoid(gate("2", y, x))
        z = (1 - dt1) * z + dt1 * np.tanh(gate("z", y, x))
        y = (1 - dt2) * y + dt2 * np.tanh(gate("y", z, x))
    hs, last = cell.run(xs)
    assert np.allclose(hs.numpy()[-1], y, atol=1e-13)
    reel.check_grads(lambda x: cell.run(x)[0], xs)
    with pytest.raises(reel.SettingError, match="lem.dt"):
        reel.cell("lem", 3, 5, dt=7)
    model = reel.Model(inputs=3, outputs=1, cell="lem", hidden=5)
    assert model(reel.zeros([4, 2, 3])).shape[-1] == 1

    reel.load_plugin(library)  # again: it stays as it is
    x = reel.zeros([4, 2, 3])
    reel.train(model, [(x, x[..., :1])], reel.mse, run=tmp_path / "run", progress=False)
    assert reel.Run(tmp_path / "run").record["plugins"] == [str(library)]
    # Another process: without the plugin, and with it by the environment.
    code = "import reel; print(reel.Run('run').model().config['cell'], reel._reel._plugins())"
    done = python(code, tmp_path)
    assert f"no cell \"lem\"; the run had plugins. Hint: reel.load_plugin('{library}')" in done.stderr
    done = python(code, tmp_path, "plugin.so::./plugin.so")
    assert done.stdout.split() == ["lem", f"['{library}']"], done.stderr
    for other in ("reel.cell('lem', 1, 1)", "reel.Model(inputs=1, outputs=1, cell='lem')"):
        done = python("import reel; " + other, tmp_path)
        assert "Hint: reel.load_plugin(FILE.so) loads cells of other projects" in done.stderr
    assert "Hint: cell = lstm" in python("import reel; reel.cell('lstn', 1, 1)", tmp_path).stderr
    done = python("import reel", tmp_path, "plugin.so:gone.so")
    assert "ImportError: REEL_PLUGINS: [gone.so] there is no such file" in done.stderr

    twice = tmp_path / "again.so"
    shutil.copy(library, twice)
    with pytest.raises(reel.Error, match="again.so.*two cells are called .lem."):
        reel.load_plugin(twice)
    assert reel.cell("lem", 3, 5) and "lem" in reel.cells()


def test_a_cell_that_throws_what_is_no_exception(tmp_path):
    source = tmp_path / "thrower.cpp"
    source.write_text(EXAMPLE.read_text().replace('"lem"', '"thrower"').replace("return std::make_unique", "if (n == 1) throw 42;\nreturn std::make_unique"))
    reel.load_plugin(compiled(source, tmp_path))
    assert reel.cell("thrower", 1, 2)
    with pytest.raises(reel.Error, match=r"threw what is no std::exception. Hint: throw reel::Error.*test_plugin.py:\d+"):
        reel.cell("thrower", 1, 1)


def test_what_is_no_plugin(tmp_path):
    text = tmp_path / "text.so"
    text.write_text("not a library")
    for path, words in (
        (text, "is not a shared library"),
        (tmp_path / "gone.so", "there is no such file"),
        (str(tmp_path), "a shared library is expected"),
    ):
        with pytest.raises(reel.Error, match=words):
            reel.load_plugin(path)
    source = tmp_path / "empty.cpp"
    source.write_text("int nothing() { return 0; }")
    with pytest.raises(reel.Error, match="there is no new one"):
        reel.load_plugin(compiled(source, tmp_path))
    op = tmp_path / "op.cpp"  # a taken name of an op: nothing of the plugin stays
    op.write_text(EXAMPLE.read_text().replace('"lem"', '"lem_2"') + SECOND_TANH)
    with pytest.raises(reel.Error, match="two ops are called .tanh."):
        reel.load_plugin(compiled(op, tmp_path))
    assert "lem_2" not in reel.cells()
    assert "lstm" in reel.cells()
