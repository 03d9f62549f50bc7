"""Programs of Reel that tests compare with; a test is skipped where they are not built."""

from pathlib import Path

import pytest

import reel


def program(name):
    """The path of a program beside the extension that is tested, or in build/."""
    for folder in (Path(reel._reel.__file__).parents[2], Path(__file__).resolve().parents[2] / "build"):
        if (folder / "bin" / name).exists():
            return str(folder / "bin" / name)
    pytest.skip(f"the program {name} is not built")
