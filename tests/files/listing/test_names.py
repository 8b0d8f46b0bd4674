"""Names in files: of all kinds, without xarray, and without waiting."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import DkrlsError, fit
from dkrls_cli.files.listing.names import Names, names_in

EXPECTED = Names(("sst", "ice"), ("time", "lat", "lon"))


def dataset() -> xr.Dataset:
    shape = {"time": 3, "lat": 4, "lon": 5}
    coords = {dim: np.arange(float(size)) for dim, size in shape.items()}
    edges = np.zeros((4, 2))
    data = xr.Dataset(
        {
            "sst": (tuple(shape), np.ones(tuple(shape.values())), {"grid_mapping": "crs"}),
            "ice": (("lat", "lon"), np.ones((4, 5))),
            "crs": ((), 0),
            "lat_bnds": (("lat", "nv"), edges),
        },
        coords=coords,
    )
    data.lat.attrs["bounds"] = "lat_bnds"
    return data


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_names_in_netcdf(tmp_path: Path, kind: str) -> None:
    dataset().to_netcdf(tmp_path / "a.nc", format=kind)
    assert names_in(str(tmp_path / "a.nc")) == EXPECTED


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
def test_names_in_zarr(tmp_path: Path, version: int, consolidated: bool) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # consolidated metadata is no part of version 3 yet
        dataset().to_zarr(tmp_path / "a.zarr", zarr_format=version, consolidated=consolidated)
    found = names_in(str(tmp_path / "a.zarr"))
    assert set(found.variables) == {"sst", "ice"}
    assert set(found.dimensions) == {"time", "lat", "lon"}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("time,sensor,value\n1,2,3\n", ("time", "sensor", "value")),
        ('# note\n\n"time";"a b";3\n', ("time", "a b")),
        ("\ufefftime\tv\n", ("time", "v")),
        ("", ()),
    ],
)
def test_columns_of_tables(tmp_path: Path, text: str, columns: tuple[str, ...]) -> None:
    (path := tmp_path / "a.csv").write_text(text)
    assert names_in(str(path)) == Names(columns, columns)


def test_a_wide_table_lists_some_of_its_columns(tmp_path: Path) -> None:
    (path := tmp_path / "a.csv").write_text(",".join(f"c{i}" for i in range(10**4)))
    assert len(names_in(str(path)).variables) == 200


def test_levels_of_a_model(tmp_path: Path) -> None:
    from dkrls_cli.model.saving import save_models

    x, t = np.arange(4.0), np.arange(5.0)
    one = fit(np.outer(x, t), {"x": x, "t": t}, ["t", "x"], sigma=1.0, ridge=0.1)
    one.save(tmp_path / "m.npz")
    assert names_in(str(tmp_path / "m.npz")) == Names((one.name,), ("t", "x"))
    other = fit(xr.DataArray(x, {"y": x}, ["y"], "b"), sigma=1.0, ridge=0.1)
    save_models([one, other], tmp_path / "both.npz")
    assert names_in(str(tmp_path / "both.npz")) == Names((one.name, "b"), ("t", "x", "y"))


def test_pipes_and_binary_files_have_no_names(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.nc")
    assert names_in(str(tmp_path / "pipe.nc")) == Names()  # opening it would wait for ever
    assert names_in("/dev/zero") == Names()
    (tmp_path / "b.csv").write_bytes(b"a\x00b")
    assert names_in(str(tmp_path / "b.csv")) == Names()
    assert names_in(str(tmp_path)) == Names()


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    dataset().to_netcdf(tmp_path / "a.nc", format="NETCDF3_CLASSIC")
    whole = (tmp_path / "a.nc").read_bytes()
    for name, raw in {
        "a.nc": whole[:100],
        "b.nc": b"\x89HDF\r\n\x1a\n no",
        "m.npz": b"PK no",
    }.items():
        (tmp_path / name).write_bytes(raw)
        with pytest.raises((OSError, ValueError, DkrlsError)):
            names_in(str(tmp_path / name))


def test_names_need_no_xarray(tmp_path: Path) -> None:
    dataset().to_netcdf(tmp_path / "a.nc")
    code = (
        "import sys; from dkrls_cli.files.listing.names import names_in\n"
        f"assert names_in(r'{tmp_path / 'a.nc'}').variables\n"
        "print({'xarray', 'pandas', 'scipy'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
