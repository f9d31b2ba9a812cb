"""What a method can be asked: options with their defaults, checked against the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from attnviz.errors import BadOption, UnknownName, unknown
from attnviz.record import AttentionRecord
from attnviz.shapes import as_whole

Kind = Literal["layer", "head", "component", "choice", "fraction", "side", "seconds"]

COMPONENTS = 3
"""Components that can be asked for: as many as there are colours to mix."""


@dataclass(frozen=True)
class Option:
    """One option of a method."""

    default: Any
    kind: Kind
    help: str
    choices: tuple[str, ...] = ()
    below_one: bool = False
    """A fraction that must stay under 1."""
    idle: Callable[[Mapping[str, Any]], bool] = lambda settled: False
    """Whether the option has no effect beside the others' values."""
    unset: tuple[str, str] | None = None
    """The fact that is told instead where it is left out."""
    vain: str = ""
    """Of one that may be idle whatever its own value is: when, in the command line's words."""

    @property
    def text_type(self) -> type[str] | type[float] | type[int]:
        """What its value is read as, where it comes as text."""
        match self.kind:
            case "choice":
                return str
            case "fraction" | "seconds":
                return float
            case "layer" | "head" | "component" | "side":
                return int
        assert_never(self.kind)

    def check(
        self, name: str, value: Any, record: AttentionRecord, layer: int | None = None
    ) -> Any:
        """The value in its one form (what is numbered counted from 0), or an error.

        A head must exist in that `layer`, or without one in all: heads may differ between layers.
        """
        words = name.replace("_", " ")
        match self.kind:
            case "layer":
                if value is None and self.default is None:
                    return None
                return _position(words, value, len(record.layers))
            case "head":
                asked = record.layers if layer is None else [record.layers[layer]]
                heads = min(each.heads for each in asked)
                return None if value is None else _position(words, value, heads)
            case _:
                return self.check_alone(name, value)

    def check_alone(self, name: str, value: Any) -> Any:
        """The same before there is a model; a layer and a head, which only that has, pass."""
        words = name.replace("_", " ")
        match self.kind:
            case "layer" | "head":
                return value
            case "choice":
                if value not in self.choices:
                    raise unknown(words, value, self.choices)
                return value
            case "fraction":
                return self._fraction(words, value)
            case "component":
                return None if value is None else _position(words, value, COMPONENTS)
            case "side":
                return None if value is None else _count(words, value)
            case "seconds":
                return _seconds(words, value)
        assert_never(self.kind)

    def _fraction(self, name: str, value: Any) -> float:
        number = _float(value)
        if not 0 <= number <= 1 or (self.below_one and number == 1):
            end = "1 (not included)" if self.below_one else "1"
            raise BadOption(f"{name} is a number from 0 to {end}; {value!r} came.")
        return number


LAYER = Option(-1, "layer", "which layer, counted from 0; -1 is the last")
"""The option of methods that read one layer."""


def settle(
    method: str,
    options: Mapping[str, Option],
    given: Mapping[str, Any],
    record: AttentionRecord,
) -> dict[str, Any]:
    """All options of a method: those given, checked, and the defaults of the others.

    Raises:
        UnknownName: no such option, choice, layer, head or component.
        BadOption: a value is out of range, or of another kind.
    """
    settled = check(method, options, given, record)
    if settled.get("first_layer", 0) is None:
        settled["first_layer"] = record.shared_from(settled["last_layer"])
    side = settled.get("pool")
    if side is not None and max(record.geometry_of(settled).queries.grid) <= side:
        settled["pool"] = None  # the grid that the method reads is coarse enough
    return settled


def check(
    method: str,
    options: Mapping[str, Option],
    given: Mapping[str, Any],
    record: AttentionRecord,
) -> dict[str, Any]:
    """The same, as far as can be told from how many layers and heads there are."""
    for name in given:
        if name not in options:
            raise unknown(f"option of {method}", name, options)
    checked: dict[str, Any] = {}
    # The layer comes first: which heads there are is its own.
    for name in sorted(options, key=lambda name: options[name].kind != "layer"):
        value = given.get(name, options[name].default)
        checked[name] = options[name].check(name, value, record, checked.get("layer"))
    return {name: checked[name] for name in options}


def _count(name: str, value: Any) -> int:
    try:
        number = as_whole(value)
    except TypeError:
        number = 0
    if number < 1:
        raise BadOption(f"{name} is a whole number from 1; {value!r} came.")
    return number


def _float(value: Any) -> float:
    """A number, or NaN, which lies in no range, for what is none, as text or True."""
    try:
        return float("nan") if isinstance(value, str | bool) else float(value)
    except (TypeError, ValueError):
        return float("nan")


def _seconds(name: str, value: Any) -> float:
    number = _float(value)
    if not number > 0:
        raise BadOption(f"{name} is a number of seconds over 0; {value!r} came.")
    return number


def _position(name: str, value: Any, count: int) -> int:
    """A number counted from 0, or from the end where negative, as Python counts."""
    try:
        number = as_whole(value)
    except TypeError:
        raise BadOption(f"{name} is a whole number; {value!r} came.") from None
    if not -count <= number < count:
        raise UnknownName(
            f"There is no {name} {number}: there are {count}, numbered 0 to {count - 1}"
            f" (or from the end, -1 to -{count})."
        )
    return number % count
