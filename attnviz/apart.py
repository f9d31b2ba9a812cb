"""What tells maps apart: the facts in which they differ, and names made of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PIL import Image

from attnviz.facts import CHOSEN, USUAL, called, in_name
from attnviz.heatmap import Heatmap

TOLD = ("method", "model", "picture", *CHOSEN)
"""Facts that tell maps apart where they differ; any other does where none of these do."""

NAMED = 2
"""Facts that make a name at most; captions tell the others."""

ITSELF = ("method", "model", "picture", "query", "target")
"""Facts whose values stand in a name by themselves."""


def varies(name: str, every: Sequence[Mapping[str, str]]) -> bool:
    """Whether two maps have this fact and differ in it; what is usual goes without saying else."""
    return len({each[name] for each in every if name in each}) > 1


def told_apart(heats: Sequence[Heatmap]) -> tuple[str, ...]:
    """The facts in which maps differ, or their places where they differ in none.

    Facts that all have come first; those that some have, as a head where others have the mean of
    all heads, are named where these do not do. So are those that are not in `TOLD`, as an option of
    one method.
    """
    every = [telling(heat) for heat in heats]
    differ = [name for name in differing(every) if name != "weights"]  # which are no short name
    for pool in ([name for name in TOLD if name in differ], differ):
        for enough in (all, any):
            chosen = [name for name in pool if enough(name in each for each in every)][:NAMED]
            names = [
                called(", ".join(short(name, each[name]) for name in chosen if name in each))
                for each in every
            ]
            if len(set(names)) == len(names) and all(names):
                return tuple(names)
    return by_place(heats)


def differing(every: Sequence[dict[str, str]]) -> list[str]:
    """The names of facts in which maps differ, those of `TOLD` first."""
    known = dict.fromkeys([*TOLD, *(name for each in every for name in each)])
    return [name for name in known if len({each.get(name) for each in every}) > 1]


def telling(heat: Heatmap) -> dict[str, str]:
    """A map's facts and its method; what a query looks at is its direction unless one is told."""
    facts = dict(heat.facts) | {"method": heat.title}
    return {"direction": USUAL["direction"], **facts} if "query" in facts else facts


def by_place(heats: Sequence[Heatmap]) -> tuple[str, ...]:
    """What maps without names are called: one alone by its title, else by numbers.

    Each is a picture's where no two are of the same. Letters are the panels', of which the picture
    may be one.
    """
    if len(heats) == 1:
        return (called(heats[0].title),)
    what = "picture" if pictures_of(heats) == len(heats) else "map"
    return tuple(f"{what} {number}" for number in range(1, len(heats) + 1))


def pictures_of(heats: Sequence[Heatmap]) -> int:
    """Of how many pictures the maps are, told by their pixels."""
    found: list[Image.Image] = []
    for heat in heats:
        if heat.image not in found:
            found.append(heat.image)
    return len(found)


def short(name: str, value: str) -> str:
    """A fact as a panel's name says it: a query, a target or a model by itself."""
    return value if name in ITSELF else in_name(name, value)


def says(called_so: str, name: str, value: str) -> bool:
    """Whether a panel's name has that fact whole: of a layer, also how many there are."""
    told = short(name, value)
    return value in told and f", {told}, " in f", {called_so}, "
