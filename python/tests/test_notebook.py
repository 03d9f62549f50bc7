"""The notebooks run from top to bottom. Needs nbclient and ipykernel: scripts/test-python nbclient ipykernel."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert [path.name for path in NOTEBOOKS] == ["own_cell.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_outputs_are_not_committed(path):
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_runs(path):
    reason = "no {0}. Hint: scripts/test-python nbclient ipykernel"
    nbclient = pytest.importorskip("nbclient", reason=reason.format("nbclient"))
    pytest.importorskip("ipykernel", reason=reason.format("ipykernel"))
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()  # raises what a cell raises
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert "LEM" in printed and "ms" in printed
