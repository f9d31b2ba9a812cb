"""The live map's colours in a real browser, number by number, against a twin in 64 bits.

The twin is written here from what docs/design.md and docstrings say of scales, grids and colours:
no code under test has a part in it, but for the coding of the values that are planted.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api")

from attnviz.ui import live_map, live_panel

pytest_plugins = ["visits"]  # for its browser

GRID = (9, 13)
SIZE = (47, 31)
BOXES = {"whole": (0.0, 0.0, 47.0, 31.0), "beyond": (-9.3, 4.6, 40.2, 38.9)}
SEEN = {"whole": ((0, 8), (0, 12)), "beyond": ((0, 6), (2, 12))}
"""First and last (row, column) of which something is on the picture: by hand."""
CONSTANT = 8 * 2.0**-23
SINKS = {"far": 20, "few": 0.01, "faint": 0.2}


def planted():
    """A matrix (asker, cell), and which pairs meet; each row is unlike its neighbours."""
    chance = np.random.default_rng(11)
    rows, cells = 6, GRID[0] * GRID[1]
    values = np.zeros((rows, cells))
    values[0, 17] = 1  # one-hot: a sink that swallows the map
    values[1] = 0.25  # a constant
    values[2] = np.exp(chance.uniform(np.log(1e-12), 0, cells))  # many magnitudes
    values[3] = 0.5 + chance.uniform(0, 0.01, cells)  # far from zero
    values[4] = chance.normal(0, 1, cells) ** 2
    values[5] = np.linspace(3, 4, cells)[::-1]
    reached = np.ones(values.shape, bool)
    reached[4, chance.permutation(cells)[:40]] = False
    reached[5, :9] = False
    return values.astype(np.float32), reached


@pytest.fixture(scope="module")
def browsers(browser):
    """The browser's own numbers: (look) → (values, scale, pixels) of each asker."""
    values, reached = planted()
    corners, steps = live_map.quantised(values, reached)
    map_ = {
        **{name: corner.tolist() for name, corner in zip(("low", "knee", "high"), corners, strict=True)},
        "lower": (steps & 255).ravel().tolist(),
        "upper": (steps >> 8).ravel().tolist(),
        "cells": values.shape[1],
    }  # fmt: skip
    text = Path(live_panel.__file__).with_name("live_paint.js").read_text("utf-8")
    page = browser.new_page()
    page.set_content(
        f"""<script type=module>{text}
        window.numbers = (map, look) => map.low.map((_, asker) => {{
          const values = mapOf(map, asker, look);
          const scale = scaleOf(values, drawnOf(values, look), look.scale);
          const [rows, cols] = look.grid;
          const [left, top, right, bottom] = look.box;
          const covered = {{ rows, cols, down: along(rows, top, bottom, look.size[1]),
            across: along(cols, left, right, look.size[0]) }};
          const how = look.smooth ? bilinear : nearest;
          const pixels = how(values, colourOf(Uint32Array.from(look.palette), scale), covered);
          return [[...values], scale, [covered.down.first, covered.across.first], [...pixels]];
        }});</script>"""
    )
    page.wait_for_function("() => window.numbers")
    yield lambda look: page.evaluate("([map, look]) => window.numbers(map, look)", [map_, look])
    page.close()


def decoded(row):
    """The planted row as it comes back: half a step off at most, in 32 bits."""
    values, reached = planted()
    corners, steps = (part.astype(float) for part in live_map.quantised(values, reached))
    low, knee, high = corners[:, row]
    back = [
        low + n * (knee - low) / 49152 if n <= 49152 else knee + (n - 49152) * (high - knee) / 16382
        for n in steps[row]
    ]
    return np.where(reached[row], np.float32(back), np.nan).astype(float).reshape(GRID)


