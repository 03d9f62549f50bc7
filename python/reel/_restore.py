"""Cells as copy and pickle rebuild them: by their settings, and the values of their parameters."""

from __future__ import annotations

from typing import Any, Mapping

from . import _reel
from ._check import said_before
from ._reel import Cell, Tensor


def cell_arguments(cell: Cell) -> tuple:
    """What cell() makes such a cell of."""
    settings, values = dict(cell._settings), {**cell.parameters(), **cell.constants()}
    return cell.name, cell.input_size, cell.hidden_size, cell._seed, cell.dtype.name, settings, values


def cell(
    name: str,
    input_size: int,
    hidden_size: int,
    seed: int,
    dtype: str,
    settings: Mapping[str, str],
    values: Mapping[str, Tensor],
) -> Cell:
    """A cell with these parameters."""
    with said_before():
        made = _reel.cell(name, input_size, hidden_size, seed, dtype, **settings)
    assign({**made.parameters(), **made.constants()}, values)
    return made


def assign(places: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Overwrites tensors by name."""
    for name, place in places.items():
        place.assign(values[name])
