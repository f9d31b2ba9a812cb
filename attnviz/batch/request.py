"""What is asked of every picture of a batch; results of other requests are never mixed with it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnviz.errors import BadOption
from attnviz.tokens import Query
from attnviz.trace import versions
from attnviz.usage import METHOD

BATCH = 8
"""Pictures that pass together."""


PRINTING = frozenset({"python", "matplotlib"})
"""Of the versions that a figure names, those that change no number."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The same for all pictures, and the same on every machine."""

    model: Mapping[str, Any]
    """What `models.load` is given, by name."""
    kind: str
    """`.parquet`, or the suffix of each figure."""
    method: str = METHOD
    query: Query | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """The method's."""
    target: int | str | None = None
    """The class that gradients are of."""
    similar_to: Query | None = None
    """Or the token that the picture's feature is compared with."""
    similar_picture: str | None = None
    """Or the file of another picture."""
    fit: str | None = None
    """None: the picture's own shape where the model takes any size, else a crop."""
    drawing: Mapping[str, Any] = field(default_factory=dict)
    """How figures are drawn."""
    head_metrics: bool = False
    """Whether the table has every metric of every head."""
    batch: int = BATCH
    """Pictures that pass together, where their sizes agree. It may change values' last bits, and is
    no part of the identity: who runs out of memory goes on with fewer."""

    def __post_init__(self) -> None:
        """BadOption for a number of pictures that can't pass together."""
        if self.batch < 1:
            raise BadOption(f"At least 1 picture passes at a time; {self.batch} came.")

    @property
    def is_table(self) -> bool:
        """Whether the results are rows of a table."""
        return self.kind == ".parquet"

    @property
    def alone(self) -> bool:
        """Whether each picture passes by itself.

        Figures, so that they are to the byte those of a single map; and gradients, which are of
        one picture.
        """
        aims = (self.target, self.similar_to, self.similar_picture)
        return not self.is_table or any(aim is not None for aim in aims)

    @property
    def part(self) -> int:
        """Pictures that are in hand at a time."""
        return 1 if self.alone else self.batch

    @property
    def versions(self) -> dict[str, str]:
        """Of all packages that results depend on, on the machine that asks."""
        return {
            name: number
            for name, number in versions().items()
            if not (self.is_table and name in PRINTING)
        }

    def identity(self) -> dict[str, Any]:
        """All that results depend on, in plain values; files by their SHA-256, packages by version.

        Raises BadOption where such a file can't be read.
        """
        model = {name: value for name, value in self.model.items() if name != "device"}
        model["model"] = model.pop("name")
        files = {"checkpoint": model.get("checkpoint"), "similar_picture": self.similar_picture}
        asked = {
            **model,
            "results": self.kind,
            "method": self.method,
            "query": self.query,
            **self.options,
            "target": self.target,
            "similar_to": self.similar_to,
            "fit": self.fit,
            **self.drawing,
            "head_metrics": self.head_metrics,
            "versions": self.versions,
            **{name: None if path is None else _digest(path) for name, path in files.items()},
        }
        return {name: value for name, value in asked.items() if value is not None}


def _digest(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadOption(f"{path} can't be read: {reason}.") from error
