"""Error bars in records: every kind comes back, and wrong ones are refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kept_records import fitted, through_a_file

from dkrls_cli.cascade.calibration.folds import BetweenScale
from dkrls_cli.cascade.calibration.local import LocalScale
from dkrls_cli.cascade.errorbars.bars import Bars
from dkrls_cli.cascade.errorbars.calibrate import calibrate
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.cascade.errorbars.levels import FilledBars, LevelBars
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.field import NO_GROUPS, Grouping
from dkrls_cli.model.records.bars import bars_from, bars_record, filled_from

RNG = np.random.default_rng(3)


def returned(bars: Bars, shape: tuple[int, ...] = (30, 20), joint: bool = False) -> Bars:
    header, arrays = bars_record(bars)
    return bars_from(through_a_file(header), arrays, shape, joint)


def test_bars_of_levels_come_back() -> None:
    bars = calibrate(fitted())
    again = returned(bars)
    assert isinstance(again, LevelBars)
    for name in ("errors", "scales", "factors"):
        np.testing.assert_array_equal(getattr(again, name), getattr(bars, name))


@pytest.mark.parametrize("name", ["local", "growth"])
def test_scales_by_place_come_back(name: str) -> None:
    scale = LocalScale(np.array([0.1, 0.5, 7.0]), np.array([0.3, 1.0, 4.0]))
    bars = replace(calibrate(fitted()), local=(), growth=())
    again = returned(replace(bars, **{name: (None, scale)}))
    assert isinstance(again, LevelBars)
    assert {"local": again.growth, "growth": again.local}[name] == ()
    none, found = getattr(again, name)
    assert none is None
    assert found is not None
    np.testing.assert_array_equal(found.places, scale.places)
    np.testing.assert_array_equal(found.factors, scale.factors)


def test_files_of_older_versions_have_no_local_scales() -> None:
    header, arrays = bars_record(replace(calibrate(fitted()), local=(), growth=()))
    assert {"local", "growth"}.isdisjoint(header)
    again = bars_from(through_a_file(header), arrays, (30, 20), False)
    assert isinstance(again, LevelBars)
    assert again.local == again.growth == ()


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
