"""System calls that fail, by strace's fault injection: one line, the old file, nothing left."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.cases import Place, make_place
from shell import PATIENCE


def can_trace() -> bool:
    """Return whether strace is there and may trace."""
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_trace(), reason="strace is not there, or may not trace")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("calls"))


def run_failing(place: Place, ending: str, fault: str) -> subprocess.CompletedProcess[str]:
    """Write answers while system calls fail."""
    call = fault.partition(":")[0]
    trace = ["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", f"trace={call}"]
    target = place.path(f"out.{ending}")
    words = ["predict", place.path("whole.npz"), "-o", target, "--overwrite", "-q"]  # no progress
    return subprocess.run(
        [*trace, "-e", f"inject={fault}", sys.executable, "-m", "dkrls_cli", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def check_refused(place: Place, ending: str, fault: str) -> None:
    target = Path(place.path(f"out.{ending}"))
    if ending == "zarr":
        target.mkdir(exist_ok=True)
    old = target / ".zgroup" if ending == "zarr" else target
    old.write_text("old")
    run = run_failing(place, ending, fault)
    assert run.returncode == 1, run.stderr
    assert run.stderr.startswith(f"Error: '{target}' cannot be written ("), run.stderr
    assert run.stderr.count("\n") == 1, run.stderr
    assert old.read_text() == "old"
    left = [path.name for path in place.folder.iterdir() if path.name.startswith(".")]
    assert left == []


def test_a_disk_that_cannot_flush_is_told(place: Place) -> None:
    check_refused(place, "csv", "fsync:error=EIO:when=1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "fault"),
    [
        ("nc", "pwrite64:error=ENOSPC:when=3+"),
        ("nc", "fsync:error=EIO:when=1"),
        ("nc", "rename:error=EACCES"),
        ("csv", "rename:error=EACCES"),
        ("csv", "fchmodat,chmod:error=EPERM"),
        ("zarr", "fsync:error=ENOSPC:when=2"),
        ("zarr", "renameat2:error=EIO"),
    ],
)
def test_system_calls_that_fail_are_told(place: Place, ending: str, fault: str) -> None:
    check_refused(place, ending, fault)


@pytest.mark.slow
def test_a_system_that_cannot_exchange_folders_replaces_them_in_two_steps(place: Place) -> None:
    target = Path(place.path("out.zarr"))
    target.mkdir(exist_ok=True)
    (target / ".zgroup").write_text("old")
    run = run_failing(place, "zarr", "renameat2:error=EINVAL")
    assert run.returncode == 0, run.stderr
    assert (target / ".zmetadata").exists()
    assert [path.name for path in place.folder.iterdir() if path.name.startswith(".")] == []
