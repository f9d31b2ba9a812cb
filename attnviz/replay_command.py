"""`python -m attnviz replay`: a figure made again from its manifest, byte for byte.

The manifest is a file of its own, or in the figure itself; of a zip of figures all are made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import models
from attnviz.bundle import ZIP, manifests_in, pack, zip_of
from attnviz.carried import MOST, carried
from attnviz.contract import LoadedViT
from attnviz.errors import BadOption, BadWeights
from attnviz.facts import called
from attnviz.figure import KINDS, Figure, kinds_of, notes_of, render, summary_of
from attnviz.images import open_image
from attnviz.remake import drawing_of, read_manifest, remake_each, require_versions
from attnviz.trace import weights_sum
from attnviz.usage import CommandParser, printable
from attnviz.writing import checked_target, kind_of, require_apart, require_free, write_whole

MADE = (*KINDS, ZIP)
"""The suffixes that `-o` takes."""


def replay_command(arguments: Sequence[str]) -> None:
    """Make a figure again, or all of a zip.

    Raises what is wrong with the manifest, the pictures or the place.
    """
    parser = CommandParser(
        prog="python -m attnviz replay",
        description="Make a figure again from the manifest in it or beside it, byte for byte; of a"
        " zip of figures, the zip.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("manifest", help="the figure, a zip of them, or the manifest.json that --manifest wrote")
    add("pictures", nargs="+", metavar="picture", help="the picture, or all of them in any order")
    add("-o", "--output", required=True, metavar="FILE", help=f"one of {', '.join(MADE)}")
    add("--overwrite", action="store_true", help="replace the file if it exists already")
    weights = "the weights, where they were a file of your own; one --checkpoint for each such file"
    add("--checkpoint", action="append", default=[], metavar="FILE", help=weights)
    nearly = "draw it although versions differ, or its bytes come out otherwise"
    add("--nearly", action="store_true", help=nearly)
    given = parser.parse_args(arguments)
    target = checked_target(given.output, MADE, overwrite=True)
    kind, source = kind_of(target, MADE), _read(Path(given.manifest))
    inside = manifests_in(source)
    carrying = inside or {given.manifest: carried(source)}
    told = {name: read_manifest(content, name) for name, content in carrying.items()}
    if len(told) > 1 and kind != ZIP:
        raise BadOption(
            f"{given.manifest} holds {len(told)} figures: give -o NAME{ZIP} for all of them, or"
            f" unpack it and give one, as {next(iter(told))}."
        )
    _require_weights_used(given.checkpoint, told.values())
    if not given.nearly:
        for said in told.values():
            require_versions(said)
    require_apart(target, [*given.pictures, *given.checkpoint])
    if not given.overwrite:
        require_free(target)
    pictures = [open_image(path) for path in given.pictures]

    def load(origin: Mapping[str, Any]) -> LoadedViT:
        return _load(origin, given.checkpoint)

    figures = [*remake_each([*told.values()], pictures, load)]
    drawn = [*zip(figures, map(drawing_of, told.values()), strict=True)]
    if kind == ZIP:
        packed = [pack(*each) for each in drawn]
        content, files = zip_of(packed), [each.files for each in packed]
    else:
        content = _rendered(*drawn[0], target, kind)
        files = [{kind: content}]
    itself = {"kind": ZIP if inside else _kind(given.manifest), "sha256": _sum(source)}
    checks = [
        (name if len(told) > 1 else "The figure", said.get("file") or itself, made)
        for (name, said), made in zip(told.items(), files, strict=True)
    ]
    if inside and kind == ZIP:  # its figures may be as they were, and other files be in it
        checks.append((given.manifest, itself, {ZIP: content}))
    *_, same = [_is_same(*check, nearly=given.nearly) for check in checks]
    write_whole(target, content, overwrite=given.overwrite)
    words = summary_of(figures[0], kind) if len(figures) == 1 else f"{len(figures)} figures"
    print(printable(f"{target}: {words}{_than_then(checks[-1][1]['kind'], kind, same)}"))
    notes = (notes_of(figure, kind, **drawing) for figure, drawing in drawn)
    for note in dict.fromkeys(chain.from_iterable(notes)):
        print(printable(f"note: {note}"))


def _than_then(then: str, now: str, same: bool) -> str:
    """What is said of a file of the suffix `now`, where that of the figure was `then`."""
    if then == now:
        return "; the same bytes as then" if same else "; not the same bytes as then"
    return f"; another kind of file than then, when it was {then}" if then else ""


def _rendered(figure: Figure, drawing: Mapping[str, Any], target: Path, kind: str) -> bytes:
    if kind not in kinds_of(figure):
        raise BadOption(
            f"This figure can be {', '.join(kinds_of(figure))}; {target.name!r} ends in {kind}."
        )
    return render(figure, kind, **drawing)


def _is_same(
    name: str, file: Mapping[str, Any], made: Mapping[str, bytes], *, nearly: bool
) -> bool:
    """Whether what was made, by suffix, holds that very file; BadOption where it is another."""
    if file["kind"] not in made:
        return False
    same = bool(_sum(made[file["kind"]]) == file["sha256"])
    if same or nearly:
        return same
    if file["kind"] == ZIP:
        raise BadOption(
            f"{name} is not the zip that attnviz wrote: files in it were added, left out, changed"
            " or packed anew since. Say --nearly to have it as attnviz writes it."
        )
    raise BadOption(
        f"{name} came out with other bytes, though pictures, weights and versions are the"
        " same: the processor may round otherwise, or the figure was changed since. Say"
        " --nearly to have it all the same."
    )


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadOption(
            f"{path} can't be read: {why}. Give the figure or its manifest.json."
        ) from error


def _kind(path: str) -> str:
    """What a figure is by its name; that of a manifest is no kind of figure."""
    return kind_of(Path(path), KINDS)


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _load(origin: Mapping[str, Any], checkpoints: Sequence[str]) -> LoadedViT:
    """The model as it was loaded; raises BadOption where its file of weights has to be given.

    Of several files it is the one with the very weights, whatever that is called.
    """
    named = origin["checkpoint"]
    if named is None:
        return _loaded(origin, None)
    if not checkpoints:
        raise BadOption(f"The weights were a file, {named}: give it as --checkpoint FILE.")
    if len(checkpoints) == 1:
        return _loaded(origin, checkpoints[0])
    for path in sorted(checkpoints, key=lambda path: called(Path(path).name) != named):
        with suppress(BadWeights):  # another model's
            vit = _loaded(origin, path)
            if weights_sum(vit.module) == origin["weights_sha256"]:
                return vit
    raise BadOption(
        f"None of the {len(checkpoints)} files given as --checkpoint has the weights of"
        f" {origin['model']} that were in {named}: give that one too, as it was."
    )


def _require_weights_used(checkpoints: Sequence[str], told: Iterable[Mapping[str, Any]]) -> None:
    """BadOption for weights, where no map is of such a file."""
    maps = (shown for said in told for shown in said["again"]["maps"])
    if checkpoints and all(shown["from"]["checkpoint"] is None for shown in maps):
        raise BadOption(
            "--checkpoint came, and the weights of the figure were no file of your own: leave it"
            " out."
        )


def _loaded(origin: Mapping[str, Any], checkpoint: str | None) -> LoadedViT:
    size = origin["image_size"]
    return models.load(
        origin["model"],
        pretrained=origin["seed"] is None,
        seed=origin["seed"] or 0,
        checkpoint=checkpoint,
        image_size=None if size is None else (size[0], size[1]),
        device=origin["device"],
    )
