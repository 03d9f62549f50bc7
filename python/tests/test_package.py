"""The package as a whole: import time, threads, the examples of its pages."""

import ast
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import reel

PYTHON = Path(__file__).resolve().parents[1]


def test_import_is_fast_and_light():
    code = (
        "import time; t = time.process_time(); import reel; t = time.process_time() - t; import sys; "
        "print(t, *(name in sys.modules for name in ('numpy', 'torch', 'pandas')))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(3)
    ]  # processor time, as others may use the machine, too
    assert min(float(r[0]) for r in runs) < 0.3 and runs[0][1:] == ["False"] * 3


@pytest.mark.parametrize("page", ["README.md", "../docs/array-api.md"])
def test_the_examples_of_the_docs_run(page):
    text = (PYTHON / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert blocks
    scope = {}
    for block in sorted(blocks, key=lambda text: "torch" in text):  # those of PyTorch last
        if "torch" in block:
            pytest.importorskip("torch", reason="PyTorch is not installed, so its example is not run")
        exec(compile(block, page, "exec"), scope)


def test_type_checkers_find_what_users_have():
    """PEP 484: a package exports `from m import *`, `from m import X as X`, and what it assigns."""
    exported = {name for name in vars(reel._reel) if name[0] != "_"}
    for node in ast.parse((PYTHON / "reel" / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            exported |= {a.name for a in node.names if a.asname == a.name}
        elif isinstance(node, ast.Assign):
            exported |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    assert {name for name in dir(reel) if name[0] != "_"} - {"array_api", "torch"} <= exported
    stub = Path(reel._reel.__file__).with_name("_reel.pyi")
    if stub.exists():
        text = stub.read_text()
        assert "def __iter__(self) -> Iterator[Tensor]" in text and "def item(self) -> Any" in text
        assert "def assign(self, source: Tensor | numpy.ndarray) -> None" in text  # arrays go where tensors do
        assert "def stack(parts: Sequence[Tensor | numpy.ndarray], axis: int = 0) -> Tensor" in text
        assert "lengths: Tensor | numpy.ndarray | None = None" in text and "weight: Tensor | numpy.ndarray | None" in text
        assert "def exp(x: Tensor | float | SupportsComplex | numpy.ndarray) -> Tensor" in text
        _, numpy, after = text.partition("    def numpy(self) -> numpy.ndarray:")
        assert numpy and "numpy.ndarray" not in re.split(r"\n(?:def|class) ", after)[0]  # the method hides the module
        assert "class IndexingError(Error, IndexError)" in text


def test_only_pip_installs_the_package(tmp_path):
    script = Path(reel._reel.__file__).parents[1] / "cmake_install.cmake"
    if not script.exists():
        pytest.skip("the package was not built in a build folder of CMake")
    for component, count in (("", 0), ("python", 2)):
        options = [f"-DCMAKE_INSTALL_PREFIX={tmp_path}", f"-DCMAKE_INSTALL_COMPONENT={component}"]
        subprocess.run(["cmake", *options, "-P", str(script)], check=True, capture_output=True)
        assert len(list(tmp_path.glob("**/_reel*"))) == count


def test_a_scan_releases_the_interpreter():
    W, xs = reel.normal((256, 256), seed=1) * 0.05, reel.normal((2000, 32, 256), seed=2)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    reel.scan(lambda h, x: (reel.tanh(reel.linear(h, W) + x), None), reel.zeros((32, 256)), xs)
    end = time.perf_counter()
    done.set()
    thread.join()
    assert end - start > 0.02
    inside = [t for t in ticks if start < t < end]
    assert len(inside) > 100 * (end - start)


def test_gradients_in_several_threads():
    failures = []

    def work(k):
        for _ in range(50):
            x = reel.full(3, float(k), "f64")
            if reel.grad(lambda x: reel.sum(x * x))(x).tolist() != [2.0 * k] * 3:
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures


def in_another_thread(f):
    found = []
    thread = threading.Thread(target=lambda: found.append(f()))
    thread.start(), thread.join()
    return found[0]


def test_other_threads_are_outside_of_a_gradient_and_of_a_step():
    x = reel.ones(3)
    assert reel.grad(lambda x: reel.sum(in_another_thread(lambda: x * x) + x))(x).tolist() == [1, 1, 1]
    said = []

    def step(h, x):
        said.append(in_another_thread(lambda: pytest.raises(reel.Error, lambda: h + 1).value))
        return h, None

    reel.scan(step, x, x)
    assert "a step that has ended or another thread" in str(said[0])


def test_threads():
    assert reel.threads() >= 1
    with pytest.raises(reel.Error, match=r"1 or more threads.*test_package.py:\d+"):
        reel.set_threads(0)


def test_errors_name_the_users_line_not_that_of_a_library(tmp_path):
    """Below a library's frames there may be one of users; without one, the library's line is better than none."""
    package = tmp_path / "site-packages" / "tools.py"
    package.parent.mkdir()
    package.write_text("import reel\n\n\ndef product(x):\n    return x @ reel.ones((9, 9))\n")
    user = tmp_path / "user.py"
    user.write_text("import reel, tools\n\nprint('ready')\ntools.product(reel.ones((2, 2)))\n")
    alone = "import threading, reel, tools; x = reel.ones((2, 2))\n"
    alone += "t = threading.Thread(target=tools.product, args=(x,)); t.start(); t.join()"
    for words, place in (([user], "(user.py:4)"), (["-c", alone], "(tools.py:5)")):
        env = {**os.environ, "PYTHONPATH": f"{package.parent}:{Path(reel.__file__).parents[1]}"}
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env)
        assert place in done.stderr, done.stderr


def test_type_checkers_report_names_that_are_not_there():
    """A function __getattr__ of the module would give every name the type Any."""
    body = ast.parse((PYTHON / "reel" / "__init__.py").read_text()).body
    assert not any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in body)
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        reel.no_such
    assert reel.array_api.__name__ == "reel.array_api"


def test_functions_are_pickled_and_copied_by_name():
    import copy
    import pickle

    assert pickle.loads(pickle.dumps(reel.tanh)) is reel.tanh
    assert copy.deepcopy({"act": reel.inverse})["act"] is reel.inverse
