"""What is done, line by line: a file that only grows, and that a kill at any moment leaves usable.

A line is the CRC-32 of its text in eight hexadecimal digits, a space, and the text: a JSON object.
The first says what was asked. A line that was cut short, or whose sum is another, counts as
unwritten: what it stood for is done again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zlib import crc32

from attnviz.errors import BadOption
from attnviz.trace import other_versions

try:
    import fcntl
except ImportError:  # Windows has none; there, nobody watches that only one run writes
    fcntl = None  # type: ignore[assignment]

SYNC_SECONDS = 2.0
"""What was written so long ago survives a power cut too; a killed process loses nothing."""

STAYS = "What is done stays done: the same command goes on from there, once it can write."
"""What is said where there is no room."""

_SPOKEN = {"results": "the kind of file"}
"""What a batch was begun with, where its own name for it says nothing to who asked for it."""

NOTHING = "Nothing is done yet: give another output, or make this one writable."
"""And what where that was so from the start."""

Entry = Mapping[str, Any]


class Journal:
    """An open journal, locked for this process until it is closed or the process ends."""

    def __init__(self, path: Path, request: Entry) -> None:
        """Open it, or begin one for that request.

        Raises BadOption where it can't be written, is in use, or is of another request.
        """
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            self._reader = open(path, "rb")  # noqa: SIM115 - closed with the journal
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from error
        try:
            self._lock()
            begun = self._first({"request": request})
            self._end = self._mend()
            self._synced = time.monotonic()
            if begun is not None and not self.is_empty:
                self._require_same(begun.get("request"), json.loads(json.dumps(request)))
            else:  # what was asked for, and never begun, binds nobody
                os.ftruncate(self._file, 0)
                self._end = 0
                self.append({"request": request})
        except BaseException:
            self._reader.close()
            os.close(self._file)
            raise

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing but what was asked."""
        return len(list(islice(self.entries(), 2))) < 2

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            os.fsync(self._file)
            if self.is_empty:
                self.path.unlink(missing_ok=True)
        except OSError as failed:
            if error is None:  # else that is what has to be said
                raise self._unwritable(failed) from failed
        finally:
            self._reader.close()
            os.close(self._file)

    def append(self, entry: Entry) -> int:
        """Write a line; the place where it begins. BadOption where there is no room for it."""
        line, start = _line(entry), self._end
        try:
            written = os.write(self._file, line)
            while written < len(line):
                written += os.write(self._file, line[written:])
            self._end += len(line)
            if time.monotonic() - self._synced > SYNC_SECONDS:
                os.fsync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            os.ftruncate(self._file, start)  # half a line
            raise self._unwritable(error) from error
        return start

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """(where it begins, the entry) of each good line, the request's included."""
        place = 0
        with open(self.path, "rb") as file:
            for line in file:
                entry = _read(line)
                if entry is not None:
                    yield place, entry
                place += len(line)

    def entry(self, place: int) -> Entry:
        """The entry that begins there."""
        self._reader.seek(place)
        entry = _read(self._reader.readline())
        if entry is None:
            raise BadOption(f"{self.path} was changed by somebody else meanwhile: start again.")
        return entry

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadOption(
                f"Another run is writing to {self.path}: wait for it, or give another output."
            ) from None
        except OSError:  # a file system without locks
            return

    def _first(self, own: Entry) -> Entry | None:
        """What the file begins with; None if nothing, or the start of what would be written."""
        with open(self.path, "rb") as file:
            first = file.readline()
        found = _read(first)
        if found is None and not (_line(own).startswith(first) and first[-1:] != b"\n"):
            raise BadOption(
                f"{self.path} is no journal of a batch, or its first line is damaged: give the"
                " output another name."
            )
        return found

    def _mend(self) -> int:
        """Cut off a last line without an end; the length that is left."""
        length = os.fstat(self._file).st_size
        keep = length
        with open(self.path, "rb") as file:
            while keep:
                start = max(0, keep - 65536)
                file.seek(start)
                found = file.read(keep - start).rfind(b"\n")
                if found >= 0:
                    keep = start + found + 1
                    break
                keep = start
        if keep < length:
            os.ftruncate(self._file, keep)
        return keep

    def _require_same(self, came: Any, asked: Any) -> None:
        if not isinstance(came, dict):
            raise BadOption(f"{self.path} is no journal of a batch: give the output another name.")
        names = sorted(came.keys() | asked.keys())
        other = [name for name in names if came.get(name) != asked.get(name)]
        words = "; ".join(
            f"{_SPOKEN.get(name, name.replace('_', ' '))} was {_words(came.get(name))} and is now"
            f" {_words(asked.get(name))}"
            for name in other
            if name != "versions"
        )
        if words:
            raise BadOption(
                f"{self.path} is of a batch that was asked for otherwise: {words}. Ask as it was,"
                " or give another output."
            )
        if other:
            were = came.get("versions") or dict.fromkeys(asked["versions"], "unknown")
            raise BadOption(
                f"{self.path} is of a batch that was begun with {', '.join(other_versions(were))}:"
                " what is computed may come out otherwise. Install these versions, or give another"
                " output."
            )

    def _unwritable(self, error: OSError | ValueError) -> BadOption:
        reason = getattr(error, "strerror", None) or error
        try:
            advice = NOTHING if self.is_empty else STAYS
        except (OSError, ValueError):
            advice = NOTHING
        return BadOption(f"{self.path} can't be written: {reason}. {advice}")


def _line(entry: Entry) -> bytes:
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    written = text.encode(errors="surrogatepass")  # a file's name may be no proper text
    return b"%08x %s\n" % (crc32(written), written)


def _read(line: bytes) -> Entry | None:
    """The entry of a line, or None for a line that is damaged."""
    total, text = line[:8], line[9:-1]
    if line[-1:] != b"\n" or line[8:9] != b" " or b"%08x" % crc32(text) != total:
        return None
    try:
        entry = json.loads(text.decode(errors="surrogatepass"))
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _words(value: Any) -> str:
    return "not given" if value is None else json.dumps(value, ensure_ascii=False)
