"""What memory there is, read from files as Linux writes them."""

import pytest

from attnviz.ui import room

GB = 2**30
MEMINFO = "MemTotal:       16777216 kB\nMemFree:          524288 kB\nMemAvailable:    8388608 kB\n"


@pytest.fixture
def linux(monkeypatch, tmp_path):
    """Writes the files of a machine of 16 GiB, of which 8 can be had."""
    monkeypatch.setattr(room, "ROOT", tmp_path)
    monkeypatch.setattr(room, "budget", lambda: room.shared_out(100 * GB))

    def write(files):
        for path, text in ({"proc/meminfo": MEMINFO} | files).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(f"{text}\n")

    return write


V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/memory"
CASES = {
    "no container": ({}, 16, 8),
    "version 2, its own group as the root": (
        {f"{V2}/memory.max": 4 * GB, f"{V2}/memory.current": 1 * GB, "proc/self/cgroup": "0::/"},
        4,
        3,
    ),
    "no limit": ({f"{V2}/memory.max": "max", f"{V2}/memory.current": 1 * GB}, 16, 8),
    "a group within one of a tighter limit": (
        {
            "proc/self/cgroup": "0::/pod/app",
            f"{V2}/pod/app/memory.max": 6 * GB,
            f"{V2}/pod/app/memory.current": 1 * GB,
            f"{V2}/pod/memory.max": 5 * GB,
            f"{V2}/pod/memory.current": 4 * GB,
        },
        5,
        1,
    ),
    "files in memory that can go": (
        {
            f"{V2}/memory.max": 4 * GB,
            f"{V2}/memory.current": 3 * GB,
            f"{V2}/memory.stat": f"anon 5\ninactive_file {2 * GB}\nactive_file 7",
        },
        4,
        3,
    ),
    "version 1": (
        {
            "proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/4f2a",
            f"{V1}/memory.limit_in_bytes": 2 * GB,
            f"{V1}/memory.usage_in_bytes": GB,
        },
        2,
        1,
    ),
    "version 1 of one group among others": (
        {
            "proc/self/cgroup": "4:cpu,memory:/docker/4f2a",
            f"{V1}/docker/4f2a/memory.limit_in_bytes": 2 * GB,
            f"{V1}/docker/4f2a/memory.usage_in_bytes": GB + GB // 2,
            f"{V1}/docker/4f2a/memory.stat": f"inactive_file 1\ntotal_inactive_file {GB}",
            f"{V1}/memory.limit_in_bytes": 9223372036854771712,
            f"{V1}/memory.usage_in_bytes": 3 * GB,
        },
        2,
        1.5,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_limits_are_those_of_the_tightest(linux, case):
    files, limit, free = CASES[case]
    linux(files)
    assert room.limit_bytes() == limit * GB
    assert room.free_bytes() == free * GB


def test_the_budget_is_free_no_more_than_it_has_left(linux, monkeypatch):
    linux({"proc/self/statm": f"9999999 {GB // 4096} 1 1 0 1 0"})
    assert room.used_bytes() == GB
    monkeypatch.setattr(room, "budget", lambda: room.shared_out(3 * GB))
    assert room.free_bytes() == 2 * GB


def test_a_system_that_tells_nothing_is_no_limit(linux, tmp_path):
    linux({"proc/meminfo": "?"})
    assert room.limit_bytes() == room.NO_LIMIT


def test_what_is_kept_leaves_room_for_what_runs():
    for gigabytes in (1, 2, 4, 24, 256):
        share = room.shared_out(gigabytes * GB)
        assert share.whole == gigabytes * GB
        assert share.records == max(share.whole - 800 * 2**20, 64 * 2**20) // 4
