"""`python -m attnviz replay`: a figure made again from its manifest, byte for byte.

The manifest is a file of its own, or in the figure itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import models
from attnviz.carried import MOST, carried
from attnviz.contract import LoadedViT
from attnviz.errors import BadOption, BadWeights
from attnviz.facts import called
from attnviz.figure import KINDS, kinds_of, render
from attnviz.images import open_image
from attnviz.remake import drawing_of, read_manifest, remake, require_versions
from attnviz.trace import weights_sum
from attnviz.usage import CommandParser
from attnviz.writing import checked_target, kind_of, require_free, write_whole


def replay_command(arguments: Sequence[str]) -> None:
    """Make a figure again; raises what is wrong with the manifest, the pictures or the place."""
    parser = CommandParser(
        prog="python -m attnviz replay",
        description="Make a figure again from the manifest in it or beside it, byte for byte.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("manifest", help="the figure, or the manifest.json that --manifest wrote")
    add("pictures", nargs="+", metavar="picture", help="the picture, or all of them in any order")
    add("-o", "--output", required=True, metavar="FILE", help=f"one of {', '.join(KINDS)}")
    add("--overwrite", action="store_true", help="replace the file if it exists already")
    weights = "the weights, where they were a file of your own; one --checkpoint for each such file"
    add("--checkpoint", action="append", default=[], metavar="FILE", help=weights)
    nearly = "draw it although versions differ, or its bytes come out otherwise"
    add("--nearly", action="store_true", help=nearly)
    given = parser.parse_args(arguments)
    target = checked_target(given.output, KINDS, overwrite=True)
    source = _read(Path(given.manifest))
    said = read_manifest(carried(source), given.manifest)
    if not given.nearly:
        require_versions(said)
    if not given.overwrite:
        require_free(target)
    pictures = [open_image(path) for path in given.pictures]

    def load(origin: Mapping[str, Any]) -> LoadedViT:
        return _load(origin, given.checkpoint)

    figure = remake(said, pictures, load)
    kind = kind_of(target, KINDS)
    if kind not in kinds_of(figure):
        raise BadOption(
            f"This figure can be {', '.join(kinds_of(figure))}; {target.name!r} ends in {kind}."
        )
    content = render(figure, kind, **drawing_of(said))
    file = said.get("file") or {"kind": _kind(given.manifest), "sha256": _sum(source)}
    same = file["sha256"] == _sum(content)
    if kind == file["kind"] and not same and not given.nearly:
        raise BadOption(
            "The figure came out with other bytes, though pictures, weights and versions are the"
            " same: the processor may round otherwise, or the figure was changed since. Say"
            " --nearly to have it all the same."
        )
    write_whole(target, content, overwrite=given.overwrite)
    print(f"{target}: {figure.summary}" + ("; the same bytes as then" if same else ""))


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
