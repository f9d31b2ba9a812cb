"""The pictures that come with attnviz, all of them free to use, and whom to thank for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from attnviz.errors import unknown
from attnviz.images import open_image

FOLDER = Path(__file__).resolve().parent.parent / "samples"


@dataclass(frozen=True)
class Sample:
    """One picture: what to call it, where it lies, and whose it is."""

    label: str
    file: str
    credit: str
    licence: str
    source: str


def _digit(label: str, number: int) -> Sample:
    """A picture that the digits models were tested on."""
    return Sample(
        f"Handwritten {label}",
        f"digit-{label}.png",
        "E. Alpaydin and C. Kaynak",
        "CC BY 4.0",
        f"https://doi.org/10.24432/C50P49, picture {number} in scikit-learn's load_digits",
    )


SAMPLES: dict[str, Sample] = {  # the first is what the page opens with
    "cat": Sample(
        "Cat",
        "cat.jpg",
        "Stéfan van der Walt",
        "CC0 1.0",
        "scikit-image, skimage.data.chelsea",
    ),
    "coffee": Sample(
        "Cup of espresso",
        "coffee.jpg",
        "Rachel Michetti",
        "CC0 1.0",
        "scikit-image, skimage.data.coffee",
    ),
    "astronaut": Sample(
        "Astronaut",
        "astronaut.jpg",
        "NASA",
        "public domain",
        "https://flic.kr/p/r9qvLn",
    ),
    "rocket": Sample(
        "Rocket at night",
        "rocket.jpg",
        "SpaceX",
        "public domain",
        "https://www.flickr.com/photos/spacexphotos/16511594820/",
    ),
    "retina": Sample(
        "Retina of an eye",
        "retina.jpg",
        "Mikael Häggström",
        "CC0 1.0",
        "https://commons.wikimedia.org/wiki/File:Fundus_photograph_of_normal_left_eye.jpg",
    ),
    "digit-3": _digit("3", 709),
    "digit-5": _digit("5", 35),
    "digit-8": _digit("8", 500),
}


def sample_names() -> tuple[str, ...]:
    """The samples' names, the default first."""
    return tuple(SAMPLES)


def sample_path(name: str) -> Path:
    """Where a sample's file lies. Errors: `UnknownName`."""
    if name not in SAMPLES:
        raise unknown("sample", name, SAMPLES)
    return FOLDER / SAMPLES[name].file


def open_sample(name: str) -> Image.Image:
    """A sample as upright RGB. Errors: `UnknownName`."""
    return open_image(sample_path(name))
