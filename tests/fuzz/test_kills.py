"""A command that is killed leaves every output whole, and nothing that the next run shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shell import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="commands run in forked processes")


def kills(count: int) -> None:
    script = Path(__file__).with_name("kills.py")
    command = [sys.executable, "-W", "ignore", str(script), "--count", str(count)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["faults"] == []
    assert found["left"] == []
    assert found["kills"] == count


@pytest.mark.slow
def test_a_hundred_killed_commands_leave_whole_files() -> None:
    kills(104)
