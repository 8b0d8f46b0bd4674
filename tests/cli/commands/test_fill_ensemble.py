"""``dkrls fill --ensemble``: members beside the filled data, in every kind of file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from sample_files import EAST, NORTH
from shell import csv_rows, dkrls, refusal

from dkrls_cli import fill
from dkrls_cli.cli.commands import fill as command
from dkrls_cli.files.patching import members
from dkrls_cli.model import fill as filling

LAT, LON, DAYS = np.linspace(-20, 20, 6), np.linspace(100, 130, 7), np.arange(8)
LAND = np.add.outer(LAT, LON) > 130
GIVEN = ("--kernel", "matern52", "--sigma", "lat=15,lon=15,time=5", "--ridge", "1e-3")
SAME = {"kernel": "matern52", "sigma": {"lat": 15, "lon": 15, "time": 5}, "ridge": 1e-3}


def gaps() -> np.ndarray:
    missing = np.random.default_rng(2).random((8, 6, 7)) < 0.15
    missing[:, 0, 0] = False
    return missing | LAND


MISSING = gaps()
ALWAYS = np.broadcast_to(LAND, MISSING.shape)
FILLED = MISSING & ~ALWAYS


def dataset(*names: str, dtype: str = "f4") -> xr.Dataset:
    """Days of a sea under clouds; variables of different names differ."""
    waves = 15 + 4 * np.sin(np.add.outer(DAYS / 4, np.add.outer(LAT / 10, LON / 9)))
    dims, about = ("time", "lat", "lon"), {"units": "degree_Celsius", "valid_min": np.float32(-5)}
    return xr.Dataset(
        {
            name: (dims, np.where(MISSING, np.nan, waves + place).astype(dtype), about)
            for place, name in enumerate(names or ("sst",))
        },
        {
            "time": ("time", DAYS, {"units": "days since 2001-01-01", "calendar": "standard"}),
            "lat": ("lat", LAT, NORTH),
            "lon": ("lon", LON, EAST),
        },
    )


def write(path: Path, *names: str, form: str = "NETCDF4", grows: bool = True, **encoding) -> Path:
    found = dataset(*names)
    found.to_netcdf(
        path,
        format=form,
        engine="netcdf4",
        unlimited_dims=["time"] if grows else [],
        encoding=dict.fromkeys(found, encoding),
    )
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("members") / "sst.nc")


def opened(path: Path) -> xr.Dataset:
    zarr_store = path.suffix == ".zarr"
    with xr.open_dataset(path, engine="zarr" if zarr_store else "netcdf4") as found:
        return found.load()


@cache
def expected(count: int = 3, seed: int = 0, **options: Any) -> xr.DataArray:
    with xr.decode_cf(dataset()) as data:
        return fill(data.sst, ensemble=count, seed=seed, **SAME, **options).sst_ensemble


def assert_members(found: xr.Dataset, name: str = "sst", cells: np.ndarray = FILLED) -> None:
    """Observed cells are the data, filled ones differ, the others are missing."""
    drawn = found[f"{name}_ensemble"].transpose("realization", ...).values
    assert (drawn[:, ~MISSING] == found[name].values[~MISSING]).all()
    assert np.isnan(drawn[:, MISSING & ~cells]).all()
    assert (drawn[0] != drawn[1])[cells].all()
    mean, spread = found[name].values[cells], drawn.std(axis=0)[cells].max()
    assert np.abs(drawn[:, cells] - mean).max() < 6 * spread
    assert found.realization.values.tolist() == list(range(len(drawn)))
    assert found.realization.attrs["standard_name"] == "realization"


# Copies of files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT", "NETCDF4_CLASSIC", "NETCDF4"])
def test_members_are_added_to_a_copy(form: str, grows: bool, tmp_path: Path) -> None:
    path, out = write(tmp_path / "a.nc", form=form, grows=grows), tmp_path / "b.nc"
    told = dkrls("fill", path, "-o", out, "--ensemble", 3, *GIVEN)
    found = opened(out)
    assert_members(found)
    first = form.startswith("NETCDF3") and grows  # where an unlimited dimension has to be first
    dims = ("time", "realization") if first else ("realization", "time")
    assert found.sst_ensemble.dims == (*dims, "lat", "lon")
    assert ("'realization' after 'time', which is unlimited" in told.stderr) is first
    np.testing.assert_allclose(
        found.sst_ensemble.transpose("realization", ...), expected(), rtol=1e-6
    )
    with netCDF4.Dataset(out) as copy, netCDF4.Dataset(path) as before:
        assert copy.data_model == before.data_model
        assert copy.dimensions["time"].isunlimited() == grows
    assert found.sst_ensemble.attrs["units"] == "degree_Celsius"
    assert found.sst_ensemble.dtype == np.float32


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_members_are_added_to_a_store(version: int, together: bool, tmp_path: Path) -> None:
    store, out = tmp_path / "a.zarr", tmp_path / "b.zarr"
    dataset().to_zarr(store, zarr_format=version, consolidated=together)
    dkrls("fill", store, "-o", out, "--std", "--ensemble", 2, *GIVEN)
    found = xr.open_zarr(out, consolidated=together).load()
    assert_members(found)
    assert found.sst_ensemble.dims == ("realization", "time", "lat", "lon")
    group = zarr.open_group(out, mode="r")
    assert group.metadata.zarr_format == version
    assert (group.metadata.consolidated_metadata is not None) is together
    assert "_ARRAY_DIMENSIONS" not in found.sst_ensemble.attrs
    assert (found.sst_std.values[FILLED] > 0).all()


def test_packed_data_has_members_that_are_not_packed(tmp_path: Path) -> None:
    packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 10.0, "_FillValue": -32768}
    path, out = write(tmp_path / "a.nc", zlib=True, **packed), tmp_path / "b.nc"
    dkrls("fill", path, "-o", out, "--ensemble", 2, *GIVEN)
    found = opened(out)
    drawn = found.sst_ensemble
    assert drawn.dtype == np.float32
    np.testing.assert_allclose(drawn.values[:, ~MISSING], [found.sst.values[~MISSING]] * 2)
    assert (drawn.values[0] != drawn.values[1])[FILLED].all()


def test_a_format_that_cannot_hold_the_members_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.nc", form="NETCDF3_CLASSIC", grows=False)
    monkeypatch.setitem(members._LARGEST, "NETCDF3_CLASSIC", 2 * 4 * MISSING.size)
    dkrls("fill", path, "-o", tmp_path / "b.nc", "--ensemble", 2, *GIVEN)
    said = refusal("fill", path, "-o", tmp_path / "c.nc", "--ensemble", 3, *GIVEN)
    assert "'sst_ensemble' has" in said
    assert "NETCDF3_CLASSIC" in said
    assert not (tmp_path / "c.nc").exists()
    grown = write(tmp_path / "g.nc", form="NETCDF3_CLASSIC")  # here a record counts
    dkrls("fill", grown, "-o", tmp_path / "h.nc", "--ensemble", 3, *GIVEN)


def test_a_file_appears_only_when_all_members_are_there(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> Iterator[np.ndarray]:
        yield np.zeros(MISSING.shape)
        raise MemoryError("of the second member")

    monkeypatch.setattr(filling, "draw_members", fail)
    said = refusal("fill", source, "-o", tmp_path / "b.nc", "--ensemble", 2, *GIVEN)
    assert "Not enough memory" in said
    assert not list(tmp_path.iterdir())


# Other options ------------------------------------------------------------------------------------


def test_errors_limits_and_several_variables_go_together(tmp_path: Path) -> None:
    path, out = write(tmp_path / "a.nc", "sst", "air"), tmp_path / "b.nc"
    with_std = opened_std(path, tmp_path)
    ordered = np.sort(with_std.sst_std.values[FILLED])
    place = np.argmax(np.diff(ordered))
    limit = float(ordered[place : place + 2].mean())
    told = dkrls(
        *("fill", path, "--var", "all", "-o", out, "--std", "--max-std", limit),
        *("--ensemble", 2, "--seed", 4, *GIVEN, "--json"),
    )
    facts = json.loads(told.stdout)
    assert (facts["members"], facts["seed"]) == (2, 4)
    found = opened(out)
    cells = FILLED & (with_std.sst_std.values <= limit)
    assert 0 < cells.sum() < FILLED.sum()
    for name in ("sst", "air"):
        assert_members(found, name, cells)
        assert np.array_equal(np.isnan(found[f"{name}_std"].values), MISSING & ~cells)
    reason = f"left with a standard error above {limit:g}"
    assert facts["variables"][0]["left"][reason] == (FILLED & ~cells).sum()
    error = found.sst_ensemble - found.sst
    assert not np.allclose(error, found.air_ensemble - found.air)  # they err independently


def opened_std(path: Path, tmp_path: Path) -> xr.Dataset:
    dkrls("fill", path, "--var", "sst", "-o", tmp_path / "std.nc", "--std", *GIVEN)
    return opened(tmp_path / "std.nc")


def test_the_filled_data_is_that_without_members(source: Path, tmp_path: Path) -> None:
    dkrls("fill", source, "-o", tmp_path / "a.nc", *GIVEN)
    told = dkrls("fill", source, "-o", tmp_path / "b.nc", "--ensemble", 2, *GIVEN)
    rest = opened(tmp_path / "b.nc").drop_vars(["sst_ensemble", "realization"])
    xr.testing.assert_identical(rest.drop_attrs(), opened(tmp_path / "a.nc").drop_attrs())
    assert "ensemble        2 members" in told.stdout


def test_a_seed_draws_other_members(source: Path, tmp_path: Path) -> None:
    drawn = {}
    for seed in (0, 1):
        out = tmp_path / f"{seed}.nc"
        dkrls("fill", source, "-o", out, "--ensemble", 2, "--seed", seed, *GIVEN)
        drawn[seed] = opened(out).sst_ensemble
        np.testing.assert_allclose(drawn[seed], expected(2, seed), rtol=1e-6)
    assert (drawn[0].values != drawn[1].values)[:, FILLED].all()


def test_nothing_to_fill_has_members_without_a_spread(source: Path, tmp_path: Path) -> None:
    dkrls("fill", source, "-o", tmp_path / "b.nc", "--ensemble", 2, "--max-gap", "time=0.1")
    found = opened(tmp_path / "b.nc")
    for member in found.sst_ensemble:
        np.testing.assert_array_equal(member, found.sst)


# Other formats ------------------------------------------------------------------------------------


def test_another_format_gets_the_members(source: Path, tmp_path: Path) -> None:
    dkrls("fill", source, "-o", tmp_path / "a.zarr", "--ensemble", 3, "--std", *GIVEN)
    found = opened(tmp_path / "a.zarr")
    assert_members(found)
    np.testing.assert_allclose(found.sst_ensemble, expected(), rtol=1e-6)


def test_rows_of_text_have_the_number_of_the_member(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dkrls_cli.cli.output.ensembles.BLOCK_CELLS", 50)
    for name in ("a.csv", "a.jsonl"):
        dkrls("fill", source, "-o", tmp_path / name, "--ensemble", 2, "--std", *GIVEN)
    rows = csv_rows((tmp_path / "a.csv").read_text())
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert list(rows[0]) == ["realization", "time", "lat", "lon", "sst", "sst_std"]
    assert [row["realization"] for row in rows] == ["0"] * MISSING.size + ["1"] * MISSING.size
    assert [line["realization"] for line in lines] == [int(row["realization"]) for row in rows]
    values = np.array([float(row["sst"] or "nan") for row in rows]).reshape(2, *MISSING.shape)
    np.testing.assert_allclose(values, expected(2), rtol=1e-6)
    other = [np.nan if line["sst"] is None else line["sst"] for line in lines]
    np.testing.assert_allclose(np.reshape(other, values.shape), values)


def test_a_table_gets_members_in_other_formats(tmp_path: Path) -> None:
    cells = [(d, x) for d in range(6) for x in range(7) if (d + 2 * x) % 5]
    table = tmp_path / "t.csv"
    table.write_text("day,x,t\n" + "".join(f"{d},{x},{d + 0.5 * x}\n" for d, x in cells))
    how = ("--mask", "none", "--kernel", "matern52", "--sigma", 4, "--ridge", "1e-3")
    how = (*how, "--allow-extrapolation", "--ensemble", 2)
    said = refusal("fill", table, "-o", tmp_path / "o.csv", *how, code=2)
    assert "a copy of a table, which has no room for members. Write to a file" in said
    dkrls("fill", table, "-o", tmp_path / "o.nc", *how)
    assert opened(tmp_path / "o.nc").t_ensemble.dims == ("realization", "day", "x")
    dkrls("fill", table, "-o", tmp_path / "o.jsonl", *how)
    assert len((tmp_path / "o.jsonl").read_text().splitlines()) == 2 * 42


# What is refused, before any fit ------------------------------------------------------------------


@pytest.fixture
def no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "fill_source", None)


@pytest.mark.usefixtures("no_fit")
def test_a_seed_needs_an_ensemble(source: Path, tmp_path: Path) -> None:
    said = refusal("fill", source, "-o", tmp_path / "b.nc", "--seed", 3, code=2)
    assert "--seed 3 is for the members of --ensemble N" in said
    dkrls("fill", source, "-o", tmp_path / "b.nc", "--ensemble", 0, code=2)


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("kind", ["nc", "2", "3"])
@pytest.mark.parametrize(
    ("other", "words", "message"),
    [
        ({"sst_ensemble": ("lat", LAT)}, ("--ensemble", 2), "'sst_ensemble' already"),
        ({"realization": ((), 3)}, ("--ensemble", 2), "variable 'realization' already"),
        ({"other": (("realization",), DAYS)}, ("--ensemble", 2), "dimension or variable"),
        ({"sst_std": ("lat", LAT)}, ("--std",), "'sst_std' already"),
    ],
)
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_names_that_the_file_has_are_refused(
    kind: str, other: dict[str, Any], words: tuple[Any, ...], message: str, tmp_path: Path
) -> None:
    found = dataset().assign(other)
    path = tmp_path / ("a.nc" if kind == "nc" else "a.zarr")
    if kind == "nc":
        found.to_netcdf(path)
    else:
        found.to_zarr(path, zarr_format=int(kind))
    said = refusal("fill", path, "--var", "sst", "-o", path.with_stem("b"), *words)
    assert message in said


@pytest.mark.usefixtures("no_fit")
def test_names_of_other_variables_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.nc", "sst", "sst_ensemble")
    how = ("--var", "all", "--ensemble", 2)
    said = refusal("fill", path, "-o", tmp_path / "b.zarr", *how, code=2)
    assert "'sst_ensemble' is a variable of its own and the name of the ensemble of 'sst'" in said


@pytest.mark.usefixtures("no_fit")
def test_a_dimension_of_the_same_name_is_refused(tmp_path: Path) -> None:
    dataset().rename(time="realization").drop_vars("realization").to_netcdf(tmp_path / "a.nc")
    said = refusal("fill", tmp_path / "a.nc", "-o", tmp_path / "b.zarr", "--ensemble", 2, code=2)
    assert "'sst' has a dimension 'realization' of its own" in said
