"""Parquet tables are read as CSV tables of the same rows, and written with types."""

from datetime import datetime

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from shell import dkrls, refusal

from dkrls_cli import fit, open_grid
from dkrls_cli.errors import InputError, OutputError
from dkrls_cli.files.foreign.parquet import (
    is_parquet,
    read_as_csv,
    require_pyarrow,
    text_size,
    write_from_csv,
)
from dkrls_cli.files.source import kind_of
from dkrls_cli.files.text.csv.small import csv_rows
from dkrls_cli.grid.axes import axis_of

GIVEN = ["--kernel", "gaussian", "--sigma", 2, "--ridge", 1e-6]


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow", reason="needs pyarrow")


@pytest.fixture
def parquet(arrow):
    from pyarrow import parquet

    return parquet


def grid():
    time = np.datetime64("2020-01-01", "ns") + np.arange(5).astype("timedelta64[D]")
    coords = {"time": time, "x": [0.5, 1.0, 2.0, 3.5], "site": ["007", "b"]}
    values = np.random.default_rng(0).standard_normal((5, 4, 2))
    values[1, 2, 0] = np.nan
    return xr.DataArray(values, coords, [*coords], "v")


def rows(data):
    """Return a grid as a long table."""
    return data.to_dataframe().reset_index()


