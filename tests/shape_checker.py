"""What checks the shapes in attnviz's and models' signatures while the tests run (pyproject.toml).

Only annotations that name a shape are checked: mypy sees to the other types, and the tests have to
be able to hand a function what a user might.
"""

from collections.abc import Callable
from inspect import isclass
from typing import get_args

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

# A whole number is a number: `float` beside a shape accepts an int, as for mypy.
_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(function: Callable[..., object]) -> Callable[..., object]:
    """The function, its shapes checked by beartype at each call."""
    hints = function.__annotations__
    function.__annotations__ = {name: hint for name, hint in hints.items() if names_a_shape(hint)}
    return _beartype(function) if function.__annotations__ else function


def names_a_shape(hint: object) -> bool:
    """Whether a hint is a jaxtyping array, or holds one: in a union, a tuple, a callable."""
    if isinstance(hint, list):
        return any(map(names_a_shape, hint))
    if isclass(hint) and issubclass(hint, AbstractArray):
        return True
    return any(map(names_a_shape, get_args(hint)))
