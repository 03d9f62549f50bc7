"""reel.load_plugin: cells in C++ of another project, compiled here with the headers of the build."""

import shutil
import subprocess
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

    twice = tmp_path / "again.so"
    shutil.copy(library, twice)
    with pytest.raises(reel.Error, match="again.so.*two cells are called .lem."):
        reel.load_plugin(twice)
    assert reel.cell("lem", 3, 5) and "lem" in reel.cells()


def test_what_is_no_plugin(tmp_path):
    text = tmp_path / "text.so"
    text.write_text("not a library")
    for path, words in (
        (text, "is no shared library"),
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
