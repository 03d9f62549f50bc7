"""The peers' own Python environment: `bench-peers --install` makes it, and programs here run in it if they need to."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reel/peers"
PINS = Path(__file__).with_name("requirements.txt")


def installed():
    """Whether the environment is there and complete: the last thing that is written into it is a copy of the pins."""
    return (FOLDER / "pins.txt").is_file()


def install():
    """Makes the environment, or brings it to the pinned versions. Ends the program where that fails."""
    copy = FOLDER / "pins.txt"
    if not installed() or copy.read_text() != PINS.read_text():
        print(f"bench-peers: installing PyTorch and JAX in {FOLDER}", flush=True)
        copy.unlink(missing_ok=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True)
            subprocess.run([FOLDER / "bin/python", "-m", "pip", "install", "-r", PINS], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"bench-peers: --install: {error}. Hint: it needs Python's venv, a network, and 10 GB in {FOLDER}")
        copy.write_text(PINS.read_text())
    enter()


def enter():
    """Runs this program anew with the environment's Python, unless that is what runs it."""
    if Path(sys.prefix).resolve() != FOLDER.resolve():
        python = str(FOLDER / "bin/python")
        os.execv(python, [python, *sys.orig_argv[1:]])


def need(modules):
    """Enters the environment, if it is there and this Python lacks one of the modules."""
    if installed() and any(find_spec(module) is None for module in modules):
        enter()
