"""One query's maps layer by layer: how its attention moves with depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

from PIL import Image

from attnviz.errors import BadOption, unknown
from attnviz.facts import Facts, said, with_notes
from attnviz.heatmap import Heatmap, shared_scale
from attnviz.scale import SCALES, Scale, choose_scale

FILM_SCALES = (*SCALES, "shared")
"""Each layer's own scale by a name of `scale.SCALES`, or one for all layers."""


@dataclass(frozen=True, eq=False)
class Frames:
    """A map for each layer in which there is one, over one picture, all in one unit.

    Maps may differ in grid and box, as in networks of stages. Raises `BadOption` for maps that do
    not belong together.
    """

    maps: Mapping[int, Heatmap]
    """Layer, counted from 0 → its map; in order."""
    layers: int
    """How many layers the model has."""
    left_out: Mapping[int, str] = field(default_factory=dict)
    """Layer without a map → why, in words."""

    def __post_init__(self) -> None:
        """Take private copies in the layers' order, and check that they fit together."""
        for name in ("maps", "left_out"):
            ordered = dict(sorted(getattr(self, name).items()))
            object.__setattr__(self, name, MappingProxyType(ordered))
        if sorted([*self.maps, *self.left_out]) != list(range(self.layers)) or not self.maps:
            raise BadOption(
                f"Each of {self.layers} layers has a map or a reason why not, and one at least has"
                f" a map; maps came of layers {[*self.maps]}, reasons of {[*self.left_out]}."
            )
        first = self._first
        for heat in self.maps.values():
            alike = heat.unit == first.unit and heat.title == first.title
            if heat.in_colour or not alike or heat.image.size != first.image.size:
                raise BadOption(
                    "The maps of a film are of one method, one unit and one picture, with one value"
                    f" a patch; {first.title} ({first.unit}) and {heat.title} ({heat.unit}) came."
                )

    @property
    def _first(self) -> Heatmap:
        return next(iter(self.maps.values()))

    @property
    def title(self) -> str:
        """The method in words."""
        return self._first.title

    @property
    def unit(self) -> str:
        """Of every value."""
        return self._first.unit

    @property
    def image(self) -> Image.Image:
        """The original picture."""
        return self._first.image

    @property
    def facts(self) -> Facts:
        """What is true of every layer's map, and which layers there are."""
        every = [frozenset(heat.facts) for heat in self.maps.values()]
        common = [fact for fact in self._first.facts if all(fact in each for each in every)]
        at = 1 + [name for name, _ in common].index("method") if _has(common, "method") else 0
        common.insert(at, ("layers", f"{runs(self.maps)} (of {self.layers}, counted from 0)"))
        grids = list(dict.fromkeys(heat.grid for heat in self.maps.values()))
        if len(grids) > 1:
            words = ", ".join(f"{rows} × {cols}" for rows, cols in grids)
            common.append(("grids", f"{words} (rows × columns of patches)"))
        return tuple(common)

    def fact(self, name: str) -> str | None:
        """The value of one fact, or None where layers differ or it wasn't given."""
        return dict(self.facts).get(name)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which layers are left out and why, then the maps' warnings, each once."""
        why: dict[str, list[int]] = {}
        for layer, reason in self.left_out.items():
            why.setdefault(reason, []).append(layer)
        warned: dict[str, list[int]] = {}
        for layer, heat in self.maps.items():
            for note in heat.notes:
                warned.setdefault(note, []).append(layer)
        return (
            *(f"{layers_of(of)} left out: {reason}" for reason, of in why.items()),
            *(
                note if len(of) == len(self.maps) else f"{layers_of(of)}: {note}"
                for note, of in warned.items()
            ),
        )

    @property
    def summary(self) -> str:
        """The method and its facts in one line, for captions."""
        return "; ".join(said(self.title, self.facts))

    def caption(self, alpha: float, *, facts: Facts | None = None) -> list[str]:
        """What a figure says below the maps: method, facts, opacity, then each warning.

        `facts` stand for its own, where some of those cannot be printed.
        """
        told = said(self.title, self.facts if facts is None else facts)
        return with_notes([*told, f"opacity {alpha:g}"], self.notes)

    def named(self, picture: str) -> Self:
        """The same with the picture's name among its facts."""
        return replace(self, maps={layer: heat.named(picture) for layer, heat in self.maps.items()})

    def label(self, layer: int) -> str:
        """What one map is called."""
        return f"layer {layer}"

    def scales(self, scale: str | Scale = "own", *, clip: float | None = None) -> list[Scale]:
        """Each map's scale, in order: one for all (`"shared"`, or a ready one), or its own.

        Raises `UnknownName` for a name that is not in `FILM_SCALES`, `BadOption` as `choose_scale`.
        """
        if isinstance(scale, str) and scale not in FILM_SCALES:
            raise unknown("film scale", scale, FILM_SCALES)
        if scale == "shared":
            scale, clip = shared_scale(self.maps.values(), clip=clip), None
        return [choose_scale(heat.drawn, scale, clip=clip) for heat in self.maps.values()]


def runs(layers: Iterable[int]) -> str:
    """Numbers in words, those that follow each other together: `0 to 3, 7`."""
    found: list[list[int]] = []
    for number in sorted(layers):
        if found and found[-1][-1] == number - 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in found)


def layers_of(numbers: list[int]) -> str:
    """Layers by their numbers, in words."""
    return f"layer{'s' if len(numbers) > 1 else ''} {runs(numbers)}"


def _has(facts: list[tuple[str, str]], name: str) -> bool:
    return any(each == name for each, _ in facts)
