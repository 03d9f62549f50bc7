"""Loads the extension module. A wheel has one for each level of x86-64 (levels/x86-64-v3, ...), other installations one that
was compiled for their machine. REEL_CPU_LEVEL names the highest level that may be taken."""

import importlib.machinery
import importlib.util
import os
import pathlib
import sys

_FLAGS = {  # what /proc/cpuinfo calls the features that a level adds to the one before
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}


def processor_flags() -> set:
    """What the first processor of /proc/cpuinfo can do; empty when it does not say."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()


def choose_level(flags: set, there: list, highest: str = "") -> str:
    """The highest level, of those that are there, that a processor with these flags can run."""
    if highest and highest not in _FLAGS:
        raise ImportError(f"REEL_CPU_LEVEL is {highest!r}; the levels are {', '.join(_FLAGS)}")
    chosen = None
    for level, features in _FLAGS.items():
        if not features <= flags:
            break
        if level in there:
            chosen = level
        if level == highest:
            break
    if chosen:
        return chosen
    why = f"REEL_CPU_LEVEL={highest} excludes" if highest and _FLAGS[highest] <= flags else "this processor cannot run"
    raise ImportError(
        f"this wheel has code for {', '.join(there)}, which {why}. Hint: pip install . in the repository's folder compiles "
        "it for this machine"
    )


def extension():
    """The module reel._reel. It can be loaded once in a process: where reel was removed from sys.modules and is imported
    again, it is the one that was there."""
    loaded = sys.__dict__.setdefault("_reel_extensions", {})  # by folder
    folder = str(pathlib.Path(__file__).parent)
    if folder not in loaded:
        loaded[folder] = _loaded(pathlib.Path(folder))
    return sys.modules.setdefault(f"{__package__}._reel", loaded[folder])


def _loaded(folder):
    levels = folder / "levels"
    if not levels.is_dir():
        try:
            from . import _reel
        except ImportError:
            if list(folder.glob("_reel*.so")):
                raise
            raise ImportError(
                f"{folder} is the package's source and has no compiled module. Hint: pip install . in the repository's "
                "folder, and another working folder than this one's"
            ) from None
        return _reel
    there = sorted(folder.name for folder in levels.iterdir())
    level = choose_level(processor_flags(), there, os.environ.get("REEL_CPU_LEVEL", ""))
    [path] = (levels / level).glob("_reel*.so")
    loader = importlib.machinery.ExtensionFileLoader(f"{__package__}._reel", str(path))
    spec = importlib.util.spec_from_file_location(f"{__package__}._reel", path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    loader.exec_module(module)
    return module
