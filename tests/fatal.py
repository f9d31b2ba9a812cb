"""A model that kills its process, once, when it sees a certain picture; for workers to load."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, fields
from pathlib import Path

import models
from models.own_adapter import OwnViT


@dataclass(frozen=True, eq=False)
class Fatal(OwnViT):
    """The digits model, which writes down whom it sees."""

    notes: Path = Path()
    deadly: int = -1

    def view(self, image, fit):
        red = image.getpixel((0, 0))[0]  # the picture's number
        with (self.notes / "seen").open("a") as file:
            file.write(f"{red}\n")
        if red == self.deadly:
            try:
                (self.notes / "died").open("x").close()
            except FileExistsError:
                return super().view(image, fit)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().view(image, fit)


def load(notes, deadly):
    vit = models.load("digits", device="cpu")
    return Fatal(
        **{each.name: getattr(vit, each.name) for each in fields(vit)}, notes=notes, deadly=deadly
    )
