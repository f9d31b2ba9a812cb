"""A large model at a high resolution: what the process needs, libraries and weights included.

ViT-L/14, 24 layers, with random weights, which need as much as any; or another of timm's, by its
name and a side in pixels: `python -m benchmarks.large samvit_base_patch16 1024`.
"""

from __future__ import annotations

import platform
import resource
import sys
import time
from collections.abc import Iterator

import psutil

import attnviz
import models
from attnviz.record import AttentionRecord

NAME, SIDE = "vit_large_patch14_dinov2", 1036
LIMIT = 3.0
"""GiB that the process may need at most, of that one."""

GIB = 2**30


def steps(name: str, side: int) -> Iterator[tuple[str, float]]:
    """What was done last, and seconds that it took."""
    yield "Python, torch, timm and attnviz", 0.0
    start = time.perf_counter()
    vit = models.load(name, pretrained=False, image_size=side)
    yield "the model loaded", time.perf_counter() - start
    image = attnviz.open_image("samples/cat.jpg")
    start = time.perf_counter()
    record: AttentionRecord = attnviz.observe(vit, image, fit="crop", keep="factors")
    yield f"observed: {record.layout.tokens} tokens", time.perf_counter() - start
    start = time.perf_counter()
    query: str | tuple[int, int] = "cls" if "cls" in record.layout.prefix else (0, 0)
    attnviz.explain(record, "rollout", query=query)
    said = "the class token" if query == "cls" else "a patch"
    yield f"rollout of {said}", time.perf_counter() - start
    print(f"\nThe record holds {record.nbytes / GIB:.2f} GiB.")


def main() -> int:
    """Print the table; 1 where the limit is missed and --check is given."""
    given = [word for word in sys.argv[1:] if not word.startswith("-")]
    name, side = (given[0], int(given[1])) if given else (NAME, SIDE)
    print(f"{name}, {side} × {side} px, {platform.machine()}, {psutil.cpu_count()} processors.\n")
    print("| after | resident, GiB | most so far, GiB | seconds |\n| --- | --- | --- | --- |")
    most = 0.0
    for what, seconds in steps(name, side):
        now = psutil.Process().memory_info().rss / GIB
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB  # Linux counts KiB
        print(f"| {what} | {now:.2f} | {most:.2f} | {seconds:.0f} |", flush=True)
    if name != NAME:
        return 0
    print(f"\nAt most {LIMIT:g} GiB: {'met' if most < LIMIT else 'MISSED'}.")
    return int(most >= LIMIT and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