def ends(values, seen, *, zero, clip, sinks):
    """The two values that get the first and the last colour."""
    (top, bottom), (left, right) = seen
    drawn = values[top : bottom + 1, left : right + 1]
    drawn = drawn[~np.isnan(drawn)]
    held = values[~np.isnan(values)]
    if sinks:
        _, end = ends(values, seen, zero=zero, clip=clip, sinks=False)
        capped = np.minimum(held, end)
        if capped.max() >= 20 * capped.mean() and 0 < (capped > 0.2 * capped.max()).sum() <= 1:
            drawn = held[capped <= 0.2 * capped.max()]
    low, high = drawn.min(), drawn.max()
    if high - low <= CONSTANT * max(abs(low), abs(high)):
        low = high
    elif clip:
        low, high = np.percentile(drawn, [1, 99])
    return (min(low, 0), max(high, 0)) if zero else (low, high)


def places(count, start, end, length):
    """(pixel, where in the grid its middle lies) of each pixel that the grid covers."""
    middles = ((pixel, (pixel + 0.5 - start) / (end - start) * count) for pixel in range(length))
    return [(pixel, at) for pixel, at in middles if 0 <= at < count]


def between(values, y, x):
    """Straight lines between the middles of cells; beyond the outermost, their own value."""
    rows, cols = values.shape
    y, x = min(max(y - 0.5, 0), rows - 1), min(max(x - 0.5, 0), cols - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, rows - 1), min(left + 1, cols - 1)
    upper = values[top, left] * (1 - (x - left)) + values[top, right] * (x - left)
    lower = values[bottom, left] * (1 - (x - left)) + values[bottom, right] * (x - left)
    return upper * (1 - (y - top)) + lower * (y - top)


def spread(values):
    """In blank cells the nearest value; of several as near, the first."""
    held = np.argwhere(~np.isnan(values))
    filled = values.copy()
    for cell in np.argwhere(np.isnan(values)):
        filled[tuple(cell)] = values[tuple(held[((held - cell) ** 2).sum(1).argmin()])]
    return filled


LOOKS = [
    *product(BOXES, (False, True), ("own", "zero"), (None, 99), (False,)),
    ("whole", False, "own", None, True),
    ("beyond", True, "zero", 99, True),
    ("whole", False, (0.1, 0.6), None, False),
]


@pytest.mark.parametrize(("where", "smooth", "scale", "clip", "sinks"), LOOKS)
def test_each_pixel_has_the_colour_that_the_twin_gives_it(
    browsers, where, smooth, scale, clip, sinks
):
    box, seen = BOXES[where], SEEN[where]
    fixed = scale if isinstance(scale, tuple) else None
    look = {
        "grid": GRID,
        "pool": 1,
        "steps": {"all": live_map.STEPS, "knee": live_map.KNEE},
        "rows": seen[0],
        "cols": seen[1],
        "size": SIZE,
        "box": box,
        "smooth": smooth,
        "palette": list(range(1000, 1256)),
        "scale": {
            "fixed": fixed,
            "fromZero": scale == "zero",
            "clip": clip,
            "constant": CONSTANT,
            "sinks": SINKS if sinks else None,
        },
    }
    found = browsers(look)
    assert len(found) == 6
    down = places(GRID[0], box[1], box[3], SIZE[1])
    across = places(GRID[1], box[0], box[2], SIZE[0])
    for row, (values, chosen, first, pixels) in enumerate(found):
        expected = decoded(row)
        np.testing.assert_array_equal(np.reshape(values, GRID), expected)
        low, high = fixed or ends(expected, seen, zero=scale == "zero", clip=clip, sinks=sinks)
        assert chosen == pytest.approx((low, high), rel=1e-14, abs=0)
        assert first == [down[0][0], across[0][0]]
        filled = spread(expected)
        seen_pixels = iter(pixels)
        for (_, y), (_, x) in product(down, across):
            pixel, own = next(seen_pixels), expected[int(y), int(x)]
            if np.isnan(own):
                assert pixel == 0  # nothing is painted there
                continue
            value = between(filled, y, x) if smooth else own
            share = (value > high) if low == high else min(max((value - low) / (high - low), 0), 1)
            step = float(share) * 256
            if abs(step - round(step)) < 1e-6:  # on the edge of two colours: either
                assert abs(pixel - 1000 - step) <= 1
            else:
                assert pixel - 1000 == min(int(step), 255), (row, y, x, value)
        assert next(seen_pixels, None) is None
