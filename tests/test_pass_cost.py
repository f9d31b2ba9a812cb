"""What a pass needs, against what it was measured to need, and what is said where it has no room."""

import re

import pytest
from conftest import small_input, small_vit

import attnviz
import models
from attnviz.errors import BadOption
from attnviz.ui.pass_cost import FIXED, cost, require_room_for_pass, said_cramped

MB = 1_000_000

# (model, side, gradient) -> MB at the peak above what the loaded model held, and MB that the record
# held: VmHWM of one process each, in which nothing else ran, torch 2.14.1 on one thread.
MEASURED = {
    ("vit_small_patch14_dinov2.lvd142m", 224, False): (43, 24),
    ("vit_small_patch14_dinov2.lvd142m", 224, True): (131, 34),
    ("vit_small_patch14_dinov2.lvd142m", 518, False): (139, 78),
    ("vit_small_patch14_dinov2.lvd142m", 518, True): (563, 133),
    ("vit_small_patch14_dinov2.lvd142m", 784, False): (290, 178),
    ("vit_small_patch14_dinov2.lvd142m", 784, True): (1283, 304),
    ("vit_small_patch8_224.dino", 224, False): (366, 193),
    ("vit_small_patch8_224.dino", 224, True): (494, 224),
    ("vit_small_patch8_224.dino", 448, False): (279, 178),
}


@pytest.fixture(scope="module")
def vits():
    return {name: models.load(name, pretrained=False) for name, *_ in MEASURED}


@pytest.mark.parametrize("case", MEASURED)
def test_it_is_what_was_measured(vits, case):
    name, side, gradient = case
    peak, kept = MEASURED[case]
    found = cost(vits[name], (side, side), gradient=gradient)
    assert 0.9 < found.kept / (kept * MB) < 1.15
    assert 0.95 < found.peak / (peak * MB) < 1.6


def test_what_is_kept_is_counted_by_hand():
    vit = small_vit()
    maps, values = 4 * 3 * 3 * 7 * 7, 4 * 3 * 7 * 24
    found = cost(vit, (32, 48), gradient=False)
    assert found.kept == maps + values
    assert found.peak == FIXED + found.kept + 30 * 4 * 7 * 24 + 9 * 4 * 3 * 7 * 7
    record = attnviz.observe(vit, small_input())
    assert sum(layer.nbytes for layer in record.layers) == found.kept


def test_it_is_refused_with_numbers_and_a_size_that_fits(vits):
    vit, sides = vits["vit_small_patch14_dinov2.lvd142m"], [(s, s) for s in (112, 224, 518, 784)]
    require_room_for_pass(vit, (784, 784), 2000 * MB, gradient=True, smaller=sides)
    with pytest.raises(BadOption) as refused:
        require_room_for_pass(vit, (784, 784), 800 * MB, gradient=True, smaller=sides)
    assert str(refused.value) == (
        "vit_small_patch14_dinov2.lvd142m at 784 × 784 px with a gradient needs about 1.3 GB, and"
        " 0.8 GB are free here. 518 × 518 px would fit: choose that resolution, or a smaller model."
    )
    with pytest.raises(BadOption, match=r" 0 MB are free here\. Choose a smaller model"):
        require_room_for_pass(vit, (518, 518), -5, gradient=False, smaller=sides)


def test_a_host_is_told_where_not_one_picture_has_room(vits):
    vit = vits["vit_small_patch14_dinov2.lvd142m"]
    needed = cost(vit, vit.image_size, gradient=False).peak
    assert said_cramped(vit, needed) == ""
    assert re.match(
        r"Of the memory .*, 7 MB are left, .* ATTNVIZ_MEMORY_MB", said_cramped(vit, 7 * 10**6)
    )
