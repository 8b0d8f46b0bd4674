"""Trained models: answers in blocks, on axes and at points, and what a model tells of itself."""

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit, load_model
from dkrls_cli.errors import SettingError

RNG = np.random.default_rng(7)

T, S = np.arange(12.0), np.linspace(0, 1, 5)
FIELD = np.sin(np.add.outer(np.add.outer(T / 3, S), S)) + 0.1 * RNG.standard_normal((12, 5, 5))
GAPPY = np.where(RNG.random(FIELD.shape) < 0.2, np.nan, FIELD)
SETTINGS = {"kernel": "matern32", "sigma": {"t": 3.0, "x": 0.5, "y": 0.5}, "mean": 0.2}


def model_of(kind):
    """A model of one kind of ridge and error bars, growing along t."""
    axes, ridge = {"t": T, "x": S, "y": S}, {"ridge": 1e-2}
    how = {"levels": ["x", "y", "t"], **SETTINGS, **ridge}
    if kind == "gaps":
        return fit(GAPPY, axes, **how)
    if kind == "filled":
        start = fit(FIELD[:8], {**axes, "t": T[:8]}, **how)
        return start.update(GAPPY[8:], T[8:])
    return fit(FIELD, axes, noise=kind, **how)


each_kind = pytest.mark.parametrize("kind", ["level", "joint", "gaps", "filled"])
AT = {"t": [0.0, 0.5, 9.0, 11.0, 13.0], "x": [0.1, 0.25, 0.75, 2.0], "y": [0.0, 0.33, 1.0]}


@pytest.mark.slow
@each_kind
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("cells", [1, 3, 7, 12, 25, 60])
def test_blocks_are_parts_of_the_whole_answer(kind, smooth, cells):
    """Blocks smaller than the inner axes, so that there are many along the outer ones."""
    model = model_of(kind)
    axes = model.axes_at(AT)
    values, errors = np.full((2, 5, 4, 3), np.nan)
    starts = []
    for part, answer, std in model.blocks_on(axes, cells, std=True, smooth=smooth):
        assert np.isnan(values[part]).all()
        values[part], errors[part] = answer, std
        starts.append(np.ravel_multi_index([side.start for side in part], values.shape))
    assert starts == sorted(starts)
    assert len(starts) == {1: 60, 3: 20, 7: 10, 12: 5, 25: 3, 60: 1}[cells]
    np.testing.assert_allclose(values, model.values_on(axes, smooth=smooth), rtol=1e-9)
    np.testing.assert_allclose(errors, model.std_on(axes, smooth=smooth), rtol=1e-9, atol=1e-12)


def test_blocks_have_no_errors_unless_asked_for():
    model = model_of("level")
    assert all(std is None for _, _, std in model.blocks_on(model.axes, 40))


@each_kind
@pytest.mark.parametrize("smooth", [False, True])
def test_every_way_to_ask_answers_the_same(kind, smooth):
    model = model_of(kind)
    axes = model.axes_at(AT)
    values, errors = (f(axes, smooth=smooth) for f in (model.values_on, model.std_on))
    np.testing.assert_array_equal(model.predict(smooth=smooth, extrapolate=True, **AT), values)
    np.testing.assert_array_equal(model.std(smooth=smooth, extrapolate=True, **AT), errors)
    points = [axis.ravel() for axis in np.meshgrid(*AT.values(), indexing="ij")]
    named = dict(zip("txy", points, strict=True))
    np.testing.assert_allclose(model.values_at(points, smooth=smooth), values.ravel(), rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_points(smooth=smooth, extrapolate=True, **named), values.ravel()
    )
    np.testing.assert_allclose(
        model.std_at(points, smooth=smooth), errors.ravel(), rtol=1e-7, atol=1e-12
    )
    at_points = model.std_points(smooth=smooth, extrapolate=True, **named)
    np.testing.assert_allclose(at_points, errors.ravel(), rtol=1e-7, atol=1e-12)


def test_answers_pass_through_unless_asked_not_to():
    model = model_of("level")
    points = [axis.ravel() for axis in np.meshgrid(*model.cascade.coordinates, indexing="ij")]
    named = dict(zip("txy", points, strict=True))
    answers = [
        model.predict().values,
        model.values_on(model.axes),
        model.predict_points(**named),
        model.values_at(points),
        np.concatenate([values.ravel() for _, values, _ in model.blocks_on(model.axes, 40)]),
    ]
    for values in answers:
        np.testing.assert_allclose(values.ravel(), FIELD.ravel(), rtol=1e-12)
    errors = [
        model.std().values,
        model.std_on(model.axes),
        model.std_points(**named),
        model.std_at(points),
        model.variance(model.cascade.coordinates),
        *(std for _, _, std in model.blocks_on(model.axes, 40, std=True)),
    ]
    assert not any(std.any() for std in errors)


@each_kind
def test_only_cells_that_were_missing_are_uncertain_at_the_nodes(kind):
    model = model_of(kind)
    missing = np.isnan(GAPPY) if kind in ("gaps", "filled") else np.zeros(FIELD.shape, bool)
    missing[:8] &= kind == "gaps"
    assert np.array_equal(model.std().values > 0, missing)
    assert (model.unobserved is None) == (not missing.any())
    assert model.unobserved is None or np.array_equal(model.unobserved, missing)


@each_kind
def test_every_kind_of_model_survives_a_file(kind, tmp_path):
    model = model_of(kind)
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    far = {**AT, "extrapolate": True}
    np.testing.assert_array_equal(again.predict(**far), model.predict(**far))
    np.testing.assert_array_equal(again.std(**far), model.std(**far))
    np.testing.assert_array_equal(again.std(), model.std())
    assert again.storage == model.storage
    assert again.errors == model.errors
    assert len(again.errors) == 3


