"""Error bars of every kind: blocks, points, members and forms of output."""

import csv
import json

import numpy as np
import pytest
import xarray as xr
from refitted_bars import NEW, SPLINES, VALUES, D, X, fitted
from shell import ROOT, dkrls

from dkrls_cli.cascade.errorbars.bars import unexplained, variance_on_grid
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.errorbars.levels import FilledBars
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level

AT = ("--at", "lat=10,12.5", "--at", "lon=200,203", "--at", "time=2020-03-03")
BARS = ["sst", "sst_std"]


@pytest.fixture(scope="module", params=["level", "joint"])
def saved(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "ocean.npz"
    dkrls("fit", ROOT / "sample_data" / "ocean.nc", "--noise", request.param, "-o", path)
    return path


@pytest.mark.parametrize("joint", [False, True])
def test_parts_of_a_grid_have_the_variance_of_the_whole(joint):
    model = fitted(joint)
    known = calibrate(model)
    whole = variance_on_grid(known, model, NEW)
    parts = known.variance_blocks(model, NEW)
    np.testing.assert_allclose(parts((slice(1, 3), slice(0, 2))), whole[1:3, :2], rtol=1e-12)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("smooth", [False, True])
def test_points_have_the_variance_of_their_cells(joint, smooth):
    model = fitted(joint)
    known = calibrate(model)
    cells = [axis.ravel() for axis in np.meshgrid(*NEW, indexing="ij")]
    on_grid = variance_on_grid(known, model, NEW, smooth=smooth).ravel()
    np.testing.assert_allclose(known.variance_at_points(model, cells, smooth=smooth), on_grid)


@pytest.mark.parametrize("joint", [False, True])
def test_training_cells_are_certain_and_nothing_is_negative(joint):
    model = fitted(joint)
    known = calibrate(model)
    assert not variance_on_grid(known, model, [X, D]).any()
    anywhere = [np.linspace(-20, 30, 101), np.linspace(-9, 20, 57)]
    assert (variance_on_grid(known, model, anywhere) >= 0).all()
    assert np.isfinite(variance_on_grid(known, model, anywhere)).all()


def test_the_data_never_leaves_less_than_the_noise():
    found = unexplained(1.0, np.array([0.3, 1.0, 1.0 + 1e-9]), 0.01)
    assert found.tolist() == pytest.approx([0.71, 0.01, 0.01])


def test_bars_know_which_cells_were_missing():
    filled = np.eye(11, 8, dtype=bool)
    level, joint = calibrate(fitted(joint=False)), calibrate(fitted(joint=True))
    assert level.unobserved is None
    assert joint.unobserved is None
    bars = level.with_unobserved(filled, 1)
    assert isinstance(bars, FilledBars)
    assert (bars.unobserved is filled, bars.axis) == (True, 1)
    again = bars.with_unobserved(~filled, 0)
    assert (again.level_bars is level, again.axis) == (True, 0)
    assert np.array_equal(again.unobserved, ~filled)
    assert isinstance(joint, JointBars)
    assert joint.with_unobserved(filled, 1) is joint
    assert joint.power == 1.0


@pytest.mark.slow
def test_error_bars_are_the_same_in_every_form_of_output(saved, tmp_path):
    folder = tmp_path
    for name in ("a.nc", "a.zarr", "a.csv", "a.jsonl"):
        dkrls("predict", saved, *AT, "--std", "-o", folder / name)
    grids = [xr.open_dataset(folder / "a.nc"), xr.open_zarr(folder / "a.zarr").load()]
    rows = list(csv.DictReader((folder / "a.csv").read_text().splitlines()))
    lines = [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()]
    points = "time,lat,lon\n" + "".join(f"{r['time']},{r['lat']},{r['lon']}\n" for r in rows)
    scattered = dkrls("predict", saved, "--points", "-", "--std", stdin=points).stdout
    for name in BARS:
        found = [grid[name].values.ravel() for grid in grids]
        found += [np.array([float(row[name]) for row in table]) for table in (rows, lines)]
        found.append(np.array([float(r[name]) for r in csv.DictReader(scattered.splitlines())]))
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=1e-4, atol=1e-6)
    assert grids[0].sst.attrs["ancillary_variables"] == "sst_std"
    assert grids[0].sst_std.attrs["standard_name"] == "sea_surface_temperature standard_error"
    grids[0].close()
    std = found[0].reshape(2, 2)
    assert std[0, 0] == 0  # a training cell
    assert (std.ravel()[1:] > 0).all()


def test_draws_of_splines_are_as_wide_as_their_error_bars():
    model = fit_cascade(VALUES, [X, D], [Level("x", SPLINES[0]), Level("d", Kernel(), 0.1)])
    bars, new = calibrate(model), [np.linspace(1, 8, 5), np.array([0.3, 2.2])]
    draw = bars.deviations(model, new, seed=1)
    width = np.std([draw(member) for member in range(1500)], axis=0)
    np.testing.assert_allclose(width, np.sqrt(variance_on_grid(bars, model, new)), rtol=0.12)
