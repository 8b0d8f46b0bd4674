"""Memory of this process, from the status of the system or its resource usage."""

import math
import mmap
import subprocess
import sys
from pathlib import Path

import pytest

from dkrls_cli import memory


def test_fields_of_the_status_are_kilobytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "self").mkdir()
    status = tmp_path / "self" / "status"
    status.write_text("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1000 kB\n")
    monkeypatch.setattr(memory, "_PROC", tmp_path)
    assert memory.held_bytes() == 1_024_000
    assert memory.peak_bytes() == 2_097_152


@pytest.mark.parametrize("text", [None, "Name:\tx\n"])
def test_without_the_status_the_peak_since_the_start_is_known(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource", reason="this system has no resource module")
    if text is not None:
        (tmp_path / "self").mkdir()
        (tmp_path / "self" / "status").write_text(text)
    monkeypatch.setattr(memory, "_PROC", tmp_path)
    unit = 1 if sys.platform == "darwin" else 1024
    before = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert before <= memory.held_bytes() <= memory.peak_bytes() < 1.5 * before


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1), ("linux", 1024)])
def test_resource_usage_is_in_bytes_on_one_system_only(
    platform: str, unit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource", reason="this system has no resource module")
    used = type("Usage", (), {"ru_maxrss": 7})
    monkeypatch.setattr(resource, "getrusage", lambda who: used)
    monkeypatch.setattr(memory, "_PROC", tmp_path / "absent")
    monkeypatch.setattr(memory.sys, "platform", platform)
    assert memory.peak_bytes() == 7 * unit


def test_without_either_it_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_PROC", tmp_path / "absent")
    monkeypatch.setitem(sys.modules, "resource", None)
    assert math.isnan(memory.peak_bytes())


def test_the_peak_is_reset_to_what_is_held_now() -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not reset peaks")
    held = []
    for _ in range(2):  # of the system, and given back to it: a heap might keep it
        with mmap.mmap(-1, 64_000_000) as block:
            block[:: mmap.PAGESIZE] = bytes(len(range(0, len(block), mmap.PAGESIZE)))
            held.append(memory.held_bytes())
            assert memory.peak_bytes() >= memory.held_bytes() - 1e6
        memory.reset_peak()
        assert memory.peak_bytes() < held[-1]


def test_a_reset_that_is_not_allowed_is_left_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_RESET", tmp_path / "no" / "such" / "folder")
    memory.reset_peak()


# ---- what there is room for


def test_the_machine_has_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(memory.os, "sysconf", pages.__getitem__, raising=False)
    assert memory.machine_bytes() == 4_096_000


def test_a_machine_of_unknown_size_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(memory.os, "sysconf", unknown, raising=False)
    assert memory.machine_bytes() == math.inf


MB = 2**20


class System:
    """A machine of 1000 MB as files describe it, with a process that holds 100 MB of it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc, self.groups, self._patch = root / "proc", root / "cgroup", monkeypatch
        self.write("proc/self/status", f"VmRSS: {100 * 1024} kB\n")
        self.set_limits()
        monkeypatch.setattr(memory, "machine_bytes", lambda: 1000.0 * MB)

    def write(self, name: str, text: str) -> None:
        path = self.proc.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def set_limits(self, **limits: int) -> None:
        """Set the limits of the process, in bytes."""
        resource = pytest.importorskip("resource", reason="this system has no resource module")
        by_number = {getattr(resource, name): size for name, size in limits.items()}

        def getrlimit(which: int) -> tuple[int, int]:
            return by_number.get(which, resource.RLIM_INFINITY), resource.RLIM_INFINITY

        self._patch.setattr(resource, "getrlimit", getrlimit)

    @property
    def megabytes(self) -> float:
        return memory.available_bytes(self.proc, self.groups) / MB


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    return System(tmp_path, monkeypatch)


def test_all_of_the_machine_is_available_if_nothing_else_is_told(system: System) -> None:
    assert system.megabytes == 1000
    (system.proc / "self" / "status").unlink()  # a system without /proc
    assert system.megabytes == 1000


def test_what_others_hold_is_not_available(system: System) -> None:
    system.write("proc/meminfo", f"MemTotal: 1 kB\nMemAvailable: {300 * 1024} kB\n")
    assert system.megabytes == 300 + 100  # what is free, and what this process holds


def test_a_system_without_limits_of_processes_has_none(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.set_limits(RLIMIT_AS=MB)
    assert system.megabytes == 1
    monkeypatch.setitem(sys.modules, "resource", None)
    assert system.megabytes == 1000


@pytest.mark.parametrize(("limit", "field"), [("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")])
def test_limits_of_a_process_count_what_it_has_reserved(
    limit: str, field: str, system: System
) -> None:
    system.set_limits(**{limit: 500 * MB})
    assert system.megabytes == 500
    system.write("proc/self/status", f"VmRSS: {100 * 1024} kB\n{field}: {350 * 1024} kB\n")
    assert system.megabytes == 500 - 250
    system.write("proc/self/status", f"VmRSS: {100 * 1024} kB\n{field}: {50 * 1024} kB\n")
    assert system.megabytes == 500
    system.set_limits(**{limit: 200 * MB})
    system.write("proc/self/status", f"VmRSS: {100 * 1024} kB\n{field}: {350 * 1024} kB\n")
    assert system.megabytes == 0  # not below nothing


FILES = {
    2: ("0::", "", "memory.max", "memory.current", "inactive_file"),
    1: (
        "7:cpu:/x\n4:hugetlb,memory:",
        "memory/",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("limited", ["", "jobs/", "jobs/one/"])
def test_control_groups_limit_all_below_them(version: int, limited: str, system: System) -> None:
    line, top, limit, usage, cached = FILES[version]
    system.write("proc/self/cgroup", f"{line}/jobs/one\n")
    assert system.megabytes == 1000
    for group in ("", "jobs/", "jobs/one/", "jobs/two/"):
        system.write(f"cgroup/{top}{group}{limit}", "max\n" if version == 2 else f"{2**63}\n")
    assert system.megabytes == 1000
    system.write(f"cgroup/{top}jobs/two/{limit}", f"{MB}\n")  # of others
    assert system.megabytes == 1000
    system.write(f"cgroup/{top}{limited}{limit}", f"{400 * MB}\n")
    assert system.megabytes == 400
    system.write(f"cgroup/{top}{limited}{usage}", f"{190 * MB}\n")
    system.write(f"cgroup/{top}{limited}memory.stat", f"anon 1\n{cached} {30 * MB}\n")
    assert system.megabytes == 400 - (190 - 30 - 100)  # less what others hold
    system.write(f"cgroup/{top}{limited}{usage}", f"{50 * MB}\n")
    assert system.megabytes == 400


def test_a_group_of_another_controller_limits_nothing(system: System) -> None:
    system.write("proc/self/cgroup", "7:cpu:/jobs\n")
    system.write("cgroup/memory.max", f"{MB}\n")
    system.write("cgroup/memory/memory.limit_in_bytes", f"{MB}\n")
    assert system.megabytes == 1000


def test_the_path_of_a_host_is_that_of_the_container(system: System) -> None:
    system.write("proc/self/cgroup", "0::/docker/abc\n")
    system.write("cgroup/memory.max", f"{20 * MB}\n")
    assert system.megabytes == 20


def test_this_machine_has_room_for_this_process() -> None:
    assert memory.available_bytes() > 0


def test_memory_that_arrays_leave_is_taken_by_others() -> None:
    """In a process of its own: the setting stays."""
    resource = pytest.importorskip("resource", reason="this system has no resource module")
    code = """
import resource
import numpy as np
from dkrls_cli.memory import reuse_freed
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.ones(2**18)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
np.ones(2**18)
usual = faults()
print(reuse_freed(), usual, faults())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    can, usual, reused = done.stdout.split()
    if can == "True":
        assert int(reused) < 0.5 * int(usual) + 600
    assert resource.RUSAGE_SELF == 0


def test_other_libraries_keep_their_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        def __init__(self, name: object) -> None:
            pass

    monkeypatch.setattr(memory.ctypes, "CDLL", Other)
    assert not memory.reuse_freed()