def test_a_model_describes_itself():
    model = model_of("joint")
    assert (model.dims, model.shape, model.stored_shape) == (
        ("t", "x", "y"),
        (12, 5, 5),
        (12, 5, 5),
    )
    assert (model.grows, model.hierarchy) == (0, ("x", "y", "t"))
    assert (model.joint_ridge, model.dropped, model.storage) == (1e-2, 0.0, "float64")
    assert model.ranks == (12, 5, 5)
    assert len(set(model.errors)) == 1


def test_a_known_axis_is_not_searched_for_nodes():
    model = model_of("level")
    axes = model.axes_at({"x": [0.1]})
    queries = model.queries(axes)
    assert queries[0] is model.cascade.coordinates[0]
    assert queries[1].tolist() == [0.1]


def test_what_lies_outside_is_known():
    model = model_of("level")
    outside = model.outside(model.axes_at({"t": [-1.0, 0.0, 11.0, 11.5], "x": [1.0, 1.1]}))
    assert [mask.tolist() for mask in outside[:2]] == [[True, False, False, True], [False, True]]
    assert not outside[2].any()


@pytest.mark.parametrize("depth", [0, 4])
def test_weights_have_a_depth_of_one_to_the_number_of_levels(depth):
    with pytest.raises(SettingError, match=f"Invalid depth {depth}. It must be 1 to 3"):
        model_of("level").weights(depth)


@pytest.mark.parametrize("cells", [1, 4, 7, 24, 1000])
@pytest.mark.parametrize("spread", [(), (0,), (0, 2)])
def test_blocks_of_points_are_the_whole_answer(cells, spread):
    model = model_of("level")
    points = [np.array([1.0, 2.5, 3.0]), np.array([3.0, 40, -60]), np.array([0.0, 1, 1])]
    whole = model.values_at(points, spread=spread, smooth=True)
    errors = model.std_at(points, spread=spread, smooth=True)
    seen = 0
    for part, values, std in model.blocks_at(points, cells, spread=spread, std=True, smooth=True):
        np.testing.assert_allclose(values, whole[part], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(std, errors[part], rtol=1e-9)
        assert values.size <= cells
        seen += values.size
    assert seen == whole.size
    (_, _, std), *_ = model.blocks_at(points, cells, spread=spread)
    assert std is None


def test_no_points_are_one_empty_block():
    none = [np.empty(0), np.empty(0), np.empty(0)]
    ((part, values, std),) = model_of("level").blocks_at(none, 10, std=True)
    assert (part, values.shape, std.shape) == ((slice(0, 0),), (0,), (0,))


@pytest.mark.parametrize("lost", [slice(4, 8), slice(1, 5)])
def test_a_longitude_that_is_there_twice_has_data_twice_where_no_ring_closes(lost):
    lon = np.arange(-180.0, 181, 45)
    values = 10 + np.cos(np.deg2rad(lon)) * np.array([[0.5], [1.0]])
    values[:, lost] = np.nan
    axes = {"lat": ("lat", [0.0, 10.0]), "lon": ("lon", lon, {"units": "degrees_east"})}
    data = xr.DataArray(values, axes, ("lat", "lon"), name="t")
    answers = fit(data, sigma={"lat": 10.0, "lon": 60.0}, kernel="matern52", ridge=1e-6).predict()
    np.testing.assert_array_equal(answers.lon, lon)
    seen = ~np.isnan(values)
    np.testing.assert_allclose(answers.values[seen], values[seen])


# The spread of the data


@pytest.mark.parametrize("options", [{}, {"compact": True}, {"noise": "joint"}, {"robust": True}])
def test_the_spread_is_the_standard_deviation_of_the_data(options, monkeypatch):
    x, y = np.linspace(0, 3, 20), np.linspace(0, 5, 30)
    values = 1e4 + np.outer(np.sin(x), np.cos(y))
    model = fit(values, {"x": x, "y": y}, **options)
    assert model.spread == pytest.approx(values.std(), rel=1e-6)
    monkeypatch.setattr("dkrls_cli.model.trained._SPREAD_BLOCK", 7)
    assert model.spread == pytest.approx(values.std(), rel=1e-6)


def test_the_spread_is_that_of_observed_cells():
    rng = np.random.default_rng(1)
    x, y = np.linspace(0, 3, 12), np.linspace(0, 5, 15)
    values = np.outer(np.sin(x), np.cos(y))
    values[rng.random(values.shape) < 0.2] = np.nan
    model = fit(values, {"x": x, "y": y}, sigma=1.0, ridge=1e-4)
    assert model.spread == pytest.approx(np.nanstd(values), rel=1e-6)
    noisy = fit(values, {"x": x, "y": y}, sigma=1.0, ridge=1e-4, obs_error=0.1)
    assert noisy.spread == pytest.approx(np.nanstd(values), rel=1e-12)


def test_rows_behind_the_poles_do_not_count_for_the_spread():
    lat, lon = np.linspace(-87.5, 87.5, 36), np.arange(0.0, 360, 20)
    values = np.outer(np.sin(np.deg2rad(lat)), 1 + 0 * lon) + np.cos(np.deg2rad(lon))
    axes = {"lat": ("lat", lat, {"units": "degrees_north"})}
    axes["lon"] = ("lon", lon, {"units": "degrees_east"})
    model = fit(xr.DataArray(values, axes, ["lat", "lon"]), poles="scalar", sigma=30.0, ridge=1e-6)
    assert model.poles is not None
    assert model.spread == pytest.approx(values.std(), rel=1e-6)
