"""Where results are kept: a folder of figures or one table, with the journal of what is done."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import parquet

from attnviz.again import chosen_options
from attnviz.batch.columns import COLUMNS, schema, unpacked, written
from attnviz.batch.journal import STAYS, Entry, Journal
from attnviz.batch.request import Request
from attnviz.batch.worker import Result
from attnviz.errors import BadOption
from attnviz.export import KINDS
from attnviz.naming import stem_of
from attnviz.paper import Paper
from attnviz.used import flag_of
from attnviz.writing import write_whole

JOURNAL = "batch.journal"
"""In a folder of figures; a table's journal has the table's name with `.journal` after it."""

LIST = "pictures.csv"
"""In a folder of figures: which figure is of which picture."""

TABLE = ".parquet"
"""What a table's name ends in."""

GROUP = 1024
"""Rows of a table that are written at once, and read back at once."""

Done = Mapping[str, int]
"""Picture → where its entry begins in the journal."""


class Output(Protocol):
    """What keeps the results of one request."""

    path: Path
    journal: Path

    def prepare(self) -> None:
        """Make room; BadOption where something is in the way, or nothing can be written."""

    def require_own(self) -> None:
        """BadOption where what is there is not of the request that the journal is of.

        Asked with the journal's lock held: nobody else writes there.
        """

    def leave(self) -> None:
        """Take away what was made for results that never came."""

    def keep(self, result: Result) -> dict[str, Any]:
        """Keep what is not in the journal; what the journal is to say of it."""

    def holds(self, name: str, size: int | None) -> bool:
        """Whether the result of a picture, of so many bytes by the journal, is still there."""

    def drop(self, name: str) -> None:
        """Take away the result of a picture that is another one now, and could not be done."""

    def finish(self, journal: Journal, done: Done, *, changed: bool) -> None:
        """Write what is made of all results; `changed` tells whether any is new."""


def output_of(path: Path, request: Request) -> Output:
    """The output at that path: a table for `.parquet`, else a folder of figures."""
    return Table(path, request) if request.is_table else Figures(path, request)


def kind_of(path: str, figures: str | None) -> str:
    """What is written there: `.parquet`, or the suffix of figures in a folder.

    Raises BadOption for a name that is neither a folder's nor a table's.
    """
    suffix = Path(path).suffix.lower()
    folder = path.endswith(os.sep) or os.path.isdir(path) or not suffix
    if not (path.endswith(os.sep) or os.path.isdir(path)) and Path(path).name.lower() == TABLE:
        raise BadOption(
            f"{path!r} is a suffix alone: give the table a name, as maps{TABLE} (a folder of that"
            f" name ends in {os.sep})."
        )
    if not folder and suffix == TABLE:
        if figures is not None:
            raise BadOption(f"{path} is a table, and has no figures: leave --as out.")
        return suffix
    if not folder:
        raise BadOption(
            f"A batch is written as one table, NAME.parquet, or as figures into a folder; {path!r}"
            f" ends in {suffix}. Choose one of both (a folder with a dot in its name ends in"
            f" {os.sep})."
        )
    return f".{figures or 'png'}"


