"""``--obs-error`` in all commands, and what is said of errors in files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sample_files import EAST, NORTH
from shell import dkrls, refusal

from dkrls_cli import fit, load_model, load_models

LAT, LON, DAYS = np.linspace(-20, 20, 9), np.linspace(100, 130, 10), np.arange(8)
RNG = np.random.default_rng(2)
ERRORS = np.where(RNG.random((8, 9, 10)) < 0.5, 0.1, 2.0)
TRUTH = 15 + 4 * np.sin(np.add.outer(DAYS / 4, np.add.outer(LAT / 10, LON / 9)))
VALUES = np.where(
    RNG.random(TRUTH.shape) < 0.1, np.nan, TRUTH + ERRORS * RNG.standard_normal(TRUTH.shape)
)
GIVEN = ("--kernel", "matern52", "--sigma", "lat=15,lon=15,time=5", "--ridge", "1e-3")
SAME = {"kernel": "matern52", "sigma": {"lat": 15, "lon": 15, "time": 5}, "ridge": 1e-3}


def dataset(values: np.ndarray = VALUES, days: slice = slice(None)) -> xr.Dataset:
    dims = ("time", "lat", "lon")
    units = {"units": "degree_Celsius"}
    name = {"standard_name": "sea_surface_temperature"}
    error = {"standard_name": "sea_surface_temperature standard_error"}
    return xr.Dataset(
        {
            "sst": (dims, values[days], units | name | {"ancillary_variables": "sst_error"}),
            "sst_error": (dims, ERRORS[days], units | error),
        },
        {
            "time": ("time", DAYS[days], {"units": "days since 2001-01-01"}),
            "lat": ("lat", LAT, NORTH),
            "lon": ("lon", LON, EAST),
        },
    )


@pytest.fixture
def gappy(tmp_path: Path) -> Path:
    dataset().to_netcdf(tmp_path / "sst.nc")
    return tmp_path / "sst.nc"


def labelled(data: xr.Dataset) -> xr.DataArray:
    return xr.decode_cf(data).sst.drop_attrs(deep=False)


def test_fit_uses_another_variable_and_says_how_large_errors_are(gappy: Path) -> None:
    out = gappy.with_name("m.npz")
    said = dkrls("fit", gappy, "-o", out, *GIVEN, "--obs-error", "sst_error")
    assert "observation errors  0.1 to 2 degree_Celsius (median " in said.stdout
    assert "from sst_error" in said.stdout
    assert "Note" not in said.stderr
    model, data = load_model(out), dataset()
    ours = fit(labelled(data), obs_error=data.sst_error.values, **SAME)
    np.testing.assert_allclose(model.predict(), ours.predict(), rtol=1e-9)
    told = dkrls("info", out)
    assert "observation errors  0.1 to 2 degree_Celsius" in told.stdout
    found = json.loads(dkrls("info", out, "--json").stdout)
    assert found["origin"]["observation_errors"]["most"] == 2.0


def test_errors_in_the_file_are_mentioned_and_not_used(gappy: Path) -> None:
    out = gappy.with_name("m.npz")
    said = dkrls("fit", gappy, "-o", out, *GIVEN)
    assert "'sst_error' has standard errors of 'sst', which are not used." in said.stderr
    assert "--obs-error sst_error uses them." in said.stderr
    assert load_model(out).observations is None


@pytest.mark.parametrize("text", ["0.5", "FILE"])
def test_numbers_and_files(gappy: Path, text: str) -> None:
    out, errors = gappy.with_name("m.npz"), gappy.with_name("e.csv")
    errors.write_text("lat,e\n" + "".join(f"{lat},{0.5 + i}\n" for i, lat in enumerate(LAT)))
    given = str(errors) if text == "FILE" else text
    dkrls("fit", gappy, "-o", out, *GIVEN, "--obs-error", given)
    found = load_model(out).observations
    assert found is not None
    assert found.errors[:, 0][found.observed[:, 0]][0] == 0.5
    assert (found.errors.max() == 0.5) == (text == "0.5")


def test_a_config_file_gives_errors(gappy: Path) -> None:
    out, config = gappy.with_name("m.npz"), gappy.with_name("run.toml")
    config.write_text('obs-error = "sst_error"\nridge = 1e-3\n')
    dkrls("fit", gappy, "-o", out, "--config", config, *GIVEN[:4])
    assert load_model(out).origin["observation_errors"]["source"] == "sst_error"
    config.write_text("[obs-error]\nsst = 0.25\n")
    dkrls("fit", gappy, "-o", out, "--overwrite", "--config", config, *GIVEN)
    assert load_model(out).origin["observation_errors"]["most"] == 0.25


def test_several_variables_have_their_own(gappy: Path) -> None:
    out, two = gappy.with_name("m.npz"), gappy.with_name("two.nc")
    data = dataset()
    data.assign(tos=data.sst + 1).to_netcdf(two)
    given = ("--obs-error", "sst=sst_error", "--obs-error", "tos=0.3")
    dkrls("fit", two, "-o", out, *GIVEN, "--var", "all", *given)
    models = load_models(out)
    assert list(models) == ["sst", "tos"]
    assert [one.observations.errors.max() for one in models.values()] == [2.0, 0.3]


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("--obs-error", "nosuch"), 1, "'nosuch' are no number, no variable"),
        (("--obs-error", "-1"), 1, "is -1 at time=2001-01-01"),
        (("--obs-error", "sst_error", "--noise", "level"), 2, "need one joint ridge"),
        (("--obs-error", "sst_error", "--folds", "3"), 2, "Folds do not go with"),
        (("--obs-error", "tos=1"), 2, "a variable 'tos', which is not modelled"),
        (("--obs-error", "1", "--obs-error", "2"), 2, "both for all variables"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_cannot_be_is_refused_in_one_line(
    gappy: Path, given: tuple[str, ...], code: int, said: str, dry: tuple[str, ...]
) -> None:
    if dry and "-1" in given:
        return  # values are not read
    words = ("fit", gappy, "-o", gappy.with_name("m.npz"), *given, *dry)
    assert said in refusal(*words, code=code)


def test_a_dry_run_knows_of_the_joint_ridge(gappy: Path) -> None:
    said = dkrls("fit", gappy, "--dry-run", "--obs-error", "sst_error")
    assert "joint ridge  auto" in said.stdout


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, Path]:
    dataset(days=slice(0, 6)).to_netcdf(tmp_path / "a.nc")
    dataset(days=slice(6, 8)).to_netcdf(tmp_path / "b.nc")
    return tmp_path / "a.nc", tmp_path / "b.nc"


def test_an_update_takes_the_errors_of_the_same_variable(parts: tuple[Path, Path]) -> None:
    old, new = parts
    out = old.with_name("m.npz")
    dkrls("fit", old, "-o", out, *GIVEN, "--obs-error", "sst_error")
    said = dkrls("update", out, new)
    assert "observation errors" in said.stdout
    found = load_model(out).observations
    np.testing.assert_array_equal(found.errors, np.where(np.isnan(VALUES), 0, ERRORS))
    other = old.with_name("n.npz")
    dkrls("fit", old, "-o", other, *GIVEN, "--obs-error", "sst_error")
    dkrls("update", other, new, "--obs-error", "0.25")
    assert set(load_model(other).observations.errors[6:][~np.isnan(VALUES[6:])]) == {0.25}


def test_an_update_without_errors_is_refused(parts: tuple[Path, Path]) -> None:
    old, new = parts
    out, errors = old.with_name("m.npz"), old.with_name("e.nc")
    dataset(days=slice(0, 6))[["sst_error"]].to_netcdf(errors)
    dkrls("fit", old, "-o", out, *GIVEN, "--obs-error", errors)
    said = refusal("update", out, new)
    assert "the new slices have none" in said
    assert said.endswith("Option: --obs-error.")
    dkrls("update", out, new, "--obs-error", "sst_error")
    plain = old.with_name("n.npz")
    dkrls("fit", old, "-o", plain, *GIVEN)
    said = refusal("update", plain, new, "--obs-error", "sst_error")
    assert "the model was fitted without" in said
    lacking = new.with_name("c.nc")
    dataset(days=slice(6, 8))[["sst"]].to_netcdf(lacking)
    dkrls("fit", old, "-o", out, "--overwrite", *GIVEN, "--obs-error", "sst_error")
    assert "no variable" in refusal("update", out, lacking)


def test_a_stream_without_errors_is_refused(gappy: Path) -> None:
    out = gappy.with_name("m.npz")
    dkrls("fit", gappy, "-o", out, *GIVEN, "--obs-error", "sst_error")
    assert "not one number" in refusal("stream", out, stdin="time,lat,lon,sst\n", code=2)


@pytest.mark.slow
def test_fill_keeps_observed_cells_and_tells_their_errors(gappy: Path) -> None:
    out = gappy.with_name("filled.nc")
    given = ("--mask", "none", "--obs-error", "sst_error", "--std")
    said = dkrls("fill", gappy, "-o", out, *GIVEN, *given)
    assert "observation errors" in said.stdout
    with xr.open_dataset(out) as done:
        seen = ~np.isnan(VALUES)
        np.testing.assert_array_equal(done.sst.values[seen], VALUES[seen])
        np.testing.assert_allclose(done.sst_std.values[seen], ERRORS[seen], rtol=1e-6)
        np.testing.assert_array_equal(done.sst_error, ERRORS)
        off = (done.sst.values - TRUTH)[~seen]
        assert np.sqrt(np.mean(off**2)) < 0.3
        assert (done.sst_std.values[~seen] > 0).all()


@pytest.mark.slow
def test_regrid_and_validate_take_errors(gappy: Path) -> None:
    out, truth = gappy.with_name("fine.nc"), gappy.with_name("truth.nc")
    dkrls("regrid", gappy, "-o", out, *GIVEN, "--at", "lat=-10:10:5", "--obs-error", "sst_error")
    assert xr.open_dataset(out).sst.shape == (8, 5, 10)
    model = gappy.with_name("m.npz")
    dkrls("fit", gappy, "-o", model, *GIVEN, "--obs-error", "sst_error")
    dataset(TRUTH)[["sst"]].to_netcdf(truth)
    exact = json.loads(dkrls("validate", truth, "--model", model, "--json").stdout)["metrics"]
    given = ("--obs-error", "sst_error", "--json")
    noisy = json.loads(dkrls("validate", gappy, "--model", model, *given).stdout)["metrics"]
    assert exact["rmse"] < 0.4 < noisy["rmse"]
    assert 0.8 < noisy["coverage90"] < 0.97
    held = ("--holdout", "time=0.25", "--repeats", "1", *GIVEN)
    found = json.loads(dkrls("validate", gappy, *held, *given).stdout)["metrics"]
    assert 0.75 < found["coverage90"] <= 1.0


def test_columns_of_a_table_from_a_pipe(tmp_path: Path) -> None:
    rows = [
        f"{lat},{lon},{VALUES[0, i, j]},{ERRORS[0, i, j]}"
        for i, lat in enumerate(LAT)
        for j, lon in enumerate(LON)
        if not np.isnan(VALUES[0, i, j])
    ]
    out = tmp_path / "m.npz"
    words = ("fit", "-", "-o", out, "--var", "sst", "--obs-error", "error", "--sigma", "15")
    dkrls(
        *words,
        "--kernel",
        "matern52",
        "--ridge",
        "1e-3",
        stdin="\n".join(["lat,lon,sst,error", *rows]),
    )
    found = load_model(out).observations
    np.testing.assert_array_equal(found.errors, np.where(np.isnan(VALUES[0]), 0, ERRORS[0]))
