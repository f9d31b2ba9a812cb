"""The tables of models are true, and their page is what they make of it."""

import csv
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from timm.models import list_models, list_modules

import models
from attnviz.__main__ import main
from attnviz.errors import UnsupportedModel
from models import catalogue, census
from models.search import describe
from models.timm_drawn import DRAWN, RESIZED

ROOT = Path(__file__).parents[1]


def test_the_page_of_models_is_what_the_tables_make():
    made = catalogue.page()
    assert (ROOT / "docs" / "models.md").read_text("utf-8") == made, (
        "write it anew: python scripts/models_page.py"
    )


def test_the_page_counts_the_names_that_the_table_has_a_map_of():
    """Each family's too: none of them is refused once it is built."""
    table = [*csv.DictReader((ROOT / "docs" / "models.csv").read_text("utf-8").splitlines())]
    drawn = Counter(row["family"] for row in table if not row["why not"])
    assert {row.family: row.models for row in catalogue.rows()} == drawn
    assert f"\n{drawn.total()} names of timm" in catalogue.page()


def test_the_table_of_all_names_is_fresh():
    rows = list(csv.reader((ROOT / "docs" / "models.csv").read_text("utf-8").splitlines()))
    assert tuple(rows[0]) == census.HEAD
    assert [name for name, *_ in rows[1:]] == list_models()
    # Building them all takes minutes: a few of those that are drawn, and the small of each family.
    drawn = [row for row in rows[1:] if row[2]]
    assert {row[1] for row in drawn} == set(DRAWN)
    some = {row[0] for row in drawn[::60]} | {row[0] for row in rows[1::50]}
    made = list(csv.reader(census.table(sorted(some)).splitlines()))[1:]
    assert sorted(row for row in rows if row[0] in some) == sorted(made), (
        "write it anew: python scripts/models_page.py --table"
    )


def test_the_classes_of_other_libraries_are_named():
    named = {library: re.findall(r"`([^`]*)`", text) for library, text in catalogue.OTHERS.items()}
    assert named["vit-pytorch"] == ["ViT", "SimpleViT"]
    assert named["open_clip"] == ["transformer.VisionTransformer", "timm_model.TimmModel"]
    assert {"DINOv3ViTModel", "CLIPVisionModelWithProjection"} < {
        *named["Hugging Face transformers"]
    }


def test_every_family_is_in_the_tables_and_in_timm():
    known = set(list_modules())
    assert {*DRAWN, *catalogue.WITHOUT} <= known
    assert not {*DRAWN} & {*catalogue.WITHOUT}
    assert set(DRAWN) > RESIZED


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("edgenext_xx_small", "channels, not over tokens"),
        ("coat_tiny", "one factor"),
        ("efficientvit_b0", "no softmax"),
        ("mixer_s32_224", "same for every picture"),
        ("resnet18", "convolutional"),
    ],
)
def test_what_has_no_map_is_refused_with_its_reason(name, says):
    with pytest.raises(UnsupportedModel, match=says):
        models.load(name, pretrained=False)


def test_describing_a_name():
    assert describe("swin_tiny_patch4_window7_224").layers == 12  # its masks hold no numbers
    found = describe("pit_ti_224")
    assert (found.size, found.grid, found.layers) == ((224, 224), (27, 27), 12)
    assert round(found.parameters / 1e6, 1) == 4.8
    assert "channels" in describe("edgenext_xx_small").why_not
    assert describe("vit_dwee_patch16_reg1_gap_256").grid is None


def test_models_on_the_command_line(capsys):
    assert main(["models"]) == 0
    assert "DINOv2 ViT-S/14" in capsys.readouterr().out
    assert main(["models", "pit_ti"]) == 0
    out = capsys.readouterr().out
    assert "pit_ti_224" in out and "27 × 27" in out
    assert main(["models", "digits"]) == 0  # the project's own, of which timm knows nothing
    assert "digits-fused-qkv" in capsys.readouterr().out
    assert main(["models", "no-such-word"]) == 2
    assert "no-such-word" in capsys.readouterr().err


def test_check_on_the_command_line(capsys):
    assert main(["check", "test_vit_relpos"]) == 0
    out = capsys.readouterr().out
    assert "blocks.0.attn" in out and "verified on 160 × 160 pixels" in out
    assert "proof" not in out
    assert main(["check", "edgenext_xx_small"]) == 2
    assert "channels" in capsys.readouterr().err


def test_a_check_counts_what_it_has_proved_where_somebody_watches(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["check", "digits"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("loading digits …\n\rproof 1 of 8\rproof 2 of 8\r")  # 4 layers, 2 ways
    assert err.endswith("\rproof 8 of 8\n")
