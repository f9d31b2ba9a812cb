"""What a method is: one row of the table, with its formula and its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from attnviz.errors import BadOption
from attnviz.facts import Facts
from attnviz.methods.options import Option
from attnviz.methods.values import Estimate, Values
from attnviz.record import AttentionRecord
from attnviz.target import require_feature


def _never(settled: Mapping[str, Any]) -> bool:
    return False


def _none(settled: Mapping[str, Any]) -> None:
    return None


def _anything(record: AttentionRecord) -> None:
    return None


def _nothing(record: AttentionRecord, values: Tensor) -> Facts:
    return ()


@dataclass(frozen=True)
class Method:
    """One way to turn a record into a value for each token."""

    label: str
    unit: str
    summary: str
    formula: str
    source: str
    compute: Callable[..., Tensor | Values]
    """(record, query tokens, **options) → one value a token, or three as (3, token)."""
    options: Mapping[str, Option] = field(default_factory=dict)
    needs_gradient: bool = False
    """Whether the record must have been made with a target."""
    requires: Callable[[AttentionRecord], object] = _anything
    """Raises BadOption where the model leaves nothing that the method could read, however asked."""
    asks: bool = True
    """Whether the map is of a query; otherwise it is of the whole picture."""
    is_share: Callable[[Mapping[str, Any]], bool] = _never
    """Whether, with these options, the values of all tokens sum to 1."""
    other_unit: Callable[[Mapping[str, Any]], str | None] = _none
    """The unit with these options, where it is another one."""
    keeps_itself: Callable[[Mapping[str, Any]], bool] = _never
    """Whether, with these options, the query keeps a part by itself, whatever it attends to: the I
    that is added to every layer's A."""
    signed: bool = False
    """Whether values below zero mean the opposite of values above."""
    centred: bool = False
    """Whether every map is of deviations from a mean: then some values are below zero."""
    in_colour: Callable[[Mapping[str, Any]], bool] = _never
    """Whether, with these options, a token has three values: its red, green and blue."""
    remarks: Callable[[AttentionRecord, Tensor], Facts] = _nothing
    """(record, values) → what else there is to say of these values, as facts (name, words)."""
    estimate: Callable[..., Estimate] | None = None
    """(record, **options) → how long; a method that has it can be long, and takes `progress`,
    called with (tokens done, tokens in all), 0 done while it prepares."""

    def refusal(self, record: AttentionRecord) -> str | None:
        """Why it makes no map of this record's model, in a sentence; None where it may."""
        try:
            if self.needs_gradient:
                require_feature(record.model, record.feature)
            self.requires(record)
        except BadOption as error:
            return str(error)
        return None

    def unit_of(self, settled: Mapping[str, Any]) -> str:
        """The values' unit with these options."""
        return self.other_unit(settled) or self.unit
