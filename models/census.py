"""Every name of timm's with what it offers: the table docs/models.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable

from timm.models import list_models, model_entrypoint

from models.search import Found, describe

HEAD = (
    "name",
    "family",
    "parameters",
    "input rows",
    "input columns",
    "grid rows",
    "grid columns",
    "layers drawn",
    "why not",
)


def cells(found: Found) -> tuple[object, ...]:
    """A row of the table; empty where there is nothing to say."""
    family = model_entrypoint(found.name).__module__.rpartition(".")[2]
    if found.grid is None:
        return found.name, family, *[""] * 6, found.why_not
    return found.name, family, found.parameters, *found.size, *found.grid, found.layers, ""


def table(
    names: Iterable[str] | None = None, *, done: Callable[[str], object] = lambda name: None
) -> str:
    """The table of these names, of all without any. Each is built, without weights: minutes."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEAD)
    for name in list_models() if names is None else names:
        writer.writerow(cells(describe(name)))
        done(name)
    return file.getvalue()
