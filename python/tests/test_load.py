"""Which of a wheel's extension modules a processor gets."""

import importlib
import pathlib
import subprocess
import sys

import pytest

from reel._load import choose_level, processor_flags

V2 = {"sse4_2", "popcnt"}
V3 = V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
BOTH = ["x86-64-v3", "x86-64-v4"]


@pytest.mark.parametrize(
    "flags, there, highest, level",
    [
        (V4, BOTH, "", "x86-64-v4"),
        (V3, BOTH, "", "x86-64-v3"),
        (V4 - {"avx512vl"}, BOTH, "", "x86-64-v3"),
        (V4, BOTH, "x86-64-v3", "x86-64-v3"),
        (V4, ["x86-64-v3"], "", "x86-64-v3"),
        (V3, BOTH, "x86-64-v4", "x86-64-v3"),
    ],
)
def test_the_highest_level_that_runs(flags, there, highest, level):
    assert choose_level(flags, there, highest) == level


@pytest.mark.parametrize(
    "flags, there, highest, words",
    [
        (V2, BOTH, "", "this processor cannot run"),
        (V4 - {"avx2"}, BOTH, "", "this processor cannot run"),
        (V3, ["x86-64-v4"], "", "this processor cannot run"),
        (V4, ["x86-64-v4"], "x86-64-v3", "REEL_CPU_LEVEL=x86-64-v3 excludes"),
        (V4, BOTH, "avx2", "REEL_CPU_LEVEL is 'avx2'; the levels are x86-64-v3, x86-64-v4"),
    ],
)
def test_none_that_runs(flags, there, highest, words):
    with pytest.raises(ImportError, match=words):
        choose_level(flags, there, highest)


def test_this_processor_has_flags():
    assert "sse2" in processor_flags()


def test_the_source_folder_says_what_it_is(tmp_path, monkeypatch):
    package = tmp_path / "source"
    package.mkdir()
    for name, text in (("__init__", ""), ("_load", pathlib.Path(sys.modules["reel._load"].__file__).read_text())):
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="source is the package's source and has no compiled module. Hint: pip install"):
        importlib.import_module("source._load").extension()


def test_reel_can_be_imported_again():
    text = """
import sys, reel
x = reel.tensor([1.0, 2.0])
for name in [name for name in sys.modules if name.startswith("reel")]:
    del sys.modules[name]
import reel as again
from reel import _reel
import reel._reel, reel.array_api
assert again._reel is _reel is sys.modules["reel._reel"] and isinstance(x, again.Tensor)
print(again.sum(x).item(), again.grad(lambda t: again.sum(t * t))(x).tolist())
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "3.0 [2.0, 4.0]\n"), done.stderr
