"""Error bars against dense algebra, and against data drawn from the model."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from shell import ROOT, dkrls

from dkrls_cli import fit as fit_model
from dkrls_cli.cascade import cascade as cascade_module
from dkrls_cli.cascade import errorbars as module
from dkrls_cli.cascade.calibration.local import LocalScale, find_local_scale, student_factor
from dkrls_cli.cascade.errorbars import (
    Z90,
    FilledBars,
    JointBars,
    LevelBars,
    calibrate,
    variance_on_grid,
)
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import SPLINE_RIDGE, Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.model.validation.metrics import coverage90

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
    widened = scale[0], scale[1] * student_factor(6)  # nine slices of x are enough
    np.testing.assert_allclose(known.scales, widened, rtol=1e-9)
    assert known.local == ()
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


# ---- which slices are left out


def level_of(size, period=None, most=99):
    """The slices that are left out of one level."""
    z = np.random.default_rng(size).permutation(np.arange(float(size)))
    model = fit_cascade(z, [z], [Level("z", Kernel("matern32", 2.0, period), 0.1)])
    return z, model, module.leave_out(model, 0, most)


@pytest.mark.parametrize("size", [4, 5, 12])
def test_ends_of_a_line_are_not_left_out(size):
    z, _, left = level_of(size)
    assert z[left.nodes].tolist() == list(range(1, size - 1))


@pytest.mark.parametrize(
    ("size", "period"), [(1, None), (2, None), (3, None), (4, 4.0), (12, 12.0)]
)
def test_a_circle_and_few_slices_have_no_ends(size, period):
    z, _, left = level_of(size, period)
    assert z[left.nodes].tolist() == list(range(size))


@pytest.mark.parametrize(("most", "kept"), [(10, 10), (9, 9), (4, 4), (2, 2)])
def test_slices_left_out_are_spread_evenly(most, kept):
    z, model, left = level_of(12, most=most)
    numbers = z[left.nodes]
    assert numbers.size == kept
    assert (numbers[0], numbers[-1]) == (1, 10)
    assert np.ptp(np.diff(numbers)) <= 1
    rows = left.twice[left.nodes.size :]
    assert (rows[np.arange(kept), left.nodes] == 0).all()
    inverse = np.linalg.inv(gram(model.levels[0].kernel, z, z) + 0.1 * np.eye(12))
    np.testing.assert_allclose(left.variance, 1 / inverse.diagonal()[left.nodes], rtol=1e-10)
    assert (rows != 0).sum() == 11 * kept


@pytest.mark.parametrize(("shape", "each"), [((40,), 38), ((140, 140), 128), ((28, 28, 28), 25)])
def test_some_sixteen_thousand_cells_are_predicted(shape, each, monkeypatch):
    asked = []

    def leave_out(cascade, axis, most, copies):
        left = plain(cascade, axis, most, copies)
        asked.append(left.nodes.size)
        return left

    plain = module.leave_out
    monkeypatch.setattr(module, "leave_out", leave_out)
    levels = [Level(f"d{a}", Kernel("matern12", 2.0), 0.1) for a in range(len(shape))]
    calibrate(fit_cascade(np.ones(shape), [np.arange(float(m)) for m in shape], levels))
    assert asked == [each] * len(shape)


@pytest.mark.parametrize(("size", "judged"), [(20, range(1, 18)), (1100, range(1, 1096))])
def test_copies_are_not_left_out_and_copied_slices_of_long_levels_neither(size, judged):
    copies = np.full(size, -1)
    copies[-2:] = [size - 3, size - 4]
    x = np.arange(float(size))
    cascade = fit_cascade(np.sin(x), [x], [Level("x", Kernel("matern12", 2.0), 0.1)])
    left = module.leave_out(cascade, 0, 2000, copies)
    assert left.nodes.tolist() == list(judged)


def test_a_long_level_solves_for_its_slices_or_for_its_fibres_whichever_are_fewer(monkeypatch):
    x, solved = np.arange(1100.0), []
    cascade = fit_cascade(np.sin(x), [x], [Level("x", Kernel("matern32", 3.0), 0.1)])
    left = module.leave_out(cascade, 0, 6)
    solve = LongFactor.solve

    def counted(factor, right):
        solved.append(right.shape[1])
        return solve(factor, right)

    monkeypatch.setattr(LongFactor, "solve", counted)
    fibres = np.random.default_rng(5).standard_normal((x.size, 9))
    many, few, one = (left.twice @ fibres[:, :n] for n in (9, 6, 1))
    assert solved == [6, 6, 1]
    np.testing.assert_allclose(many[:, :6], few, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(many[:, :1], one, rtol=1e-11, atol=1e-13)
    inverse = np.linalg.inv(gram(cascade.levels[0].kernel, x, x) + 0.1 * np.eye(x.size))
    own, weights = fibres[left.nodes], inverse[left.nodes]
    expected = own - weights @ fibres * left.variance[:, None]
    np.testing.assert_allclose(many, np.concatenate([own, expected]), rtol=1e-9, atol=1e-12)


def test_at_least_four_slices_of_a_level_are_left_out(monkeypatch):
    plain, asked = module.leave_out, []

    def leave_out(cascade, axis, most, copies):
        asked.append(most)
        return plain(cascade, axis, most, copies)

    monkeypatch.setattr(module, "_CELLS", 9)
    monkeypatch.setattr(module, "leave_out", leave_out)
    calibrate(fitted(joint=False))
    assert asked == [4, 4]


# ---- widths


def test_equal_coordinates_are_worked_out_once(monkeypatch):
    model, asked = fitted(joint=False), []
    known = calibrate(model)
    monkeypatch.setattr(
        cascade_module, "gram", lambda kernel, a, b: asked.append(a.size) or gram(kernel, a, b)
    )
    points = [np.array([0.7, 4.4, 0.7, 0.7]), np.array([0.1, 0.1, 0.2, D[2]])]
    spread = known.variance_at_points(model, points)
    assert asked == [2, 2]
    alone = [known.variance_at_points(model, [p[[i]] for p in points])[0] for i in range(4)]
    np.testing.assert_allclose(spread, alone, rtol=1e-12)


def test_the_data_never_leaves_less_than_the_noise():
    found = module._unexplained(1.0, np.array([0.3, 1.0, 1.0 + 1e-9]), 0.01)
    assert found.tolist() == pytest.approx([0.71, 0.01, 0.01])


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_a_band_holds_nine_of_ten_errors(share):
    errors = share * np.linspace(0, 1, 1001)
    factor = module._band_factor(errors, np.full(1001, 0.25))
    assert np.mean(errors <= Z90 * np.sqrt(0.25 * factor) * (1 + 1e-12)) == pytest.approx(
        0.9, abs=2e-3
    )
    none = np.zeros(3)
    assert module._band_factor(np.ones(3), none) == 1.0
    some = module._band_factor(np.array([9.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0]))
    assert some == pytest.approx(1 / Z90**2)


def test_the_band_is_that_of_a_normal_distribution():
    from statistics import NormalDist

    assert pytest.approx(NormalDist().inv_cdf(0.95), rel=1e-15) == Z90


# ---- local scales


def rough_in_the_middle(period=None):
    """Return a model of noise that is five times as large around the middle of x."""
    x = np.arange(24.0) * (1.0 if period is None else period / 24)
    size = np.where(np.abs(np.arange(24) - 12) < 5, 5.0, 1.0)
    values = np.random.default_rng(5).standard_normal((24, 9)) * size[:, None]
    levels = [Level("x", Kernel("matern32", x[2], period), 0.1), Level("d", KERNELS[1], 0.1)]
    return fit_cascade(values, [x, np.arange(9.0)], levels)


@pytest.mark.parametrize("period", [None, 360.0])
def test_bands_are_wider_where_slices_are_missed_by_more(period):
    model = rough_in_the_middle(period)
    known = calibrate(model)
    scale, none = known.local
    assert none is None  # the seven slices of d are too few
    step = model.coordinates[0][1]
    query = [step * np.array([2.5, 12.5, 23.5]), np.array([3.0, 3.5])]
    plain = LevelBars(known.errors, known.scales, known.factors)
    wider = variance_on_grid(known, model, query) / variance_on_grid(plain, model, query)
    np.testing.assert_allclose(wider, np.outer(scale.at(query[0], period), [1, 1]), rtol=1e-12)
    assert wider[1, 0] > 4 * wider[0, 0]
    at_nodes = [step * np.array([12.0]), np.array([3.5])]
    passed = variance_on_grid(known, model, at_nodes) / variance_on_grid(plain, model, at_nodes)
    assert passed == pytest.approx(1.0)


def test_local_scales_and_factors_are_those_of_all_cells_left_out():
    model = rough_in_the_middle()
    known = calibrate(model)
    levels = [module.leave_out(model, axis, 99) for axis in (0, 1)]
    missed = module._missed(model, levels)
    raw = known.scales / [1.0, student_factor(7)]
    parts = [s * level.variance for s, level in zip(raw, levels, strict=True)]
    squares = (missed[1, 1] ** 2 / np.add.outer(*parts)).mean(axis=1)
    scale, own = find_local_scale(model.coordinates[0][levels[0].nodes], squares)
    np.testing.assert_allclose(known.local[0].factors, scale.factors, rtol=1e-9)
    for pattern in ((1, 0), (0, 1), (1, 1)):
        variance = np.add.outer(*(part * on for part, on in zip(parts, pattern, strict=True)))
        variance *= own[:, None] if pattern[0] else 1.0
        ratios = np.abs(missed[pattern]) / np.sqrt(variance)
        expected = (np.quantile(ratios, 0.9) / Z90) ** 2
        assert known.factors[pattern] == pytest.approx(expected, rel=1e-9)


def test_points_blocks_and_members_have_the_local_scale():
    model = rough_in_the_middle()
    known = calibrate(model)
    query = [np.array([2.5, 12.0, 12.5]), np.array([0.5, 3.0, 4.2, 8.0])]
    whole = variance_on_grid(known, model, query)
    block = known.variance_blocks(model, query)((slice(1, 3), slice(0, 2)))
    np.testing.assert_allclose(block, whole[1:3, :2], rtol=1e-12)
    cells = [axis.ravel() for axis in np.meshgrid(*query, indexing="ij")]
    found = known.variance_at_points(model, cells)
    np.testing.assert_allclose(found, whole.ravel(), rtol=1e-12)
    stations = known.variance_at_points(model, query, spread=[0])
    np.testing.assert_allclose(stations, whole.T, rtol=1e-12)
    draw = known.deviations(model, query)
    plain = LevelBars(known.errors, known.scales, known.factors).deviations(model, query)
    local = np.ones((3, 4))
    local[[0, 2]] = known.local[0].at(query[0][[0, 2]])[:, None]
    np.testing.assert_allclose(draw(3), plain(3) * np.sqrt(local), rtol=1e-9)


def test_a_model_of_one_level_has_the_same_variance_when_asked_again():
    model = fit_cascade(np.sin(X) + X, [X], [Level("x", KERNELS[0], 1e-3)])
    bars = LevelBars(np.ones(1), np.ones(1), np.array([1.0, 2.0]), (LocalScale(X, X + 1.0),))
    ask = bars.variance_blocks(model, NEW[:1])
    first = ask((slice(0, 3),)).copy()
    np.testing.assert_array_equal(ask((slice(0, 3),)), first)


def test_filled_cells_have_the_local_scale_of_their_place():
    model = rough_in_the_middle()
    known = calibrate(model)
    plain = LevelBars(known.errors, known.scales, known.factors)
    ratio = known.filled_variance(model, 0) / plain.filled_variance(model, 0)
    np.testing.assert_allclose(ratio, known.local[0].at(model.coordinates[0]), rtol=1e-12)
    assert (known.filled_variance(model, 1) == plain.filled_variance(model, 1)).all()


# ---- filled cells


def test_filled_cells_are_as_uncertain_as_if_left_out():
    model = fitted(joint=False)
    plain = calibrate(model)
    assert isinstance(plain, LevelBars)
    filled = RNG.random((11, 8)) < 0.3
    for axis, nodes in enumerate((X, D)):
        bars = plain.with_unobserved(filled, axis)
        system = gram(KERNELS[axis], nodes, nodes) + model.levels[axis].ridge * np.eye(nodes.size)
        left_out = 1 / np.linalg.inv(system).diagonal()
        alone = plain.factors[(1, 0) if axis == 0 else (0, 1)] * plain.scales[axis] * left_out
        expected = np.where(filled, alone[:, None] if axis == 0 else alone, 0.0)
        np.testing.assert_allclose(variance_on_grid(bars, model, [X, D]), expected, rtol=1e-9)
        assert bars.errors is plain.errors


@pytest.mark.parametrize("smooth", [False, True])
def test_filled_cells_are_known_between_others_in_blocks_and_at_points(smooth):
    model = fitted(joint=False)
    plain = calibrate(model)
    filled = np.zeros((11, 8), bool)
    filled[3, 2] = True  # both are in NEW
    bars = FilledBars(plain, filled, 1)
    whole, before = (variance_on_grid(b, model, NEW, smooth=smooth) for b in (bars, plain))
    more = np.zeros((3, 4))
    more[1, 2] = 0.0 if smooth else plain.filled_variance(model, 1)[2]
    np.testing.assert_allclose(whole, before + more, rtol=1e-12)
    assert smooth or whole[1, 2] > 0
    parts = bars.variance_blocks(model, NEW, smooth=smooth)
    part = slice(1, 3), slice(1, 4)
    np.testing.assert_allclose(parts(part), whole[part], rtol=1e-12)
    points = [axis.ravel() for axis in np.meshgrid(*NEW, indexing="ij")]
    at_points = bars.variance_at_points(model, points, smooth=smooth)
    np.testing.assert_allclose(at_points, whole.ravel(), rtol=1e-12)
    for spread in (0, 1):
        stations = bars.variance_at_points(model, NEW, spread=[spread], smooth=smooth)
        np.testing.assert_allclose(stations, whole.T if spread == 0 else whole, rtol=1e-12)


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


# ---------------------------------------------------------------------------------------- splines

SPLINES = (
    Kernel("cubic", 2.0, errors="matern32"),
    Kernel("quintic", 0.6, warp="sqrt", errors="gaussian"),
)


@pytest.mark.parametrize("pieces", [(), (Piece("linear", X[4], X[6]),)])
def test_the_error_bars_of_splines_are_scaled_by_slices_left_out_of_them(pieces):
    axes, ridge = (X, D + 1.0), SPLINE_RIDGE
    splines = replace(SPLINES[0], pieces=pieces), SPLINES[1]
    levels = [Level("x", splines[0]), Level("d", splines[1])]
    model = fit_cascade(VALUES, axes, levels, mean=0.3)
    bars = calibrate(model)
    for axis, (nodes, kernel) in enumerate(zip(axes, splines, strict=True)):
        data = np.moveaxis(VALUES, axis, 0)[:, 1:-1]
        missed, left = [], []
        for j in range(1, nodes.size - 1):
            kept = np.delete(np.arange(nodes.size), j)
            missed.append(gram(kernel, nodes[[j]], nodes[kept]) @ data[kept] - data[j])
            left.append(covariance_left(kernel.covariance, ridge, nodes[[j]], nodes[kept]))
        squares = np.concatenate(missed) ** 2
        assert bars.errors[axis] == pytest.approx(np.sqrt(squares.mean()), rel=1e-6)
        scale = np.mean(squares / np.array(left)) * student_factor(nodes.size - 2)
        assert bars.scales[axis] == pytest.approx(scale, rel=1e-4)
    new = [np.array([0.5 * (X[3] + X[4]), X[2]]), axes[1][[2]]]
    found = variance_on_grid(bars, model, new)
    alone = covariance_left(SPLINES[0].covariance, ridge, new[0][:1], X)[0]
    alone *= 1.0 if not bars.local or bars.local[0] is None else bars.local[0].at(new[0][:1])[0]
    assert found[0, 0] == pytest.approx(bars.factors[1, 0] * bars.scales[0] * alone, rel=1e-4)
    assert found[1, 0] == 0.0


def test_a_filled_cell_of_a_spline_has_the_variance_of_one_left_out():
    model = fit_cascade(VALUES, [X, D], [Level("x", SPLINES[0]), Level("d", Kernel(), 0.1)])
    bars = calibrate(model)
    kept = np.delete(np.arange(X.size), 4)
    left = covariance_left(SPLINES[0].covariance, SPLINE_RIDGE, X[[4]], X[kept])[0]
    expected = bars.factors[1, 0] * bars.scales[0] * left
    assert bars.filled_variance(model, 0)[4] == pytest.approx(expected, rel=1e-4)


def test_draws_of_splines_are_as_wide_as_their_error_bars():
    model = fit_cascade(VALUES, [X, D], [Level("x", SPLINES[0]), Level("d", Kernel(), 0.1)])
    bars, new = calibrate(model), [np.linspace(1, 8, 5), np.array([0.3, 2.2])]
    draw = bars.deviations(model, new, seed=1)
    width = np.std([draw(member) for member in range(1500)], axis=0)
    np.testing.assert_allclose(width, np.sqrt(variance_on_grid(bars, model, new)), rtol=0.12)
