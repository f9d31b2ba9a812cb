"""Locks what the container image installs: each package at one version, each file by its hash.

`make lock` keeps what is locked while requirements.txt allows it; ARGS=--upgrade takes the newest.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPILED = r"(torch|torchvision|triton|(nvidia|cuda)-[\w-]+)=="
LOCKS = {
    "requirements.lock": "all that requirements.txt needs but torch's compiled parts",
    "requirements-torch.lock": "torch's compiled parts, as the package index has them: for CUDA",
    "requirements-uv.lock": "what the image is built with, and does not keep",
}
"""File → what is in it. torch lies apart because an image for the CPU has it from PyTorch."""


def resolve(wanted: str) -> list[str]:
    """Each package that is needed on Linux and Python 3.11, with its hashes, as uv writes it."""
    kept = ROOT / ".lock"
    before = [ROOT / name for name in LOCKS if (ROOT / name).exists()]
    kept.write_text("\n".join(lock.read_text("utf-8") for lock in before), "utf-8")
    command = [sys.executable, "-m", "uv", "pip", "compile", "-", "--quiet", "--output-file", kept]
    command += ["--generate-hashes", "--no-header", "--no-annotate", *sys.argv[1:]]
    command += ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28"]
    try:
        subprocess.run(
            command, cwd=ROOT, input=wanted, text=True, check=True, stdout=subprocess.DEVNULL
        )
        return re.findall(r"^\w.*(?:\n +--hash=.*)*", kept.read_text("utf-8"), re.MULTILINE)
    finally:
        kept.unlink()


def main() -> None:
    """Write the three files."""
    page = resolve((ROOT / "requirements.txt").read_text("utf-8"))
    tools = (ROOT / "requirements-dev.txt").read_text("utf-8")
    (uv,) = re.findall(r"^uv==\S+", tools, re.MULTILINE)
    parts = (
        [entry for entry in page if not re.match(COMPILED, entry)],
        [entry for entry in page if re.match(COMPILED, entry)],
        resolve(uv),
    )
    for (name, what), entries in zip(LOCKS.items(), parts, strict=True):
        lines = [f"# Written by `make lock`: {what}.", *entries, ""]
        (ROOT / name).write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    main()
