"""Memory of this process, from the status of the system or its resource usage."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from dkrls_cli.bench import memory


def test_fields_of_the_status_are_kilobytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1000 kB\n")
    monkeypatch.setattr(memory, "_STATUS", status)
    assert memory.held_bytes() == 1_024_000
    assert memory.peak_bytes() == 2_097_152


@pytest.mark.parametrize("text", [None, "Name:\tx\n"])
def test_without_the_status_the_peak_since_the_start_is_known(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource", reason="this system has no resource module")
    if text is not None:
        (tmp_path / "status").write_text(text)
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "status")
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
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "absent")
    monkeypatch.setattr(memory.sys, "platform", platform)
    assert memory.peak_bytes() == 7 * unit


def test_without_either_it_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "absent")
    monkeypatch.setitem(sys.modules, "resource", None)
    assert math.isnan(memory.peak_bytes())


def test_the_peak_is_reset_to_what_is_held_now() -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not reset peaks")
    block = np.ones(4_000_000)
    with_block = memory.held_bytes()
    del block
    memory.reset_peak()
    assert memory.peak_bytes() < with_block
    block = np.ones(4_000_000)
    assert memory.peak_bytes() >= memory.held_bytes() - 1e6
    assert block.size


def test_a_reset_that_is_not_allowed_is_left_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_RESET", tmp_path / "no" / "such" / "folder")
    memory.reset_peak()


def test_half_of_the_machine_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(memory.os, "sysconf", pages.__getitem__, raising=False)
    assert memory.allowed_bytes() == 2_048_000


def test_without_a_known_size_all_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(memory.os, "sysconf", unknown, raising=False)
    assert memory.allowed_bytes() == math.inf
