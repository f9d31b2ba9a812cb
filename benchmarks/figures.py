"""`python -m benchmarks.figures`: how long a printed figure takes, and how large its file is."""

from __future__ import annotations

import sys
import time
from statistics import median

import numpy as np
from PIL import Image

from attnviz.export import render
from attnviz.heatmap import Heatmap
from attnviz.samples import open_sample
from benchmarks.subject import machine

SIZE = (4000, 3000)
"""Twelve million pixels."""

ROUNDS = 5


def pictures() -> dict[str, Image.Image]:
    """The sample, the same with a poor sensor's noise at 12 megapixels, and noise alone."""
    cat, random = open_sample("cat"), np.random.default_rng(0)
    large = np.asarray(cat.resize(SIZE, Image.Resampling.BICUBIC)).astype(float)
    grain = np.clip(large + random.normal(0, 30, large.shape), 0, 255).astype(np.uint8)
    noise = random.integers(0, 256, large.shape, dtype=np.uint8)
    return {
        "a photograph of 451 × 300": cat,
        "a noisy one of 4000 × 3000": Image.fromarray(grain),
        "noise alone, 4000 × 3000": Image.fromarray(noise),
    }


def main() -> int:
    """Measure and print."""
    values = np.random.default_rng(0).random((37, 49)).astype(np.float32)
    print(f"One panel of 37 × 49 patches, 89 mm wide. {machine()}.\n")
    print("| picture | file | seconds | of one core | kB |\n| --- | --- | --- | --- | --- |")
    for what, image in pictures().items():
        box = (0.0, 0.0, float(image.width), float(image.height))
        heat = Heatmap(values, "attention weight", "Attention", (), image, box)
        for kind, name in ((".pdf", "PDF"), (".png", "PNG, 450 dpi"), (".svg", "SVG")):
            content, walls, cores = b"", [], []
            for _ in range(ROUNDS):
                start, busy = time.perf_counter(), time.process_time()
                content = render(heat, kind)
                walls.append(time.perf_counter() - start)
                cores.append(time.process_time() - busy)
            seconds = f"{median(walls):.2f} | {median(cores):.2f}"
            print(f"| {what} | {name} | {seconds} | {len(content) / 1000:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
