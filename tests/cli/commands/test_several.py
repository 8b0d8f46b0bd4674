"""Several variables in one run: each as it is alone, in one model file and one output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sample_files import EAST, LAT, LON, NORTH
from shell import csv_rows, dkrls, refusal

from dkrls_cli import load_models
from dkrls_cli.cascade import spectrum

TIME = np.arange(8.0)
SINCE = {"units": "days since 2020-01-01", "calendar": "standard"}
GIVEN = ("--kernel", "matern52", "--sigma", "time=3,lat=40,lon=60", "--ridge", "1e-4")


def fields(gaps: bool = False) -> xr.Dataset:
    """Two fields of time, one map, and what describes them."""
    t = np.add.outer(np.sin(TIME / 3), np.add.outer(np.cos(LAT / 40), np.sin(np.deg2rad(LON))))
    u = t**2 - 1
    if gaps:
        t[2:4, 1, 3] = u[5, 3, 2] = np.nan
    coords: dict[str, Any] = {
        "time": ("time", TIME, SINCE),
        "lat": ("lat", LAT, NORTH),
        "lon": ("lon", LON, EAST),
    }
    dims = ("time", "lat", "lon")
    height = np.add.outer(LAT**2, LON)
    return xr.Dataset(
        {
            "t": (dims, t, {"units": "K"}),
            "u": (dims, u, {"units": "m s-1"}),
            "height": (("lat", "lon"), height, {"units": "m"}),
            "time_bnds": (("time", "bnds"), np.stack([TIME, TIME + 1], 1)),
        },
        coords,
    )


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("several") / "all.nc"
    fields().to_netcdf(path)
    return path


@pytest.fixture(scope="module")
def model(several: Path) -> Path:
    path = several.with_suffix(".npz")
    dkrls("fit", several, "--var", "t", "--var", "u", "-o", path, *GIVEN)
    return path


def test_one_file_has_the_models_that_each_variable_has_alone(several: Path, model: Path) -> None:
    models = load_models(model)
    assert list(models) == ["t", "u"]
    for name in models:
        alone = several.with_name(f"{name}.npz")
        dkrls("fit", several, "--var", name, "-o", alone, *GIVEN)
        words = ("--at", "lat=1.5", "--at", "lon=7", "--std")
        one = csv_rows(dkrls("predict", alone, *words).stdout)
        both = csv_rows(dkrls("predict", model, *words).stdout)
        chosen = csv_rows(dkrls("predict", model, "--var", name, *words).stdout)
        assert chosen == one
        assert [row[name] for row in both] == [row[name] for row in one]
        assert [row[f"{name}_std"] for row in both] == [row[f"{name}_std"] for row in one]
        assert model.stat().st_size < 2 * alone.stat().st_size


def test_all_takes_every_variable_on_a_grid(several: Path, tmp_path: Path) -> None:
    how = ("--kernel", "matern52", "--sigma", "40", "--ridge", "1e-4")
    out = dkrls("fit", several, "--var", "all", "-o", tmp_path / "m.npz", *how, "--json").stdout
    told = json.loads(out)
    assert [one["variable"] for one in told["variables"]] == ["t", "u", "height"]
    assert told["model"] == str(tmp_path / "m.npz")
    assert told["file_bytes"] == (tmp_path / "m.npz").stat().st_size
    dkrls("predict", tmp_path / "m.npz", "--at", "time=2020-01-03", "-o", tmp_path / "o.nc")
    with xr.open_dataset(tmp_path / "o.nc") as out_file, xr.open_dataset(several) as whole:
        assert set(out_file.data_vars) == {"t", "u", "height"}
        assert out_file.height.dims == ("lat", "lon")
        np.testing.assert_allclose(out_file.height, whole.height, rtol=1e-9)
        np.testing.assert_allclose(out_file.t[0], whole.t[2], rtol=1e-9)
        assert out_file.u.attrs["units"] == "m s-1"
    line = refusal("predict", tmp_path / "m.npz", code=2)
    assert "'t' and 'height' are on different grids" in line
    assert "no dimension 'depth'" in refusal(
        "predict", tmp_path / "m.npz", "--at", "depth=1", code=2
    )


def test_variables_on_the_same_coordinates_share_their_factors(
    several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    decompose = spectrum.decompose

    def counted(gram: Any) -> Any:
        counts[-1] += 1
        return decompose(gram)

    monkeypatch.setattr("dkrls_cli.tuning.spectra.decompose", counted)
    for words in (["--var", "t"], ["--var", "u"], ["--var", "t", "--var", "u"]):
        counts.append(0)
        dkrls("fit", several, *words, "-o", tmp_path / "m.npz", "--overwrite")
    assert counts[2] < 0.8 * (counts[0] + counts[1])


def test_the_text_names_each_variable_and_the_file_once(several: Path, tmp_path: Path) -> None:
    words = ("fit", several, "--var", "t", "--var", "u", *GIVEN)
    told = dkrls(*words, "-o", tmp_path / "m.npz").stdout
    assert [line.split() for line in told.splitlines() if line.startswith("variable")] == [
        ["variable", "t"],
        ["variable", "u"],
    ]
    assert told.count("m.npz") == 1
    plan = json.loads(dkrls(*words, "--dry-run", "--json").stdout)
    assert [one["variable"] for one in plan["variables"]] == ["t", "u"]


def test_answers_of_several_as_one_object_and_at_points(model: Path, tmp_path: Path) -> None:
    here = ("--at", "lat=1.5", "--at", "lon=7", "--at", "time=2020-01-03")
    told = json.loads(dkrls("predict", model, *here, "--json").stdout)
    assert told["variables"] == ["t", "u"]
    (row,) = csv_rows(dkrls("predict", model, *here).stdout)
    assert told["answers"][0]["u"] == float(row["u"])
    (points := tmp_path / "p.csv").write_text("id,lat,lon\na,1.5,7\n")
    stations = ("predict", model, "--points", points, "--at", "time=2020-01-03")
    (point,) = csv_rows(dkrls(*stations).stdout)
    assert float(point["t"]) == pytest.approx(float(row["t"]), rel=1e-9)
    assert float(point["u"]) == pytest.approx(float(row["u"]), rel=1e-9)
    told = json.loads(dkrls(*stations, "-o", tmp_path / "s.nc", "--std", "--json").stdout)
    assert (told["variables"], told["cells"]) == (["t", "u"], 2)
    with xr.open_dataset(tmp_path / "s.nc") as out:
        assert out.u.attrs["ancillary_variables"] == "u_std"
        assert out.t.attrs["units"] == "K"
        assert float(out.u.squeeze()) == pytest.approx(float(row["u"]), rel=1e-9)


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_fill_does_a_file_of_several_in_one_go(suffix: str, tmp_path: Path) -> None:
    whole, source = fields(gaps=True), tmp_path / f"a.{suffix}"
    whole.to_netcdf(source) if suffix == "nc" else whole.to_zarr(source, zarr_format=2)
    how = ("--kernel", "matern52", "--sigma", "40", "--ridge", "1e-4", "--var", "all", "--std")
    out = dkrls("fill", source, "-o", tmp_path / f"b.{suffix}", *how, "--json").stdout
    told = json.loads(out)
    found = {one["variable"]: one["filled"] for one in told["variables"]}
    assert found == {"t": 2, "u": 1, "height": 0}
    engine = "zarr" if suffix == "zarr" else None
    with xr.open_dataset(tmp_path / f"b.{suffix}", engine=engine, decode_times=False) as filled:
        assert not filled.t.isnull().any()
        assert not filled.u.isnull().any()
        np.testing.assert_array_equal(
            filled.t.values[~whole.t.isnull()], whole.t.values[~whole.t.isnull()]
        )
        assert (filled.u_std.values > 0).sum() == 1
        assert "time_bnds" in filled.variables
        assert filled.attrs["history"].count("dkrls fill") == 1


def test_a_long_table_of_several_columns(tmp_path: Path) -> None:
    rows = [(x, d, x + d, x * d) for x in range(6) for d in range(5)]
    lines = [
        f"{x},{d},{'' if (x, d) == (2, 2) else a},{'' if (x, d) == (3, 1) else b}"
        for x, d, a, b in rows
    ]
    (source := tmp_path / "t.csv").write_text("x,day,a,b\n" + "\n".join(lines) + "\n")
    how = ("--kernel", "gaussian", "--sigma", "4", "--ridge", "1e-6")
    for given in (["--var", "a", "--var", "b"], ["--var", "all", "--levels", "x,day"]):
        out = dkrls("fill", source, "-o", tmp_path / "o.csv", "--overwrite", *given, *how, "--std")
        assert "left out" not in out.stderr
        head, *after = (tmp_path / "o.csv").read_text().splitlines()
        assert head == "x,day,a,b,a_std,b_std"
        filled = csv_rows("\n".join([head, *after]))
        assert float(filled[12]["a"]) == pytest.approx(4.0, abs=0.01)
        assert float(filled[16]["b"]) == pytest.approx(3.0, abs=0.05)
        assert filled[0]["a"] == "0"
    told = dkrls(
        "fit",
        "-",
        "--var",
        "a",
        "--var",
        "b",
        "-o",
        tmp_path / "m.npz",
        *how,
        stdin=source.read_text(),
    )
    assert told.stdout.count("variable") == 2
    dkrls("fill", source, "-o", tmp_path / "o.jsonl", "--var", "a", "--var", "b", *how)
    assert list(json.loads((tmp_path / "o.jsonl").read_text().splitlines()[0])) == [
        "x",
        "day",
        "a",
        "b",
    ]
    line = refusal("fit", source, "--var", "all", "-o", tmp_path / "n.npz")
    assert "Name the dimensions" in line
    assert "Option: --levels" in line
    line = refusal("fit", source, "--var", "a", "--var", "bb", "-o", tmp_path / "n.npz")
    assert "no column 'bb'" in line
    assert "Did you mean 'b'?" in line


def test_validate_measures_each_variable(several: Path, model: Path) -> None:
    told = json.loads(dkrls("validate", several, "--model", model, "--json").stdout)
    assert [one["variable"] for one in told["variables"]] == ["t", "u"]
    assert all(one["metrics"]["max_error"] < 1e-9 for one in told["variables"])
    words = ("validate", several, "--var", "t", "--var", "u", "--holdout", "lat=0.2", *GIVEN)
    words = (*words, "--repeats", "1", "--fail-above", "rmse=1e-9")
    result = dkrls(*words, code=3)
    assert "Missed: rmse of t is" in result.stderr
    assert "Missed: rmse of u is" in result.stderr
    one = json.loads(dkrls("validate", several, "--model", model, "--var", "u", "--json").stdout)
    assert one["variable"] == "u"


def test_update_adds_slices_to_every_variable(several: Path, model: Path, tmp_path: Path) -> None:
    later = fields().isel(time=slice(0, 2)).assign_coords(time=("time", [8.0, 9.0], SINCE))
    later.to_netcdf(tmp_path / "later.nc")
    words = ("update", model, tmp_path / "later.nc", "-o", tmp_path / "m.npz")
    told = json.loads(dkrls(*words, "--json").stdout)
    assert [(one["variable"], one["slices"]) for one in told["variables"]] == [("t", 10), ("u", 10)]
    after = load_models(tmp_path / "m.npz")
    np.testing.assert_allclose(after["u"].predict()[8:], later.u, rtol=1e-9)
    line = refusal(*words, "--var", "t", "--overwrite", code=2)
    assert "--var is for a model of one variable" in line
    later.drop_vars("u").to_netcdf(tmp_path / "t.nc")
    words = ("update", model, tmp_path / "t.nc", "-o", tmp_path / "n.npz", "-q")
    assert "has no variable 'u'" in dkrls(*words, code=1).stderr
    assert not (tmp_path / "n.npz").exists()


def test_info_shows_each_and_a_stream_wants_one(model: Path, tmp_path: Path) -> None:
    told = json.loads(dkrls("info", model, "--json").stdout)
    assert [one["units"] for one in told["variables"]] == ["K", "m s-1"]
    dkrls("info", model, "--weights", tmp_path / "w.nc")
    with xr.open_dataset(tmp_path / "w.nc") as weights:
        assert set(weights.data_vars) == {f"{v}_weights_{i}" for v in "tu" for i in (1, 2, 3)}
    assert "A stream has one: fit it alone" in refusal("stream", model, code=2, stdin="")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--var", "t", "--var", "t"], "name one of them twice"),
        (["--var", "all", "--var", "t"], "name one of them twice"),
        (["--var", "t", "--var", "uu"], "no variable 'uu'"),
    ],
)
def test_variables_that_are_none_or_twice_are_refused(
    several: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    code = 1 if "uu" in words else 2
    assert message in refusal("fit", several, *words, "-o", tmp_path / "m.npz", code=code)
    assert list(tmp_path.iterdir()) == []


def test_variables_of_a_model_that_are_none_or_twice_are_refused(model: Path) -> None:
    line = refusal("predict", model, "--var", "tt", code=2)
    assert "has no variable 'tt'. It has t, u. Did you mean 't'?" in line
    assert "twice" in refusal("predict", model, "--var", "t", "--var", "t", code=2)


def test_a_config_file_names_several(several: Path, tmp_path: Path) -> None:
    (config := tmp_path / "c.toml").write_text('var = ["t", "u"]\n')
    dkrls("fit", several, "--config", config, "-o", tmp_path / "m.npz", *GIVEN)
    assert list(load_models(tmp_path / "m.npz")) == ["t", "u"]


def test_a_name_that_standard_errors_would_take_is_refused(tmp_path: Path) -> None:
    both = fields()[["t"]].assign(t_std=fields().t * 0 + 0.5)
    both.to_netcdf(tmp_path / "a.nc")
    names = ("--var", "t", "--var", "t_std")
    dkrls("fit", tmp_path / "a.nc", *names, "-o", tmp_path / "m.npz", *GIVEN)
    (tmp_path / "p.csv").write_text("lat,lon,time\n1,2,2020-01-03\n")
    for words in (
        ("predict", tmp_path / "m.npz", "--std"),
        ("predict", tmp_path / "m.npz", "--std", "--points", tmp_path / "p.csv"),
        ("fill", tmp_path / "a.nc", *names, "--std", "-o", tmp_path / "o.nc", *GIVEN),
    ):
        assert "'t_std' is a variable of its own" in refusal(*words, code=2)
    alone = csv_rows(
        dkrls("predict", tmp_path / "m.npz", "--var", "t", "--std", "--at", "lat=3").stdout
    )
    assert {float(row["t_std"]) for row in alone} != {0.5}


def test_a_target_is_for_the_variables_that_have_its_dimensions(
    several: Path, tmp_path: Path
) -> None:
    series = fields().assign(index=("time", np.sin(TIME)))
    series.to_netcdf(tmp_path / "a.nc")
    names = ("--var", "t", "--var", "index", "--var", "height")
    how = ("--kernel", "matern52", "--sigma", "30", "--ridge", "1e-4")
    text = (
        "gridtype = lonlat\nxsize = 4\nysize = 2\nxfirst = 0\nxinc = 90\nyfirst = -20\nyinc = 40\n"
    )
    for like, stdin in (("r4x2", None), ("-", text)):
        words = ("regrid", tmp_path / "a.nc", *names, "--like", like, *how, "--overwrite")
        dkrls(*words, "-o", tmp_path / "o.nc", "--at", "time=2020-01-03", stdin=stdin)
        with xr.open_dataset(tmp_path / "o.nc") as out:
            assert dict(out.sizes) == {"time": 1, "lat": 2, "lon": 4}
            assert (out.index.dims, out.height.dims) == (("time",), ("lat", "lon"))