class Figures:
    """A folder with a figure of each picture, and a list of which is of which."""

    def __init__(self, path: Path, request: Request) -> None:
        """The folder, and what its figures are; BadOption for what none can be."""
        if request.kind not in KINDS:
            raise BadOption(f"Figures are {', '.join(KINDS)}; {request.kind!r} came.")
        if request.head_metrics:
            raise BadOption("Head metrics are columns of a table: give NAME.parquet as the output.")
        chosen_options(Paper, request.drawing)
        self.path, self.kind, self.journal = path, request.kind, path / JOURNAL

    def require_own(self) -> None:
        """The folder is, if its journal is: what a killed run left half-written goes."""
        for half in self.path.glob(".attnviz-*.part"):
            half.unlink(missing_ok=True)

    def leave(self) -> None:
        """Take the folder away again where it is empty."""
        with suppress(OSError):
            self.path.rmdir()

    def prepare(self) -> None:
        """Make the folder, or see that it is this batch's own."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            strange = not self.journal.exists() and any(self.path.iterdir())
        except (OSError, ValueError) as error:
            raise BadOption(f"{self.path} can't be written: {_reason(error)}.") from error
        if strange:
            raise BadOption(
                f"The folder {self.path} is not empty, and in it is no {JOURNAL} that a batch could"
                " go on from: give a new or an empty one."
            )

    def keep(self, result: Result) -> dict[str, Any]:
        """Write the figure."""
        file = figure_name(result.name, self.kind)
        write_whole(self.path / file, result.file or b"", advice=STAYS)
        return {"file": file, "bytes": len(result.file or b"")}

    def holds(self, name: str, size: int | None) -> bool:
        """Whether the figure is there, as large as it was."""
        try:
            return os.stat(self.path / figure_name(name, self.kind)).st_size == size
        except OSError:
            return False

    def drop(self, name: str) -> None:
        """Remove the figure: the list would not name it."""
        with suppress(OSError):
            (self.path / figure_name(name, self.kind)).unlink()

    def finish(self, journal: Journal, done: Done, *, changed: bool) -> None:
        """Write the list."""
        if not changed and (self.path / LIST).exists():
            return
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["picture", "figure", "sha256"])
        for name, entry in _in_order(journal, done):
            table.writerow([written(name), entry["file"], entry["sha256"]])
        write_whole(self.path / LIST, text.getvalue().encode(), advice=STAYS)


class Table:
    """One Parquet file with a row of each picture; until it is whole, they are in the journal."""

    def __init__(self, path: Path, request: Request) -> None:
        """The file, and what its rows are of."""
        if request.drawing:
            flags = ", ".join(map(flag_of, request.drawing))
            raise BadOption(f"A table draws nothing: leave {flags} out.")
        self.path, self.journal = path, path.with_name(path.name + ".journal")
        self._heads = request.head_metrics
        self._about = json.dumps(request.identity(), ensure_ascii=False, sort_keys=True)
        self._half = path.with_name(f".{path.name}.part")

    def prepare(self) -> None:
        """See that the table's name is free, or its own, and that its journal can have one too."""
        try:
            there = "\0" not in str(self.path) and self.path.parent.is_dir()
            begun, taken = there and self.journal.exists(), there and self.path.exists()
        except OSError as error:
            raise BadOption(
                f"{self.path} can't be written, or {self.journal.name} beside it can't:"
                f" {_reason(error)}. Give another output."
            ) from error
        if not there:
            raise BadOption(
                f"{str(self.path)!r} can't be written: there is no such folder. Make it first."
            )
        if not begun and taken:
            raise BadOption(
                f"{self.path} exists, and beside it is no {self.journal.name} that a batch could go"
                " on from. Give another output, or remove the file."
            )

    def require_own(self) -> None:
        """See that a table that is there is of this request."""
        if not os.path.lexists(self.path):
            return
        try:
            with self.path.open("rb") as file:  # by Arrow itself no name that is no text is opened
                about = (parquet.read_schema(file).metadata or {}).get(b"attnviz", b"")
        except (OSError, pa.ArrowException):
            about = b""
        if about.decode(errors="replace") != self._about:
            raise BadOption(
                f"{self.path} exists, and is no table of this batch: give another name, or move it"
                " away."
            )

    def leave(self) -> None:
        """Nothing was made."""

    def keep(self, result: Result) -> dict[str, Any]:
        """All of it goes to the journal."""
        return {"row": result.row}

    def holds(self, name: str, size: int | None) -> bool:
        """It is in the journal."""
        return True

    def drop(self, name: str) -> None:
        """Its row is not written."""

    def finish(self, journal: Journal, done: Done, *, changed: bool) -> None:
        """Write the table, sorted by picture, and then give it its name."""
        if not changed and self.path.exists():
            return
        about = {"attnviz": self._about}
        form = schema(head_metrics=self._heads, about=about)
        try:
            with (
                self._half.open("wb") as file,
                parquet.ParquetWriter(file, form, compression="zstd") as table,
            ):
                for rows in _groups(journal, done):
                    table.write_table(_as_table(rows, form), row_group_size=GROUP)
            os.replace(self._half, self.path)
        except (OSError, ValueError) as error:
            raise BadOption(f"{self.path} can't be written: {_reason(error)}. {STAYS}") from error
        finally:
            self._half.unlink(missing_ok=True)


def figure_name(picture: str, kind: str) -> str:
    """A figure's file name: the picture's, and a sum of all that it is named by."""
    digest = hashlib.blake2b(os.fsencode(picture), digest_size=5).hexdigest()
    return f"{stem_of([PurePath(picture).stem])}-{digest}{kind}"


def _in_order(journal: Journal, done: Done) -> Iterator[tuple[str, Entry]]:
    for name in sorted(done):
        yield name, journal.entry(done[name])


def _groups(journal: Journal, done: Done) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for name, entry in _in_order(journal, done):
        rows.append({"picture": written(name), "sha256": entry["sha256"], **entry["row"]})
        if len(rows) == GROUP:
            yield rows
            rows = []
    if rows or not done:
        yield rows


def _as_table(rows: list[dict[str, Any]], form: pa.Schema) -> pa.Table:
    arrays = []
    for field in form:
        values = [row[field.name] for row in rows]
        if field.type == COLUMNS["heat"][0]:
            values = [unpacked(value) for value in values]
        arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=form)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
