"""What the image installs is locked, recent enough, and all of it."""

import re
from base64 import b64encode
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import streamlit
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
IMAGE = {  # where the image's packages run
    "python_version": "3.11",
    "python_full_version": "3.11.15",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "os_name": "posix",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}
ENTRY = re.compile(r"^([\w.-]+)==(\S+) \\\n((?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M)


def locked(name: str) -> dict[str, str]:
    """Package → version of a lock, all of whose lines must be entries with hashes."""
    text = (ROOT / name).read_text("utf-8")
    assert re.sub(ENTRY, "", text).splitlines() == text.splitlines()[:1]
    return {canonicalize_name(found[1]): found[2] for found in ENTRY.finditer(text)}


@pytest.fixture(scope="module")
def image() -> dict[str, str]:
    rest, compiled = locked("requirements.lock"), locked("requirements-torch.lock")
    assert not rest.keys() & compiled.keys()
    return rest | compiled


def pins(name: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text("utf-8"), re.M)
    return {canonicalize_name(package): version for package, version in found}


def test_what_is_required_is_locked_at_its_version(image):
    required = pins("requirements.txt")
    assert len(required) > 10 and required.items() <= image.items(), "run `make lock`"
    assert locked("requirements-uv.lock") == {"uv": pins("requirements-dev.txt")["uv"]}


def test_what_a_locked_package_needs_is_locked_as_well(image):
    seen, missing = 0, []
    for package in image:
        try:
            needs = map(Requirement, requires(package) or ())
        except PackageNotFoundError:  # of another platform than the one that tests
            continue
        seen += 1
        for need in needs:
            if need.marker is None or need.marker.evaluate({**IMAGE, "extra": ""}):
                version = image.get(canonicalize_name(need.name))
                if version is None or not need.specifier.contains(version, prereleases=True):
                    missing.append(f"{package} needs {need}, and {version} is locked")
    assert seen > 40 and not missing


# The first versions without a known hole that an open page would have.
FLOORS = {
    "streamlit": "1.54",  # ahead of its own fixes for what a page serves
    "starlette": "1.3.1",  # which parses each request
    "python-multipart": "0.0.32",  # and each upload
    "torch": "2.11",
    "pillow": "13.0",  # the decoders
}


@pytest.mark.parametrize("package", FLOORS)
def test_nothing_older_than_its_last_known_hole_is_locked(image, package):
    assert Version(image[package]) >= Version(FLOORS[package])


def test_the_image_installs_by_hash():
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    installs = [part for part in re.split(r"&&|;|\n", text) if re.search(r"\bpip install\b", part)]
    by_hash = [part for part in installs if "--require-hashes" in part]
    # torch for the CPU comes from PyTorch's own channel, which publishes other files.
    (channel,) = [part for part in installs if part not in by_hash]
    assert "--torch-backend" in channel and len(by_hash) == 4


def test_the_proxy_lets_streamlits_own_lines_of_script_run():
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text("utf-8")
    inline = [
        text for text in re.findall(r"<script[^>]*>(.*?)</script>", page, re.S) if text.strip()
    ]
    sums = [b64encode(sha256(text.encode()).digest()).decode() for text in inline]
    policy = (ROOT / "deploy" / "nginx.conf.template").read_text("utf-8")
    assert sums == re.findall("'sha256-([^']+)'", policy)