@pytest.fixture
def path(tmp_path, arrow, parquet):
    parquet.write_table(arrow.Table.from_pandas(rows(grid())), tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


def test_a_long_table_is_a_grid(path):
    assert is_parquet(str(path))
    assert kind_of(str(path)) == "table"
    found = open_grid(path, "v").sel(site=["007", "b"])
    xr.testing.assert_equal(found, grid())


@pytest.mark.parametrize("shape", ["long", "wide"])
def test_a_parquet_table_is_read_as_the_csv_table_of_the_same_rows(tmp_path, parquet, arrow, shape):
    table = rows(grid().isel(site=0, drop=True)) if shape == "long" else wide()
    parquet.write_table(arrow.Table.from_pandas(table, preserve_index=False), tmp_path / "a.pq")
    table.to_csv(tmp_path / "a.csv", index=False)
    xr.testing.assert_identical(open_grid(tmp_path / "a.pq"), open_grid(tmp_path / "a.csv"))


def wide():
    return pd.DataFrame({"x": [1.0, 2.0, 3.0], "10": [0.1, 0.2, np.nan], "20": [1.0, 2.0, 3.5]})


def test_columns_of_all_kinds_become_text(tmp_path, arrow, parquet):
    day = pd.Timestamp("2020-01-02 03:04:05")
    columns = {
        'odd, "name"': arrow.array(['a "b"', "#c"]),
        "kind": arrow.array(["u", "w"]).dictionary_encode(),
        "flag": arrow.array([True, None]),
        "price": arrow.array(["1.50", "2.25"]).cast(arrow.decimal128(6, 2)),
        "zoned": arrow.array([day, None], arrow.timestamp("ns", "Europe/Rome")),
        "fine": arrow.array([day + pd.Timedelta("5us"), day], arrow.timestamp("us")),
        "day": arrow.array([day.date(), None]),
        "single": arrow.array([0.1, None], arrow.float32()),
        "__index_level_0__": arrow.array([5, 6]),
    }
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    head, first, second = b"".join(read_as_csv(str(tmp_path / "a.parquet"))).decode().splitlines()
    assert head == '"odd, ""name""","kind","flag","price","zoned","fine","day","single"'
    assert first.split(",", 1) == [
        '"a ""b"""',
        '"u",1,1.5,"2020-01-02T03:04:05","2020-01-02T03:04:05.000005",2020-01-02,0.1',
    ]
    assert second == '"#c","w",,2.25,,"2020-01-02T03:04:05.000000",,'


def test_a_table_is_read_in_parts(tmp_path, arrow, parquet, monkeypatch):
    monkeypatch.setattr("dkrls_cli.files.foreign.parquet._ROWS", 3)
    parquet.write_table(arrow.table({"x": np.arange(8.0)}), tmp_path / "a.parquet")
    parts = list(read_as_csv(str(tmp_path / "a.parquet")))
    assert len(parts) == 4
    assert b"".join(parts).split() == [b'"x"', *(str(i).encode() for i in range(8))]


def test_a_table_that_does_not_fit_the_memory_is_refused(path, monkeypatch):
    assert text_size(str(path)) == 40 * 4 * 16
    monkeypatch.setattr(
        "dkrls_cli.files.text.csv.opening.available_bytes", lambda: 40 * 4 * 16 * 4 - 1
    )
    with pytest.raises(InputError, match="too much for the memory"):
        open_grid(path, "v")


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x,v\n1,2\n"])
def test_what_is_no_parquet_table_is_refused(tmp_path, arrow, data):
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(InputError, match="not a Parquet table, or it is damaged"):
        open_grid(tmp_path / "a.parquet")


def test_columns_of_other_types_are_refused(tmp_path, arrow, parquet):
    parquet.write_table(arrow.table({"x": [1.0, 2.0], "v": [[1], [2]]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"Column 'v' of .* is of type list<"):
        open_grid(tmp_path / "a.parquet")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"needs pyarrow to be read: pip install 'dkrls-cli\["):
        require_pyarrow("a.parquet", "read")
    (tmp_path / "a.pq").write_bytes(b"PAR1")
    assert "needs pyarrow to be read" in refusal("fit", tmp_path / "a.pq", "-o", tmp_path / "m.npz")
    fit(np.arange(9.0)).save(tmp_path / "m.npz")
    words = refusal("predict", tmp_path / "m.npz", "-o", tmp_path / "out.parquet")
    assert "out.parquet' needs pyarrow to be written" in words


# ------------------------------------------------------------------------------ rows of answers


@pytest.fixture
def model(tmp_path):
    how = {"kernel": "gaussian", "sigma": 2.0, "ridge": 1e-6}
    fit(grid(), **how).save(tmp_path / "m.npz")
    return tmp_path / "m.npz"


def types_of(parquet, path):
    return {field.name: str(field.type) for field in parquet.read_schema(path)}


def test_answers_on_a_grid_have_types(parquet, model, tmp_path):
    asked = ["--at", "x=0.7,1.2", "--std"]
    dkrls("predict", model, *asked, "-o", tmp_path / "out.parquet")
    dkrls("predict", model, *asked, "-o", tmp_path / "out.csv")
    kinds = {"time": "timestamp[us]", "x": "double", "site": "string"}
    assert types_of(parquet, tmp_path / "out.parquet") == {
        **kinds,
        "v": "double",
        "v_std": "double",
    }
    found = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    known = csv_rows((tmp_path / "out.csv").read_text())
    assert len(found) == len(known) == 20
    for row, text in zip(found, known, strict=True):
        assert row["time"] == datetime.fromisoformat(text["time"])
        assert row["site"] == text["site"]
        assert [row[name] for name in ("x", "v", "v_std")] == [
            float(text[name]) for name in ("x", "v", "v_std")
        ]


def test_answers_without_a_value_are_null(parquet, model, tmp_path):
    dkrls("predict", model, "--at", "x=9", "--outside", "missing", "-o", tmp_path / "out.pq")
    column = parquet.read_table(tmp_path / "out.pq").column("v")
    assert column.null_count == len(column) == 10


def test_points_are_read_from_parquet_and_written_to_it(arrow, parquet, model, tmp_path):
    points = pd.DataFrame(
        {
            "id": ["007", "8"],
            "X": [0.7, 1.2],
            "time": pd.to_datetime(["2020-01-02", "2020-01-03"]),
            "site": ["b", "007"],
        }
    ).rename(columns={"X": "x"})
    parquet.write_table(arrow.Table.from_pandas(points), tmp_path / "p.parquet")
    points.to_csv(tmp_path / "p.csv", index=False)
    for end in ("parquet", "csv"):
        given = ["--points", tmp_path / f"p.{end}"]
        dkrls("predict", model, *given, "-o", tmp_path / f"{end}.parquet")
    found = parquet.read_table(tmp_path / "parquet.parquet")
    kinds = {"id": "string", "x": "double", "time": "timestamp[us]", "site": "string"}
    assert types_of(parquet, tmp_path / "parquet.parquet") == {**kinds, "v": "double"}
    assert found.column("id").to_pylist() == ["007", "8"]
    assert found.equals(parquet.read_table(tmp_path / "csv.parquet"))


def test_a_column_of_another_name_has_the_type_of_its_axis(parquet, tmp_path):
    lat = xr.DataArray(np.arange(6.0) ** 2, {"lat": np.arange(6)}, ["lat"], "v")
    fit(lat, kernel="gaussian", sigma=2.0, ridge=1e-6).save(tmp_path / "m.npz")
    (tmp_path / "p.csv").write_text("Latitude\n1\n2.5\n")
    dkrls("predict", tmp_path / "m.npz", "--points", tmp_path / "p.csv", "-o", tmp_path / "o.pq")
    assert types_of(parquet, tmp_path / "o.pq") == {"Latitude": "double", "v": "double"}
    dkrls("predict", tmp_path / "m.npz", "-o", tmp_path / "grid.pq")
    assert types_of(parquet, tmp_path / "grid.pq")["lat"] == "int64"


def test_members_of_ensembles_are_numbered(parquet, tmp_path):
    fit(np.sin(np.arange(9.0)), kernel="gaussian", sigma=1.0, ridge=1e-6).save(tmp_path / "m.npz")
    dkrls("predict", tmp_path / "m.npz", "--ensemble", 2, "-o", tmp_path / "out.pq")
    found = parquet.read_table(tmp_path / "out.pq")
    assert types_of(parquet, tmp_path / "out.pq")["realization"] == "int64"
    assert found.num_rows == 18


def test_other_commands_write_rows_too(parquet, path, tmp_path):
    dkrls("fill", path, "--var", "v", "-o", tmp_path / "f.parquet", *GIVEN)
    filled = open_grid(tmp_path / "f.parquet", "v").sel(site=["007", "b"])
    assert not np.isnan(filled).any()
    xr.testing.assert_equal(filled.where(grid().notnull()), grid())
    dkrls("regrid", path, "--var", "v", "--at", "x=1,2", "-o", tmp_path / "r.pq", *GIVEN)
    assert parquet.read_table(tmp_path / "r.pq").num_rows == 20
    spike = grid().fillna(0.0)
    spike[2, 1, 1] += 100.0
    spike.to_netcdf(tmp_path / "s.nc")
    dkrls("check", tmp_path / "s.nc", "-o", tmp_path / "c.pq", "--false-alarm", 0.1)
    kinds = types_of(parquet, tmp_path / "c.pq")
    assert [kinds[name] for name in ("time", "value", "z", "kind")] == [
        *("timestamp[us]", "double", "double", "string"),
    ]
    masked = refusal("check", tmp_path / "s.nc", "--mask-out", tmp_path / "m.pq", code=2)
    assert "cannot be written as a grid" in masked


def test_dates_of_other_calendars_are_texts(parquet, tmp_path):
    import cftime

    dates = [cftime.datetime(2000, 2, d, calendar="360_day") for d in range(25, 31)]
    data = xr.DataArray(np.arange(6.0), {"time": dates}, ["time"], "v")
    fit(data, kernel="gaussian", sigma=2.0, ridge=1e-6).save(tmp_path / "m.npz")
    dkrls("predict", tmp_path / "m.npz", "-o", tmp_path / "o.pq")
    assert parquet.read_table(tmp_path / "o.pq").column("time").to_pylist()[-1] == "2000-02-30"


def test_coordinates_that_do_not_fit_their_type_stay_texts(parquet, tmp_path):
    (tmp_path / "rows.csv").write_text('x,note,v\n1 m,"a\nb",2.5\n2 m,,\n')
    axes = {"x": axis_of("x", [1.0])}
    write_from_csv(tmp_path / "rows.csv", tmp_path / "o.pq", axes, ["v"])
    found = parquet.read_table(tmp_path / "o.pq").to_pydict()
    assert found == {"x": ["1 m", "2 m"], "note": ["a\nb", ""], "v": [2.5, None]}
    with pytest.raises(OutputError, match=r"o\.pq' cannot be written"):
        write_from_csv(tmp_path / "rows.csv", tmp_path / "o.pq", axes, ["note"])
