"""Models as a file stores them: every kind comes back, and arrays that do not fit are refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dkrls_cli.cascade.calibration.folds import BetweenScale
from dkrls_cli.cascade.calibration.local import LocalScale
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.errorbars import Bars, FilledBars, JointBars, LevelBars, calibrate
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.field import NO_GROUPS, Grouping
from dkrls_cli.grid.axes import Axis, axis_of, index_axis, text_axis
from dkrls_cli.grid.style import Companion, Packing, Style
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.answering.coverage import Coverage
from dkrls_cli.model.record import (
    axis_from,
    axis_record,
    bars_from,
    bars_record,
    bounds_from,
    bounds_record,
    cascade_from,
    cascade_record,
    coverage_from,
    coverage_record,
    filled_from,
    from_json,
    narrow_record,
    style_from,
    style_record,
    to_json,
    widen_arrays,
)

X, T = np.linspace(0, 1, 30), np.arange(20.0)
RNG = np.random.default_rng(2)
SMOOTH, NOISE = np.sin(3 * X[:, None] + T / 4), RNG.standard_normal((30, 20))
KERNELS = Kernel("matern52", 0.4), Kernel("matern32", 5.0, None, 1.0, 7.0, 2.0)
NEW = [np.array([0.03, 0.7]), np.array([-1.0, 4.4, 9.0])]


def fitted(values: np.ndarray = NOISE, joint: float | None = None, **how: Any) -> Cascade:
    ridge = 1e-3 if joint is None else 0.0
    levels = [Level(name, kernel, ridge) for name, kernel in zip("xt", KERNELS, strict=True)]
    return fit_cascade(values, [X, T], levels, joint_ridge=joint, **how)


def through_a_file(header: Any) -> Any:
    return json.loads(json.dumps(header))


# ---- cascades


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"joint": 1e-2, "mean": 0.3},
        {"values": SMOOTH},
        {"values": SMOOTH, "mean": 2.0},
        {"dtype": np.float32},
        {"compact": True},
    ],
    ids=["level", "joint", "framed", "about a mean", "single", "compact"],
)
def test_a_cascade_comes_back(how: dict[str, Any]) -> None:
    model = fitted(**how)
    header, arrays = cascade_record(model)
    again = cascade_from(through_a_file(header), arrays)
    assert again.levels == model.levels
    assert (again.joint_ridge, again.mean) == (model.joint_ridge, model.mean)
    assert (again.dropped, again.compact) == (model.dropped, model.compact)
    assert again.core.dtype == model.core.dtype
    for smooth in (False, True):
        np.testing.assert_array_equal(
            again.predict(NEW, smooth=smooth), model.predict(NEW, smooth=smooth)
        )


def test_a_record_holds_no_factors_and_computes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    model = replace(fitted(), factors=(None, None))
    monkeypatch.setattr(Cascade, "spectra", None)
    header, arrays = cascade_record(model)
    assert sorted(arrays) == ["coordinates_0", "coordinates_1", "core"]
    assert cascade_from(header, arrays).factors == (None, None)


@pytest.mark.parametrize(
    ("smallest", "triangular", "compact"),
    [
        ((0.1, 0.1), None, True),
        ((0.1, 1e-16), None, False),
        ((0.0, 0.1), [False, False], False),
        ((0.1, 0.1), [True, False], False),
        ((0.1, 0.1), [False, False], True),
    ],
)
def test_older_records_are_compact_if_no_direction_is_round_off(
    smallest: tuple[float, float], triangular: list[bool] | None, compact: bool
) -> None:
    header, arrays = cascade_record(fitted())
    del header["compact"]
    if triangular is not None:
        header["triangular"] = triangular
    for i, least in enumerate(smallest):
        arrays[f"spectrum_{i}"] = np.array([2.0, 1.0, least])
    assert cascade_from(header, arrays).compact == compact
    del arrays["spectrum_1"]
    with pytest.raises(KeyError):
        cascade_from(header, arrays)


def cut(name: str, axis: int = 0) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[name] = np.delete(arrays[name], 0, axis)

    return change


WRONG = {
    "coordinates": (cut("coordinates_0"), "level 'x'"),
    "rows of a frame": (cut("frame_0", 0), "level 'x'"),
    "columns of a frame": (cut("frame_0", 1), "level 'x'"),
    "core along a frame": (cut("core", 0), "level 'x'"),
    "core along samples": (cut("core", 1), "level 't'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_arrays_that_do_not_fit_together_are_refused(what: str) -> None:
    """The data is framed along x only."""
    framed = np.outer(np.sin(3 * X), RNG.standard_normal(20)) + np.outer(X, NOISE[0])
    header, arrays = cascade_record(fitted(framed))
    if "frame_1" in arrays:  # the other axis in samples
        arrays["core"] = arrays["core"] @ arrays.pop("frame_1").T
    assert cascade_from(header, arrays).shape == (30, 20)
    change, message = WRONG[what]
    change(header, arrays)
    with pytest.raises(ValueError, match=f"arrays of {message} do not fit together"):
        cascade_from(header, arrays)


@pytest.mark.parametrize("shape", [(30,), (30, 20, 1)])
def test_a_core_has_one_axis_per_level(shape: tuple[int, ...]) -> None:
    header, arrays = cascade_record(fitted())
    arrays["core"] = np.zeros(shape)
    with pytest.raises(ValueError, match=f"2 levels for {len(shape)} axes"):
        cascade_from(header, arrays)


# ---- error bars


def returned(bars: Bars, shape: tuple[int, ...] = (30, 20), joint: bool = False) -> Bars:
    header, arrays = bars_record(bars)
    return bars_from(through_a_file(header), arrays, shape, joint)


def test_bars_of_levels_come_back() -> None:
    bars = calibrate(fitted())
    again = returned(bars)
    assert isinstance(again, LevelBars)
    for name in ("errors", "scales", "factors"):
        np.testing.assert_array_equal(getattr(again, name), getattr(bars, name))


def test_local_scales_come_back() -> None:
    scale = LocalScale(np.array([0.1, 0.5, 7.0]), np.array([0.3, 1.0, 4.0]))
    bars = replace(calibrate(fitted()), local=(None, scale))
    again = returned(bars)
    assert isinstance(again, LevelBars)
    none, found = again.local
    assert none is None
    assert found is not None
    np.testing.assert_array_equal(found.places, scale.places)
    np.testing.assert_array_equal(found.factors, scale.factors)


def test_files_of_older_versions_have_no_local_scales() -> None:
    header, arrays = bars_record(replace(calibrate(fitted()), local=()))
    assert "local" not in header
    again = bars_from(through_a_file(header), arrays, (30, 20), False)
    assert isinstance(again, LevelBars)
    assert again.local == ()


@pytest.mark.parametrize(
    ("places", "factors", "count"), [((1, 1), (1, 1), 2), ((1, 2), (1,), 2), ((1, 2), (1, 1), 1)]
)
def test_local_scales_fit_the_levels_and_rise(
    places: tuple[float, ...], factors: tuple[float, ...], count: int
) -> None:
    scale = LocalScale(np.array(places), np.array(factors))
    with pytest.raises(ValueError, match=r"do not fit the levels|do not rise, or do not fit it"):
        returned(replace(calibrate(fitted()), local=(scale,) * count))


def test_bars_of_a_joint_ridge_come_back() -> None:
    header, arrays = bars_record(JointBars(error=0.3, scale=2.0))
    assert (header, arrays) == ({"errors": [0.3], "scales": [2.0], "factors": 1.0}, {})
    again = returned(JointBars(error=0.3, scale=2.0), joint=True)
    assert isinstance(again, JointBars)
    assert (again.error, again.scale) == (0.3, 2.0)


def test_bars_of_gaps_come_back() -> None:
    missing = RNG.random((30, 20)) < 0.5
    bars = GapBars(missing, scale=2.0, power=0.7, error=0.3)
    header, _ = bars_record(bars)
    distance = np.where(missing, 1e-12, 0.0).astype(np.float32)  # as files had it before
    for again in (
        returned(bars, joint=True),
        bars_from(header, {"distance": distance}, (30, 20), True),
    ):
        assert isinstance(again, GapBars)
        assert (again.scale, again.power, again.error) == (2.0, 0.7, 0.3)
        assert np.array_equal(again.unobserved, missing)


@pytest.mark.parametrize("factors", [(1.5, 2.0, 0.25), lambda: (1.5, 2.0, 0.25)])
@pytest.mark.parametrize("sphere", [False, True])
def test_groups_and_factors_in_holes_come_back(factors: Any, sphere: bool) -> None:
    grouping = Grouping(((0, 1),), 0.15, 0.2, sphere)
    bars = GapBars(RNG.random((30, 20)) < 0.5, 2.0, 0.7, 0.3, grouping, factors)
    again = returned(bars, joint=True)
    assert isinstance(again, GapBars)
    assert again.grouping == grouping
    assert again.hole_factors == (1.5, 2.0, 0.25)


def test_errors_between_coordinates_come_back_if_they_are_known() -> None:
    known = BetweenScale(np.array([[1.0, 2.0], [0.5, 3.0]]), np.full((2, 2), 0.1), 1.5, 40.0)
    missing = RNG.random((30, 20)) < 0.5
    again = returned(GapBars(missing, 2.0, 0.7, 0.3, between=known), joint=True)
    assert isinstance(again, GapBars)
    assert again.between is not None
    np.testing.assert_array_equal(again.between.factors, known.factors)
    np.testing.assert_array_equal(again.between.usual, known.usual)
    assert (again.between.open, again.between.climate) == (1.5, 40.0)
    assert "between" not in bars_record(GapBars(missing, 2.0, 0.7, 0.3))[0]
    for wrong in (
        replace(known, factors=np.ones((2, 2, 2))),
        replace(known, usual=np.ones(2)),
    ):
        with pytest.raises(ValueError, match="between coordinates do not fit the levels"):
            returned(GapBars(missing, 2.0, 0.7, 0.3, between=wrong), joint=True)


def test_a_local_scale_comes_back_and_fits_the_missing_cells() -> None:
    missing = RNG.random((30, 20)) < 0.5
    count = int(np.count_nonzero(missing))
    scale = RNG.random(count) + 0.1
    bars = GapBars(missing, 2.0, 0.7, 0.3, is_local=True)
    again = returned(bars, joint=True)
    assert isinstance(again, GapBars)
    assert again.is_local
    assert again.local is None
    again = returned(replace(bars, local=scale), joint=True)
    assert isinstance(again, GapBars)
    np.testing.assert_allclose(again.local, scale, rtol=1e-6)  # type: ignore[arg-type]
    for wrong in (scale[1:], np.append(scale, 1.0), np.zeros(count), np.full(count, np.nan)):
        with pytest.raises(ValueError, match="local scale of error bars does not fit"):
            returned(replace(bars, local=wrong), joint=True)
    header, arrays = bars_record(bars)
    del header["is_local"]  # as files had it before
    older = bars_from(through_a_file(header), arrays, (30, 20), True)
    assert isinstance(older, GapBars)
    assert not older.is_local


def test_a_group_has_axes_of_the_grid() -> None:
    for axes in ((0, 2), (-1, 1)):
        bars = GapBars(RNG.random((30, 20)) < 0.5, 2.0, 0.7, 0.3, Grouping((axes,)))
        with pytest.raises(ValueError, match="a group has axes that the levels do not have"):
            returned(bars, joint=True)


def test_a_sphere_has_one_group_of_two_axes() -> None:
    for axes in ((), ((0,),), ((0,), (1,))):
        bars = GapBars(RNG.random((30, 20)) < 0.5, 2.0, 0.7, 0.3, Grouping(axes, sphere=True))
        with pytest.raises(ValueError, match="a sphere has one group of latitude and longitude"):
            returned(bars, joint=True)


def test_groups_of_older_versions_are_planes() -> None:
    header, arrays = bars_record(
        GapBars(RNG.random((30, 20)) < 0.5, 2.0, 0.7, 0.3, Grouping(((0, 1),), 0.15, 0.2))
    )
    del header["grouping"]["sphere"]
    again = bars_from(through_a_file(header), arrays, (30, 20), True)
    assert isinstance(again, GapBars)
    assert again.grouping == Grouping(((0, 1),), 0.15, 0.2, sphere=False)


def test_files_of_older_versions_have_no_groups_and_no_factors() -> None:
    header, arrays = bars_record(GapBars(RNG.random((30, 20)) < 0.5, 2.0, 0.7, 0.3))
    assert header["hole_factors"] == []
    del header["grouping"], header["hole_factors"]
    again = bars_from(through_a_file(header), arrays, (30, 20), True)
    assert isinstance(again, GapBars)
    assert again.grouping == NO_GROUPS
    assert again.hole_factors == ()


def test_bars_of_filled_cells_have_no_record_of_their_own() -> None:
    bars = FilledBars(calibrate(fitted()), np.zeros((30, 20), bool), 1)
    with pytest.raises(TypeError, match="no record of FilledBars"):
        bars_record(bars)


@pytest.mark.parametrize("shape", [(20, 30), (30, 19), (600,)])
def test_missing_cells_have_the_shape_of_the_grid(shape: tuple[int, ...]) -> None:
    header, arrays = bars_record(GapBars(RNG.random((30, 21)) < 0.5, 1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="missing cells do not fit the grid"):
        bars_from(header, arrays, (30, 20), True)
    with pytest.raises(ValueError, match="distances do not fit the grid"):
        bars_from(header, {"distance": np.zeros(shape)}, (30, 20), True)


@pytest.mark.parametrize(
    ("errors", "scales", "factors"),
    [((3,), (2,), (2, 2)), ((2,), (1,), (2, 2)), ((2,), (2,), (2,)), ((2,), (2,), (2, 3))],
)
def test_bars_of_levels_have_the_number_of_levels(
    errors: tuple[int, ...], scales: tuple[int, ...], factors: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="error bars do not fit the levels"):
        returned(LevelBars(*(np.ones(shape) for shape in (errors, scales, factors))))


# ---- filled cells


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (9,), (3, 5), (4, 2, 3)])
def test_filled_cells_come_back(shape: tuple[int, ...]) -> None:
    filled = RNG.random(shape) < 0.5
    again = filled_from({"filled": np.packbits(filled)}, shape)
    assert np.array_equal(again, filled)
    assert filled_from({}, shape) is None


@pytest.mark.parametrize(("size", "count"), [(1, 9), (3, 16), (1, 16), (3, 9)])
def test_filled_cells_have_the_size_of_the_grid(size: int, count: int) -> None:
    with pytest.raises(ValueError, match="filled cells do not fit the grid"):
        filled_from({"filled": np.zeros(size, np.uint8)}, (count,))


# ---- axes and attributes

LONGITUDES = np.array([350.0, 0.0, 10.0], np.float32)
MANY_LONGITUDES = np.roll(np.arange(0.0, 360.0, 10.0), 5)
DATES = np.array(["2001-01-01", "2001-01-05"], "datetime64[ns]")


@pytest.mark.parametrize(
    "axis",
    [
        axis_of("x", np.array([1, 2, 5], np.int16), {"units": "m", "step": np.float32(0.5)}),
        axis_of("lon", LONGITUDES, {"units": "degrees_east"}),
        axis_of("long", MANY_LONGITUDES, {"units": "degrees_east"}),
        axis_of("time", DATES),
        text_axis("station", ["a", "b"]),
        index_axis("n", 4),
    ],
    ids=lambda axis: axis.name,
)
def test_an_axis_comes_back(axis: Axis) -> None:
    record, arrays = axis_record(axis, "written_0")
    assert list(arrays) == (["written_0"] if axis.name == "long" else [])
    again = axis_from(through_a_file(record), axis.name, axis.numbers, arrays)
    assert again.texts == axis.texts
    assert (again.dtype, again.time, again.labels) == (axis.dtype, axis.time, axis.labels)
    assert again.attrs == axis.attrs
    assert (again.has_coordinate, again.turn) == (axis.has_coordinate, axis.turn)
    assert (again.written is None) == (axis.written is None)
    np.testing.assert_array_equal(again.plain, axis.plain)


def test_written_coordinates_are_as_many_as_the_numbers() -> None:
    axis = axis_of("long", MANY_LONGITUDES, {"units": "degrees_east"})
    record, arrays = axis_record(axis, "written_0")
    with pytest.raises(ValueError, match="the coordinates of 'long' are of two sizes"):
        axis_from(record, "long", axis.numbers[:-1], arrays)
    short = axis_of("lon", LONGITUDES, {"units": "degrees_east"})
    with pytest.raises(ValueError, match="two sizes"):
        axis_from(axis_record(short, "")[0], "lon", short.numbers[:-1], {})


# ---- coverage


def test_a_coverage_comes_back_and_axes_of_the_model_are_not_stored_twice() -> None:
    lat = axis_of("lat", np.arange(5.0), {"units": "degrees_north"})
    lon = axis_of("lon", MANY_LONGITUDES, {"units": "degrees_east"})
    absent = np.zeros((5, 36), bool)
    absent[2, 3:9] = True
    coverage = Coverage((lat, lon), absent)
    header, arrays = coverage_record(coverage, (lat.take([0, 1, 3, 4]), lon))
    assert header["coverage"]["axes"][1] is None
    assert sorted(arrays) == ["absent", "whole_0"]
    again = coverage_from(through_a_file(header), arrays, (lat.take([0, 1, 3, 4]), lon))
    assert again is not None
    assert np.array_equal(again.absent, absent)
    assert again.axes[0].texts == lat.texts
    assert again.axes[1] is lon


@pytest.mark.parametrize(
    "other",
    [
        {"numbers": np.arange(1.0, 4.0)},
        {"written": np.arange(1.0, 4.0)},
        {"attrs": {"units": "m"}},
        {"dtype": "float32"},
        {"labels": ("a", "b", "c")},
    ],
)
def test_an_axis_that_differs_in_anything_is_stored(other: dict[str, Any]) -> None:
    own = axis_of("x", np.arange(3.0))
    whole = replace(own, **other)
    header, arrays = coverage_record(Coverage((whole,), np.zeros(1, bool)), (own,))
    assert header["coverage"]["axes"][0] is not None
    assert "whole_0" in arrays


# ---- arrays in fewer bytes


def test_a_record_is_narrowed_and_widened() -> None:
    arrays = {
        "core": np.array([0.5, 0.25]),
        "coordinates_0": np.arange(50.0),
        "frame_0": np.arange(50.0).reshape(25, 2),
        "absent": np.zeros(3, np.uint8),
    }
    header, narrowed = narrow_record({"name": "t"}, arrays)
    assert header["name"] == "t"
    assert sorted(header["narrowed"]) == ["coordinates_0", "core", "frame_0"]
    assert sorted(narrowed) == ["absent", "core", "frame_0"]  # equal steps are in the header
    again = widen_arrays(through_a_file(header), narrowed)
    assert sorted(again) == sorted(arrays)
    for name, array in arrays.items():
        assert again[name].dtype == ("f4" if name == "core" else array.dtype)  # the core is large
        np.testing.assert_array_equal(again[name], array)
    assert widen_arrays({}, arrays) == arrays


@pytest.mark.parametrize("count", [2, 5000], ids=["as it is", "exponents apart"])
def test_a_core_that_is_exact_in_single_precision_is_written_as_double(count: int) -> None:
    """The very bytes that a core of double precision has, and back as it was."""
    core = np.arange(count, dtype="f4") / 4
    exact = narrow_record({}, {"core": core}, {"core"})
    wide = narrow_record({}, {"core": core.astype("f8")})
    assert exact[0] == wide[0]
    np.testing.assert_array_equal(exact[1]["core"], wide[1]["core"])
    rounded, _ = narrow_record({}, {"core": core})
    assert rounded != wide[0]
    again = widen_arrays(*exact)["core"]
    assert again.dtype == np.float32
    np.testing.assert_array_equal(again, core)


@pytest.mark.parametrize(
    "value",
    [
        np.float32(0.1),
        np.int16(-7),
        np.bool_(True),
        np.array([1, 2], np.uint8),
        np.array([[0.5]]),
        {"a": [1, "b", None, True, 2.5], "c": {"d": np.float64(1.0)}},
        {"dtype": "not a number"},
    ],
)
def test_values_of_attributes_keep_their_type(value: Any) -> None:
    again = from_json(through_a_file(to_json(value)))
    assert type(again) is type(value)
    np.testing.assert_equal(again, value)
    assert getattr(again, "dtype", None) == getattr(value, "dtype", None)


def test_values_that_json_does_not_have_become_texts() -> None:
    assert to_json((1, np.array(["a"]), {2: 1 + 2j})) == [1, ["a"], {"2": "(1+2j)"}]


# ---- bounds


@pytest.mark.parametrize("bounds", [Bounds(0, 1), Bounds(-2.5), Bounds(high=0.1)])
def test_bounds_come_back_through_json(bounds):
    assert bounds_from(through_a_file({"bounds": bounds_record(bounds)})) == bounds


def test_files_of_older_versions_have_no_bounds():
    assert bounds_from({}) is None


@pytest.mark.parametrize("record", [[1, 0], [0], "wide", [None, "x"]])
def test_bounds_that_cannot_be_are_refused(record):
    with pytest.raises(ValueError, match="ounds"):
        bounds_from({"bounds": record})


# ---- styles

PACKING = Packing("int16", {"scale_factor": np.float32(0.01), "_FillValue": np.int16(-9)})
LONG = np.arange(40.0)
COMPANIONS = {
    "height": Companion((), np.asarray(2.0), {"units": "m"}),
    "crs": Companion((), np.asarray(np.int32(1)), {"a": np.float32(6.4)}),
    "name": Companion(("x",), np.array(["a", "bé"])),
    "code": Companion(("x",), np.array([b"a", b"bc"])),
    "label": Companion((), np.asarray("one")),
    "short": Companion(("t",), np.array([1, 2], "i2")),
    "holes": Companion(("t",), np.array([1.0, np.nan], "f4")),
    "long": Companion(("t", "x"), np.stack([LONG, -LONG], 1).astype("f4")),
    "long_holes": Companion(("t",), np.where(LONG > 3, LONG, np.nan)),
    "bytes": Companion(("t",), np.arange(40, dtype="u1")),
    "none": Companion(("t",), np.empty(0)),
}
STYLE = Style(
    "float32",
    -999.0,
    ("_FillValue", "missing_value"),
    PACKING,
    {"title": "a", "history": "b"},
    ("time",),
    "crs: x y",
    COMPANIONS,
    {"lat": ("bounds", "lat_bnds")},
    {"t": LONG, "x": np.array([0.5, 1.5]), "site": np.array(["a", "b"])},
)


def style_again(style: Style, axes: Any = ()) -> Style:
    header, arrays = style_record(style, axes)
    assert not any(array.dtype.hasobject for array in arrays.values())
    finite = [a for a in arrays.values() if a.dtype.kind == "f"]
    assert all(np.isfinite(array).all() for array in finite)  # a model file refuses others
    return style_from(through_a_file(header), arrays, axes)


def test_a_style_comes_back() -> None:
    again = style_again(STYLE)
    for name, one in COMPANIONS.items():
        found = again.companions[name]
        assert found.values.dtype == one.values.dtype, name
        assert found.values.shape == one.values.shape, name
        np.testing.assert_array_equal(found.values, one.values)
        assert (found.dims, found.attrs) == (one.dims, one.attrs)
    assert {k: v.tolist() for k, v in again.coordinates.items()} == {
        k: v.tolist() for k, v in STYLE.coordinates.items()
    }
    plain = [Style(**{**vars(s), "companions": {}, "coordinates": {}}) for s in (again, STYLE)]
    assert plain[0] == plain[1]
    assert type(again.packing.attrs["scale_factor"]) is np.float32  # type: ignore[union-attr]


def test_long_arrays_are_not_in_the_header() -> None:
    header, arrays = style_record(STYLE, ())
    assert len(json.dumps(header)) < 3000
    assert sum(array.size for array in arrays.values()) > 200


def test_a_style_of_an_older_program_is_read() -> None:
    old = {
        "dtype": "float32",
        "fill": -9.0,
        "global_attrs": {"title": "a"},
        "grid_mapping": "crs",
        "grid_mapping_attrs": {"grid_mapping_name": "mercator"},
    }
    found = style_from(old, {}, [axis_of("x", [1.0, 2.0])])
    assert (found.dtype, found.fill, found.marks) == ("float32", -9.0, ("_FillValue",))
    assert found.companions["crs"].attrs == {"grid_mapping_name": "mercator"}
    assert found.companions["crs"].dims == ()
    assert found.coordinates["x"].tolist() == [1.0, 2.0]
    assert style_from({**old, "grid_mapping": None}, {}, []).companions == {}


def test_a_style_without_coordinates_has_those_of_the_model() -> None:
    assert style_again(Style(), [axis_of("x", [1.0])]).coordinates["x"].tolist() == [1.0]
    known = style_again(Style(coordinates={"y": np.arange(2.0)}), [axis_of("x", [1.0])])
    assert list(known.coordinates) == ["y"]


def test_coordinates_of_the_axes_are_not_stored_again() -> None:
    axes = [axis_of("t", LONG), text_axis("site", ["a", "b"]), axis_of("x", [0.5, 1.0])]
    header, arrays = style_record(STYLE, axes)
    assert [header["coordinates"][dim] is None for dim in ("t", "x", "site")] == [True, False, True]
    assert not any(name.startswith("source_coordinates") for name in arrays)
    again = style_again(STYLE, axes)
    for dim, values in STYLE.coordinates.items():
        assert again.coordinates[dim].dtype == values.dtype
        np.testing.assert_array_equal(again.coordinates[dim], values)
    with pytest.raises(KeyError):
        style_from(header, arrays, axes[1:])


@pytest.mark.parametrize("damage", ["size", "type", "gone", "key"])
def test_a_damaged_style_is_refused(damage: str) -> None:
    header, arrays = style_record(STYLE, ())
    name = header["companions"]["long"]["values"]["array"]
    if damage == "size":
        arrays[name] = arrays[name][:3]
    elif damage == "type":
        arrays[name] = arrays[name].astype("f8")
    elif damage == "gone":
        del arrays[name]
    else:
        header["colour"] = "red"
    with pytest.raises((KeyError, ValueError)):
        style_from(header, arrays, ())


def test_a_spline_with_pieces_comes_back_and_wrong_pieces_are_refused() -> None:
    kernel = Kernel("linear", 4.0, errors="matern32", pieces=(Piece("cubic", 3.0, 4.0),))
    levels = [Level("x", KERNELS[0], 1e-3), Level("t", kernel, 0.0)]
    cascade = fit_cascade(SMOOTH, [X, T], levels)
    header, arrays = cascade_record(cascade)
    read = cascade_from(through_a_file(header), arrays)
    assert read.levels == cascade.levels
    assert np.array_equal(read.predict(NEW), cascade.predict(NEW))
    for pieces in ([], [["quintic", 3.0, 4.0]], [["cubic", 4.0, 3.0]]):
        wrong = through_a_file(header)
        wrong["levels"][1]["pieces"] = pieces
        with pytest.raises(ValueError, match=r"pieces"):
            cascade_from(wrong, arrays)
