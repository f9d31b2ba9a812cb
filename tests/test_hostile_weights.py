"""Files of weights that are damaged, or lie: each is refused in a sentence, soon, in little memory."""

from __future__ import annotations

import json
import re
import struct
import sys

import pytest
from picture_walk import Job, walk

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.long,  # tests/test_weights.py has the common ones
]

SECONDS, MEGABYTES = 5, 300


def header(entries: object, blanks: int = 0) -> bytes:
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text) + blanks) + text + b" " * blanks


def tensor(start=0, end=16, dtype="F32", shape=(4,)) -> dict[str, object]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}


ONE = b'"a":' + json.dumps(tensor()).encode()
SOUND = header({"a": tensor()}) + struct.pack("<4f", 1, 2, 3, 4)
BROKEN = "is not a whole safetensors file"
NUMBERS = "not floating point of 16 bits or more"

# name -> (file, the words that refuse it, or how many tensors are read)
CASES = {
    "sound": (lambda: SOUND, 1),
    "none at all": (lambda: header({}), 0),
    "with a description": (
        lambda: header({"__metadata__": {"k": "v"}, "a": tensor()}) + bytes(16),
        1,
    ),
    "a tensor of one number": (lambda: header({"a": tensor(0, 4, shape=())}) + bytes(4), 1),
    "a tensor of no numbers": (lambda: header({"a": tensor(0, 0, shape=(0, 3))}), 1),
    "empty": (lambda: b"", BROKEN),
    "seven bytes": (lambda: SOUND[:7], BROKEN),
    "a header of no bytes": (lambda: bytes(8), BROKEN),
    "zeros": (lambda: bytes(4096), BROKEN),
    "noise": (lambda: bytes(range(256)) * 9, BROKEN),
    **{
        f"cut short, {share:.0%} of it": (
            lambda share=share: SOUND[: int(len(SOUND) * share)],
            BROKEN,
        )
        for share in (0.1, 0.5, 0.9, 0.99)
    },
    "too long": (lambda: SOUND + b"\0", BROKEN),
    "another file after it": (lambda: SOUND * 2, BROKEN),
    "a header of 2^64 - 1 bytes": (lambda: b"\xff" * 8 + bytes(16), BROKEN),
    "a header of 2^63 bytes": (lambda: struct.pack("<Q", 2**63) + bytes(16), BROKEN),
    "a header of 100 MB": (lambda: header({"a": tensor()}, 100_000_000), "header of 95 MB"),
    "a header of 5 MB": (lambda: header({"a": tensor()}, 5_000_000) + bytes(16), "header of 5 MB"),
    "a header of 4 MB": (lambda: header({"a": tensor()}, 4_000_000) + bytes(16), 1),
    "a million tensors": (
        lambda: header({f"t{n}": tensor(0, 0, shape=(0,)) for n in range(1_000_000)}),
        "expected at most 4",
    ),
    "a header that is no JSON": (lambda: header(b"{{{{"), BROKEN),
    "a header that is a list": (lambda: header([1, 2]), BROKEN),
    "a header of 100 000 brackets": (lambda: header(b"[" * 100_000), BROKEN),
    "a header of 100 000 braces": (lambda: header(b'{"a":' * 100_000), BROKEN),
    "a header that is not Unicode": (lambda: header(b'{"\xff\xfe":' + ONE[4:] + b"}"), BROKEN),
    "a description that is a number": (lambda: header({"__metadata__": {"a": 1}}), BROKEN),
    "a tensor that is text": (lambda: header({"a": "tensor"}), BROKEN),
    "a tensor without a shape": (lambda: header({"a": {"dtype": "F32"}}), BROKEN),
    "two of one name": (lambda: header(b"{" + ONE + b"," + ONE + b"}") + bytes(16), "of one name"),
    "two that overlap": (
        lambda: header({"a": tensor(), "b": tensor(8, 24)}) + bytes(24),
        BROKEN,
    ),
    "a gap": (lambda: header({"a": tensor(), "b": tensor(32, 48)}) + bytes(48), BROKEN),
    "an end before its start": (lambda: header({"a": tensor(16, 0)}) + bytes(16), BROKEN),
    "an end beyond the file": (lambda: header({"a": tensor(0, 2**40)}) + bytes(16), BROKEN),
    "a start below zero": (lambda: header({"a": tensor(-16, 0)}) + bytes(16), BROKEN),
    "a shape below zero": (lambda: header({"a": tensor(shape=(-4,))}) + bytes(16), BROKEN),
    "a shape of another size": (lambda: header({"a": tensor(shape=(5,))}) + bytes(16), BROKEN),
    "a shape beyond numbers": (lambda: header({"a": tensor(shape=(2**62,) * 2)}), BROKEN),
    "a shape of 2000 sides": (lambda: header({"a": tensor(shape=(4,) + (1,) * 2000)}) + bytes(16), "has 2001 sides"),
    "an unknown kind of numbers": (lambda: header({"a": tensor(dtype="F99")}) + bytes(16), BROKEN),
    **{
        f"numbers of the kind {dtype}": (
            lambda dtype=dtype, count=count: header({"a": tensor(dtype=dtype, shape=(count,))})
            + bytes(16),
            NUMBERS,
        )
        for dtype, count in (("I8", 16), ("I64", 2), ("BOOL", 16), ("F8_E4M3", 16), ("C64", 2), ("F4", 32))
    },
    **{
        f"{value} in {dtype}": (
            lambda dtype=dtype, form=form, value=value: header(
                {"a": tensor(0, struct.calcsize(form), dtype, (1,))}
            )
            + struct.pack(form, float(value)),
            "holds NaN or infinity",
        )
        for dtype, form in (("F16", "<e"), ("F32", "<f"), ("F64", "<d"))
        for value in ("nan", "-inf")
    },
    "too large for 32 bits": (
        lambda: header({"a": tensor(0, 8, "F64", (1,))}) + struct.pack("<d", 1e300),
        "holds NaN or infinity",
    ),
    "a name of 100 000 letters": (
        lambda: header({"n" * 100_000: tensor(0, 4, shape=(1,))}) + struct.pack("<f", float("nan")),
        "The tensor n{80} in",
    ),
    "a name that is markup": (
        lambda: header({"<b>\n\n# `x": tensor(0, 4, shape=(1,))}) + struct.pack("<f", float("nan")),
        r"The tensor \?b\?\?\?\?\?\?x in",
    ),
    "a pickle": (lambda: b"\x80\x04\x95\x10" + bytes(40), "is a pickle"),
    "a ZIP archive": (lambda: b"PK\3\4" + bytes(40), "is a pickle"),
}  # fmt: skip


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder, jobs = tmp_path_factory.mktemp("weights"), {}
    for number, (name, (make, _)) in enumerate(CASES.items()):
        path = folder / str(number) / "w.safetensors"
        path.parent.mkdir()
        path.write_bytes(make())
        jobs[name] = Job(str(path), by_path=True)
    return walk(jobs, "weights")


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file_of_weights_is_refused_at_little_cost(name, seen):
    (_, outcome), found = CASES[name], seen[name]
    if isinstance(outcome, int):
        assert (found.outcome, found.size[0]) == ("opened", outcome), found
    else:
        assert found.outcome == "refused", found
        assert re.search(outcome, found.message)
        assert "w.safetensors" in found.message and len(found.message) <= 450
        assert not re.search(r"0x[0-9a-f]{4}|object at|Traceback|/tmp|\n", found.message)
    assert found.printed == ""
    assert found.seconds <= SECONDS and found.megabytes <= MEGABYTES
