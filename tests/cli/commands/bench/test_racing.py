"""Races on grids: methods, files that cannot race, tables, and rows that are written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sample_files import grid
from shell import csv_rows

from dkrls_cli.cli.commands.bench import racing
from dkrls_cli.cli.report import Report
from dkrls_cli.errors import InputError, OutputError, SettingError

KNOWN = ["dkrls", "linear", "cubic"]


def test_methods_are_those_named_or_all() -> None:
    assert racing.chosen_methods(None, KNOWN) == ["dkrls", "linear", "cubic"]
    assert racing.chosen_methods("cubic, dkrls", KNOWN) == ["dkrls", "cubic"]
    for text, name in (("linear,magic", "magic"), ("", ""), (",", "")):
        with pytest.raises(SettingError, match=f"Unknown method '{name}'. Choose from: dkrls, lin"):
            racing.chosen_methods(text, KNOWN)


def race(**facts: Any) -> Any:
    plain = {"methods": KNOWN, "references": ("linear", "cubic"), "gaps": False, "kinds": ("a",)}
    plain |= {"taken": "held out", "needs": "three cells", "make_cases": lambda grid, seeds: []}
    return SimpleNamespace(**{**plain, **facts})


@pytest.mark.parametrize(
    ("text", "methods", "note"),
    [
        (None, ["dkrls", "linear", "cubic"], ""),
        ("cubic,dkrls", ["dkrls", "cubic"], "Note: linear will not race; ratios are without them."),
        ("cubic", ["cubic"], ""),
    ],
)
def test_ratios_without_a_reference_are_noted(
    text: str | None, methods: list[str], note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert racing.race_methods(race(), text, Report()) == methods
    told = capsys.readouterr().err
    assert told.startswith(note)
    assert bool(told) == bool(note)


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_no_time_is_refused(limit: float) -> None:
    with pytest.raises(SettingError, match=f"Invalid --time-limit {limit:g}. Give seconds above 0"):
        racing.refuse_no_time(limit)


def test_a_little_time_is_enough() -> None:
    racing.refuse_no_time(1e-9)


def test_outputs_are_checked_before_any_work(tmp_path: Path) -> None:
    racing.refuse_unwritable(None, False)
    racing.refuse_unwritable(tmp_path / "new.csv", False)
    (tmp_path / "old.csv").touch()
    racing.refuse_unwritable(tmp_path / "old.csv", True)
    with pytest.raises(OutputError, match="exists"):
        racing.refuse_unwritable(tmp_path / "old.csv", False)


def test_every_file_is_a_grid_and_all_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [grid(tmp_path / f"{n}.nc", {"x": (np.arange(float(n)), {})}) for n in (3, 4, 2)]
    pattern, kinds = str(tmp_path / "[34].nc"), ("a", "b")

    def cases(data: Any, seeds: Any) -> list[Any]:
        return [SimpleNamespace(kind="a")] if data.values.size > 2 else []

    asked = race(make_cases=cases, kinds=kinds)
    grids = racing.read_grids(asked, [pattern], None, Report())
    assert {path: g.values.size for path, g in grids.items()} == {
        str(p): n for p, n in zip(paths, (3, 4), strict=False)
    }
    assert capsys.readouterr().err.count("has no room for 'b'.") == 2
    with pytest.raises(InputError, match=r"can be held out: x 2\. Expected three cells"):
        racing.read_grids(asked, [pattern, str(paths[2])], None, Report())


def test_missing_cells_are_refused_unless_the_race_is_about_them(tmp_path: Path) -> None:
    holed = {"t": (("x",), np.array([1.0, np.nan, 3.0]), {})}
    path = str(grid(tmp_path / "g.nc", {"x": (np.arange(3.0), {})}, extra=holed))
    one = {"make_cases": lambda grid, seeds: [SimpleNamespace(kind="a")]}
    with pytest.raises(InputError, match="1 of 3 cells"):
        racing.read_grids(race(**one), [path], None, Report())
    assert list(racing.read_grids(race(gaps=True, **one), [path], None, Report())) == [path]


def row(method: str, rmse: float, note: str = "", **facts: float) -> dict[str, Any]:
    return {"method": method, "rmse": rmse, "note": note, "ratio": 0.5, "coverage90": 0.9, **facts}


def test_a_case_is_a_line_with_the_ratio_of_dkrls() -> None:
    assert racing.case_line([row("linear", 0.123456), row("dkrls", 0.061728, ratio=0.50001)]) == {
        "linear": 0.123,
        "dkrls": 0.0617,
        "ratio": 0.5,
        "cover90": 0.9,
    }
    assert racing.case_line([row("linear", 1.0)]) == {"linear": 1.0}


def test_a_grid_is_a_table_with_notes_below() -> None:
    cases = {
        "seed 0": [row("linear", 1.0), row("cubic", float("nan"), "took too long")],
        "seed 1": [row("linear", 2.0), row("cubic", 3.0)],
    }
    layout, notes = racing.grid_parts("held out", cases)
    assert str(layout).splitlines() == [
        "held out  linear  cubic",
        "seed 0         1      -",
        "seed 1         2      3",
    ]
    assert notes == "seed 0: cubic took too long."


def test_rows_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    rows = [{"method": "dkrls", "rmse": 0.5}, {"method": "linear", "rmse": 1.0}]
    racing.write_rows(rows, None, False)
    racing.write_rows(rows, tmp_path / "rows.csv", False)
    told = csv_rows((tmp_path / "rows.csv").read_text())
    assert [(r["method"], float(r["rmse"])) for r in told] == [("dkrls", 0.5), ("linear", 1.0)]
    with pytest.raises(OutputError, match="exists"):
        racing.write_rows(rows[:1], tmp_path / "rows.csv", False)
    racing.write_rows(rows[:1], tmp_path / "rows.csv", True)
    assert len(csv_rows((tmp_path / "rows.csv").read_text())) == 1


def test_the_machine_is_a_detail(capsys: pytest.CaptureFixture[str]) -> None:
    racing.print_machine(Report())
    assert capsys.readouterr().err == ""
    racing.print_machine(Report(verbose=True))
    assert capsys.readouterr().err.count("\n") == 1
