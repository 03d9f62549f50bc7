"""Arguments of Python that are of the wrong kind: refused in one line, with name, rule and value."""

from __future__ import annotations

import contextlib
import numbers
import operator
import os
import warnings
from typing import Any, Iterable, Iterator

from ._reel import Error, SettingError

_MOST = 2**63 - 1


def shown(value: Any) -> str:
    """The value where it is short, else what it is."""
    text = repr(value)
    return text if len(text) <= 80 and "\n" not in text else type(value).__name__


def kind_of(value: Any) -> str:
    """What it is, with the module: torch.Tensor."""
    found = type(value)
    module = found.__module__.replace("reel._reel", "reel")
    return found.__qualname__ if module == "builtins" else f"{module}.{found.__qualname__}"


def integer(name: str, value: Any, low: int, high: int = _MOST, error: type[Error] = SettingError) -> int:
    """The value as an int."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is not None and low <= number <= high:
        return number
    endless = high >= _MOST and (number is None or number < low)
    rule = f"of {low} or more" if endless else f"from {low} to {high}"
    raise error(f"{name}: an integer {rule} is needed, got {shown(value)}")


def number(name: str, value: Any) -> float:
    """The value as a number of Python; True is none."""
    try:
        real = float(value)
    except (TypeError, ValueError, OverflowError, Error):
        real = None
    if real is None or isinstance(value, (str, bytes)) or is_bool(value):
        raise SettingError(f"{name}: a number is needed, got {shown(value)}")
    return value if isinstance(value, (int, float)) else real


def is_bool(value: Any) -> bool:
    """Whether it is True or False, of Python or of NumPy."""
    return type(value).__name__ in ("bool", "bool_")


def plain(value: Any) -> Any:
    """NumPy's numbers and booleans as Python's."""
    if is_bool(value):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else value


def flag(name: str, value: Any, error: type[Error] = SettingError) -> bool:
    """The value as a bool; NumPy has one of its own."""
    if not is_bool(value):
        raise error(f"{name}: True or False is needed, got {shown(value)}")
    return bool(value)


def text(name: str, value: Any) -> str:
    """The value, if it is a str."""
    if not isinstance(value, str):
        raise SettingError(f"{name}: a text is needed, got {shown(value)}")
    return value


def warn_of_no_effect(options: Iterable[tuple[str, Any, Any, bool, str]], depth: int) -> None:
    """Warns the caller, so many frames up, of options with another value than the usual one where they do not work; an
    option is its name, its value, the usual one, whether it works, and why not."""
    for name, value, usual, works, why in options:
        if value != usual and not works:
            warnings.warn(f"{name} = {value!r} has no effect: {why}", stacklevel=depth + 1)


@contextlib.contextmanager
def said_before() -> Iterator[None]:
    """Does not warn of options without effect: what is made again has said so when it was made."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* has no effect: ")
        yield


def path(given: str | bytes | os.PathLike) -> str:
    """The path as a str. A zero byte would end it early, and another file would be read or written."""
    name = os.fsdecode(given)
    if "\0" in name:
        raise Error(f"[{shown(name)}] is no path: it has a zero byte")
    return name
