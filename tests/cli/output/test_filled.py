"""Filled grids in files: copies of tables, what packed numbers cannot hold, and rows."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import xarray as xr
from sample_files import netcdf
from shell import dkrls, refusal

WIDE = "year;Jan;Feb;Mar;Apr\n" + "".join(
    f"{1990 + y};{y + 0.5};{'NA' if y == 3 else f'{y + 1.0:.2f}'};{y + 1.5};{y + 2}\n"
    for y in (2, 0, 1, 3, 4, 5)
)


def test_a_wide_table_comes_back_wide(tmp_path: Path) -> None:
    (source := tmp_path / "w.csv").write_text(f"# by hand\n{WIDE}")
    given = ("--kernel", "gaussian", "--sigma", "year=3,column=3", "--ridge", "1e-6")
    told = json.loads(dkrls("fill", source, "-o", tmp_path / "o.csv", *given, "--json").stdout)
    assert (told["missing"], told["filled"]) == (1, 1)
    dkrls("fill", "-", "-o", tmp_path / "p.csv", *given, stdin=f"# by hand\n{WIDE}")
    text = (tmp_path / "o.csv").read_text()
    assert (tmp_path / "p.csv").read_text() == text
    before, after = f"# by hand\n{WIDE}".splitlines(), text.splitlines()
    changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert changed == [5]
    head, value, tail = after[5].split(";")[:2], float(after[5].split(";")[2]), after[5][-6:]
    assert (head, tail) == (["1993", "3.5"], ";4.5;5")
    assert value == pytest.approx(4.0, abs=0.05)


def test_a_wide_table_goes_to_other_formats_as_before(tmp_path: Path) -> None:
    (source := tmp_path / "w.csv").write_text(WIDE)
    given = ("--kernel", "gaussian", "--sigma", "3", "--ridge", "1e-6", "--std")
    for name in ("o.nc", "o.jsonl"):
        dkrls("fill", source, "-o", tmp_path / name, *given)
    with xr.open_dataset(tmp_path / "o.nc") as grid:
        assert grid.w.dims == ("year", "column")
        assert not grid.w.isnull().any()
    first = json.loads((tmp_path / "o.jsonl").read_text().splitlines()[0])
    assert list(first) == ["year", "column", "w", "w_std"]


def test_standard_errors_of_a_wide_table_are_refused_before_any_work(tmp_path: Path) -> None:
    (source := tmp_path / "w.csv").write_text(WIDE)
    with mock.patch("dkrls_cli.model.fill.fill_grid") as work:
        line = refusal("fill", source, "-o", tmp_path / "o.csv", "--std", code=2)
    work.assert_not_called()
    assert "A wide table has no room for standard errors" in line
    assert not (tmp_path / "o.csv").exists()


def test_a_long_table_comes_back_in_its_own_order(tmp_path: Path) -> None:
    cells = [(d, x) for x in range(5) for d in range(6) if (d, x) != (2, 3)]
    rows = [f"{d + 0.5 * x if (d, x) != (1, 1) else 'NA'},{d},r{x}{d},{x}" for d, x in cells]
    (source := tmp_path / "l.csv").write_text("\n".join(["v,day,id,x", *rows]) + "\n")
    given = ("--var", "v", "--levels", "x,day", "--kernel", "gaussian", "--sigma", "3")
    dkrls("fill", source, "-o", tmp_path / "o.csv", *given, "--ridge", "1e-6", "--std")
    head, *after, last = (tmp_path / "o.csv").read_text().splitlines()
    assert head == "v,day,id,x,v_std"
    for old, new in zip(rows, after, strict=True):
        value, rest = new.split(",", 1)
        assert rest.rsplit(",", 1)[0] == old.split(",", 1)[1]
        if old.startswith("NA"):
            assert float(value) == pytest.approx(1.5, abs=0.01)
            assert float(rest.rsplit(",", 1)[1]) > 0
        else:
            assert new == f"{old},0.0"
    value, *where, error = last.split(",")
    assert where == ["2", "", "3"]
    assert float(value) == pytest.approx(3.5, abs=0.01)
    assert float(error) > 0


def packed_gap(path: Path, dtype: str = "uint8", fill: int = 255) -> Path:
    """A wave that peaks above the largest packed number, with a gap at the peak."""
    x, y = np.arange(12.0), np.arange(9.0)
    wave = np.add.outer(30 * np.sin(x / 11 * np.pi), 30 * np.sin(y / 8 * np.pi)) + 220
    raw = np.where(wave > 254.5, fill, np.rint(wave)).astype(dtype)
    raw[0, 3] = fill
    variables = {
        "x": (("x",), x, {"units": "m"}),
        "y": (("y",), y, {"units": "m"}),
        "t": (("x", "y"), raw, {"_FillValue": np.dtype(dtype).type(fill), "add_offset": 5.0}),
    }
    return netcdf(path, variables)


def test_filled_numbers_beyond_the_packing_are_told(tmp_path: Path) -> None:
    source = packed_gap(tmp_path / "a.nc")
    words = ("--sigma", "4", "--ridge", "1e-6", "--kernel", "gaussian")
    told = dkrls("fill", source, "-o", tmp_path / "b.nc", "--mask", "none", *words)
    (note,) = [line for line in told.stderr.splitlines() if "lie beyond" in line]
    assert "filled cells of 't' lie beyond 5 to 259, which its uint8 can hold" in note
    stored = xr.load_dataset(tmp_path / "b.nc", mask_and_scale=False).t
    assert stored.dtype == np.uint8
    assert not (stored == 255).any()


def test_another_format_of_filled_cells_beyond_the_packing_is_floating(tmp_path: Path) -> None:
    source = packed_gap(tmp_path / "a.nc")
    words = ("--sigma", "4", "--ridge", "1e-6", "--kernel", "gaussian")
    told = dkrls("fill", source, "-o", tmp_path / "b.zarr", "--mask", "none", *words)
    assert "is written as float64 and not packed as uint8" in told.stderr
    with xr.open_dataset(tmp_path / "b.zarr", engine="zarr") as filled:
        assert float(filled.t.max()) > 259


def test_rows_of_different_grids_are_refused_before_any_work(tmp_path: Path) -> None:
    x, y = np.arange(8.0), np.arange(6.0)
    t = np.add.outer(np.sin(x), y)
    t[3, 2] = np.nan
    grid = xr.Dataset({"t": (("x", "y"), t), "u": (("x",), t[:, 2])}, {"x": x, "y": y})
    grid.to_netcdf(tmp_path / "a.nc")
    words = ("fill", tmp_path / "a.nc", "--var", "all", "-o", tmp_path / "o.csv")
    with mock.patch("dkrls_cli.model.fill.fill_grid") as work:
        line = refusal(*words, code=2)
    work.assert_not_called()
    assert "Variables 't' and 'u' are on different grids, and rows have one" in line
