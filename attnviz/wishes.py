"""What the command line asks of methods, checked before a model runs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from attnviz.arguments import options_of_methods
from attnviz.errors import BadOption
from attnviz.methods import METHODS
from attnviz.methods.options import Option
from attnviz.used import flag_of
from attnviz.writing import MASK, OF_ONE_MAP, kind_of


def asked_of(given: argparse.Namespace, methods: Sequence[str]) -> dict[str, Any]:
    """The methods' options that were given.

    Raises BadOption for contradictions, and BadOption or UnknownName for values that no model has.
    """
    if given.random and given.checkpoint:
        raise BadOption("--random and --checkpoint came: give one of them.")
    if given.seed is not None and not given.random:
        raise BadOption("--seed is of random weights: give --random with it.")
    if not 0 <= (given.seed or 0) < 2**63:
        raise BadOption(f"A seed is a whole number from 0 to 2^63 - 1; {given.seed} came.")
    asked = {
        name: getattr(given, name)
        for name in options_of_methods()
        if getattr(given, name, None) is not None
    }
    _require_target(given, methods)
    own = {name: option for method in methods for name, option in METHODS[method].options.items()}
    for name in asked:
        if name not in own:
            flags = ", ".join(f"--{each.replace('_', '-')}" for each in own)
            raise BadOption(
                f"--method {', '.join(methods)} has no --{name.replace('_', '-')}; it has"
                f" {flags or 'no option'}."
            )
        own[name].check_alone(name, asked[name])
    _refuse_vain(asked, methods)
    settled = {name: option.default for name, option in own.items()} | asked
    if len(methods) == 1 and METHODS[methods[0]].in_colour(settled):
        _refuse_scales(given, methods[0])
        _refuse_single_values(given, methods[0])
    elif len(methods) == 1 and METHODS[methods[0]].centred:
        _refuse_mass(given, methods[0])
    if given.query is not None and not any(METHODS[method].asks for method in methods):
        raise BadOption(
            f"--method {', '.join(methods)} is of the whole picture, the same for every query:"
            " leave --query out."
        )
    return asked


def _refuse_vain(asked: Mapping[str, Any], methods: Sequence[str]) -> None:
    """An option that changes nothing in any of the methods, whatever its value."""
    tables = [METHODS[method].options for method in methods]
    for name in asked:
        having = [table for table in tables if name in table]
        if all(_is_vain(table, name, asked) for table in having):
            raise BadOption(
                f"{flag_of(name)} changes nothing {having[0][name].vain}: leave it out, or change"
                " that."
            )


def _is_vain(table: Mapping[str, Option], name: str, asked: Mapping[str, Any]) -> bool:
    settled = {each: asked.get(each, option.default) for each, option in table.items()}
    return bool(table[name].vain) and table[name].idle(settled)


def _refuse_scales(given: argparse.Namespace, method: str) -> None:
    """Red, green and blue have scales of their own, and no palette."""
    for name in ("colormap", "scale", "clip"):
        if getattr(given, name, None) is not None:  # the test of a map has none of them
            raise BadOption(
                f"--method {method} mixes its components as red, green and blue, each from"
                f" its lowest to its highest value: leave --{name} out, or choose one with"
                " --component."
            )


def _refuse_single_values(given: argparse.Namespace, method: str) -> None:
    """A mask, an outline and levels of grey are of one value a patch, and a colour is three."""
    if getattr(given, "mass", None) is not None:
        raise BadOption(
            f"--mass outlines what holds most of one value a patch, and --method {method} has"
            " three: leave it out."
        )
    kind = _kind(given)
    if kind in OF_ONE_MAP:
        raise BadOption(
            f"A {kind} file is of one value a patch, and --method {method} has three: choose"
            " another kind of file, or another method."
        )


def _refuse_mass(given: argparse.Namespace, method: str) -> None:
    """A mask and an outline are of what a map holds, and a mean's deviations are no such thing."""
    for what, came in (("--mass", getattr(given, "mass", None)), (MASK, _kind(given) == MASK)):
        if came is not None and came is not False:
            raise BadOption(
                f"{what} is of values of at least 0, and those of --method {method} lie on both"
                " sides of 0: leave it out, or choose another method."
            )


def _kind(given: argparse.Namespace) -> str:
    """What is written, of a batch each figure."""
    figures = getattr(given, "figures", None)
    return f".{figures}" if figures else kind_of(given.output, OF_ONE_MAP)


def _require_target(given: argparse.Namespace, methods: Sequence[str]) -> None:
    """A target where a method needs one, and only there."""
    came = [given.target, given.similar_to]
    if None not in came:
        raise BadOption("--target and --similar-to came: give one of them.")
    needing = [method for method in methods if METHODS[method].needs_gradient]
    if needing:
        if came == [None, None]:
            raise BadOption(
                f"--method {needing[0]} explains a target: give one, as --target predicted,"
                " --target CLASS, or --similar-to cls, ROW,COL or another PICTURE."
            )
    elif came != [None, None] and "mode" not in given:  # a test watches it for any method
        raise BadOption(f"--method {methods[0]} has no use for a target: leave it out.")
