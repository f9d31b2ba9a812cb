"""A token's place: prefix first, then patches row by row."""

import re

import pytest
import torch

from attnviz.errors import BadOption, UnknownName
from attnviz.tokens import TokenLayout

REGISTERS = TokenLayout(("cls", "reg1", "reg2", "reg3", "reg4"), (2, 3))

# layout, (row, col), token: counted by hand
PLACES = [
    (TokenLayout((), (2, 3)), (0, 0), 0),
    (TokenLayout((), (2, 3)), (1, 0), 3),
    (TokenLayout(("cls",), (3, 2)), (1, 0), 3),
    (TokenLayout(("cls", "dist"), (2, 3)), (0, 2), 4),
    (REGISTERS, (0, 0), 5),
    (REGISTERS, (1, 2), 10),
]


@pytest.mark.parametrize(("layout", "cell", "token"), PLACES)
def test_cell_and_token_are_each_others_inverse(layout, cell, token):
    assert layout.token(*cell) == token
    assert layout.cell(token) == cell
    assert layout.query_tokens(cell) == range(token, token + 1)


@pytest.mark.parametrize(("layout", "cell", "token"), PLACES)
def test_grid_puts_each_token_in_its_own_cell(layout, cell, token):
    values = torch.zeros(layout.tokens)
    values[token] = 1
    grid = layout.to_grid(values)
    assert grid.shape == layout.grid
    assert grid[cell] == 1
    assert grid.sum() == 1


@pytest.mark.parametrize("layout", [REGISTERS, TokenLayout((), (1, 4)), TokenLayout((), (3, 1))])
def test_the_cells_of_all_patches_are_in_the_order_of_their_tokens(layout):
    patches = range(len(layout.prefix), layout.tokens)
    assert list(map(tuple, layout.cells.tolist())) == [layout.cell(token) for token in patches]


def test_every_token_has_a_name_in_words():
    said = {token: REGISTERS.token_label(token) for token in (0, 1, 4, 5, 9)}
    assert said == {
        0: "class token",
        1: "register 1",
        4: "register 4",
        5: "patch (row 0, column 0)",
        9: "patch (row 1, column 1)",
    }
    for token in (-1, 11):
        with pytest.raises(UnknownName, match="5 to 10"):
            REGISTERS.token_label(token)


def test_named_queries():
    assert REGISTERS.query_tokens("cls") == range(0, 1)
    assert REGISTERS.query_tokens("reg4") == range(4, 5)
    assert REGISTERS.query_tokens("mean") == range(5, 11)
    assert REGISTERS.default_query == "cls"
    assert TokenLayout((), (2, 3)).default_query == "mean"


@pytest.mark.parametrize(
    ("query", "error", "says"),
    [
        ("clss", UnknownName, "cls"),
        ("dist", UnknownName, "reg1"),
        ((2, 0), UnknownName, "rows 0 to 1"),
        ((0, -1), UnknownName, "columns 0 to 2"),
        ((0.5, 1), BadOption, "whole numbers"),
        ((0, True), BadOption, "whole numbers"),
        (7, BadOption, "(row, col)"),
        ((1, 2, 3), BadOption, "(row, col)"),
    ],
)
def test_a_query_that_does_not_exist_names_what_does(query, error, says):
    with pytest.raises(error) as caught:
        REGISTERS.query_tokens(query)
    assert says in str(caught.value)


def test_values_for_another_layout_are_refused_with_both_counts():
    with pytest.raises(BadOption, match=r"12 values came for 11 tokens"):
        REGISTERS.to_grid(torch.zeros(12))
    with pytest.raises(UnknownName, match="5"):
        REGISTERS.cell(4)


REFUSED_NAMES = [
    (("mean",), "'mean' cannot be the name"),
    (("cls", "cls"), "2 prefix tokens are called 'cls'"),
    (("",), "'' cannot be the name"),
    ((" ",), "' ' cannot be the name"),
    (("0,1",), "'0,1' cannot be the name"),
    (("(2, 3)",), "cannot be the name"),
    (("1 2",), "cannot be the name"),
    (("cls", 1), "a tuple of words"),
    ("cls", "a tuple of words"),
]


@pytest.mark.parametrize(("prefix", "said"), REFUSED_NAMES)
def test_names_that_could_stand_for_another_query_are_refused(prefix, said):
    with pytest.raises(BadOption, match=re.escape(said)):
        TokenLayout(prefix, (2, 3))


def test_numbered_names_are_words():
    assert TokenLayout(("reg1", "2", "a 3"), (2, 3)).tokens == 9
