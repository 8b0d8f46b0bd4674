"""Dry runs of fits."""

from __future__ import annotations

import json
import re
from pathlib import Path

from shell import dkrls


def test_dry_run_writes_nothing(globe: Path, tmp_path: Path) -> None:
    told = dkrls("fit", globe, "--dry-run", "-o", tmp_path / "m.npz").stdout
    assert "memory" in told
    assert "time 12 x lat 5 x lon 8" in told
    assert list(tmp_path.iterdir()) == []


def test_the_plan_tells_the_parts_of_the_memory(globe: Path) -> None:
    found = dkrls("fit", globe, "--dry-run", "--json")
    plan = json.loads(found.stdout)
    assert plan["memory_bytes"] == sum(plan["memory_parts"].values())
    assert plan["memory_parts"]["process"] > 1e7
    told = dkrls("fit", globe, "--dry-run", "-v")
    assert re.search(r"memory +about [\d.]+ [MG]B, [\d.]+ [MG]B if cells are missing", told.stdout)
    assert re.search(r"t: memory\n(.*\n)*process +[\d.]+ [MG]B", told.stderr)
    assert "t: memory if cells are missing\n" in told.stderr
    strict = dkrls("fit", globe, "--dry-run", "--missing", "error", "--json").stdout
    assert json.loads(strict)["memory_bytes_with_gaps"] is None
    assert "if cells" not in dkrls("fit", globe, "--dry-run", "--missing", "error").stdout
