"""Error bars against dense algebra, and against data drawn from the model."""

import csv
import json

import numpy as np
import pytest
import xarray as xr
from shell import ROOT, dkrls

from dkrls_cli import fit as fit_model
from dkrls_cli.cascade.errorbars import Z90, calibrate, variance_on_grid
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.model.metrics import coverage90

RNG = np.random.default_rng(3)
X, D = np.sort(RNG.uniform(0, 9, 11)), np.linspace(0, 5, 8)
KERNELS = Kernel("matern32", 1.7), Kernel("gaussian", 0.9)
VALUES = RNG.standard_normal((11, 8))
NEW = [np.array([0.7, X[3], 4.4]), np.array([0.1, 2.05, D[2], 4.9])]


def fitted(joint):
    ridges = (0.0, 0.0) if joint else (1e-3, 1e-2)
    levels = [Level(n, k, r) for n, k, r in zip("xd", KERNELS, ridges, strict=True)]
    return fit_cascade(VALUES, [X, D], levels, joint_ridge=1e-2 if joint else None)


def covariance_left(kernel, ridge, query, nodes):
    system = gram(kernel, nodes, nodes) + ridge * np.eye(nodes.size)
    cross = gram(kernel, query, nodes)
    return 1 + ridge - np.einsum("ij,ij->i", cross, np.linalg.solve(system, cross.T).T)


def left_out(model, axis):
    """Rows that predict every slice from all others, and their variances, by refits."""
    kernel, ridge, nodes = KERNELS[axis], model.levels[axis].ridge, (X, D)[axis]
    rows, variances = np.zeros((nodes.size, nodes.size)), np.empty(nodes.size)
    for j in range(nodes.size):
        rest = np.delete(np.arange(nodes.size), j)
        system = gram(kernel, nodes[rest], nodes[rest]) + ridge * np.eye(rest.size)
        rows[j, rest] = np.linalg.solve(system, gram(kernel, nodes[rest], nodes[[j]])[:, 0])
        variances[j] = covariance_left(kernel, ridge, nodes[[j]], nodes[rest])[0]
    return rows[1:-1], variances[1:-1]


def test_calibration_is_that_of_refits_without_slices():
    model = fitted(joint=False)
    (h_x, v_x), (h_d, v_d) = left_out(model, 0), left_out(model, 1)
    inner = VALUES[1:-1, 1:-1]
    missed = {
        (1, 0): (h_x @ VALUES)[:, 1:-1] - inner,
        (0, 1): (VALUES @ h_d.T)[1:-1] - inner,
        (1, 1): h_x @ VALUES @ h_d.T - inner,
    }
    known = calibrate(model)
    scale = np.mean(missed[1, 0] ** 2 / v_x[:, None]), np.mean(missed[0, 1] ** 2 / v_d)
    np.testing.assert_allclose(known.scales, scale, rtol=1e-9)
    alone = [np.sqrt(np.mean(missed[p] ** 2)) for p in ((1, 0), (0, 1))]
    np.testing.assert_allclose(known.errors, alone, rtol=1e-9)
    for pattern, errors in missed.items():
        parts = scale[0] * pattern[0] * v_x, scale[1] * pattern[1] * v_d
        ratios = np.abs(errors) / np.sqrt(np.add.outer(*parts))
        expected = (np.quantile(ratios, 0.9) / Z90) ** 2
        assert known.factors[pattern] == pytest.approx(expected, rel=1e-8)


def test_levels_add_what_their_covariance_leaves_open():
    model = fitted(joint=False)
    known = calibrate(model)
    parts = []
    for axis, (kernel, nodes) in enumerate(zip(KERNELS, (X, D), strict=True)):
        part = covariance_left(kernel, model.levels[axis].ridge, NEW[axis], nodes)
        parts.append(np.where(np.isin(NEW[axis], nodes), 0.0, known.scales[axis] * part))
    asked = [(part > 0).astype(int) for part in parts]
    expected = np.add.outer(*parts) * known.factors[np.ix_(*asked)]
    np.testing.assert_allclose(variance_on_grid(known, model, NEW), expected, rtol=1e-8)


def test_a_joint_ridge_leaves_open_what_one_dense_system_does():
    model = fitted(joint=True)
    known = calibrate(model)
    system = np.kron(*(gram(k, c, c) for k, c in zip(KERNELS, (X, D), strict=True)))
    inverse = np.linalg.inv(system + 1e-2 * np.eye(88))
    missed = inverse @ VALUES.ravel() / np.diag(inverse)
    own = (np.quantile(np.abs(missed) * np.sqrt(np.diag(inverse)), 0.9) / Z90) ** 2
    assert known.scale == pytest.approx(own, rel=1e-8)
    assert known.errors == pytest.approx([np.sqrt(np.mean(missed**2))], rel=1e-8)
    cross = np.kron(*(gram(k, q, c) for k, q, c in zip(KERNELS, NEW, (X, D), strict=True)))
    expected = own * (1 + 1e-2 - np.einsum("ij,jk,ik->i", cross, inverse, cross)).reshape(3, 4)
    expected[1, 2] = 0.0  # a training cell
    np.testing.assert_allclose(variance_on_grid(known, model, NEW), expected, rtol=1e-7)


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


def test_a_ninety_percent_band_holds_ninety_percent_of_what_the_model_draws():
    x = np.arange(60.0)
    held = np.arange(2, 58, 4)
    train = np.setdiff1d(np.arange(60), held)
    root = np.linalg.cholesky(gram(Kernel("matern32", 4.0), x, x) + 1e-2 * np.eye(60))
    data = root @ RNG.standard_normal((60, 400))
    model = fit_model(data[train], {"x": x[train], "run": np.arange(400.0)})
    answers, spread = model.predict(x=x[held]), model.std(x=x[held]) ** 2
    assert 0.85 < coverage90(data[held], answers, spread) < 0.95


@pytest.fixture(scope="module", params=["level", "joint"])
def saved(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "ocean.npz"
    dkrls("fit", ROOT / "sample_data" / "ocean.nc", "--noise", request.param, "-o", path)
    return path


AT = ("--at", "lat=10,12.5", "--at", "lon=200,203", "--at", "time=2020-03-03")
BARS = ["sst", "sst_std"]


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
