"""Grids filled in tiles, beside the same grids filled whole."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from tiled_grids import (
    EAST,
    NORTH,
    Sheet,
    bar_ratio,
    daily,
    draw_field,
    fill_both,
    settings,
    shrink,
    source_of,
)

from dkrls_cli.errors import ConvergenceError, InputError, SettingError
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.grid.style import Packing, Style
from dkrls_cli.model.fill import fill_grid
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling import planning
from dkrls_cli.model.tiling.fill import fill_in_tiles
from dkrls_cli.model.tiling.layout import Context
from dkrls_cli.model.tiling.planning import FillRequest
from dkrls_cli.model.tiling.solving import choose_model

SIGMAS = {"lat": 3.0, "lon": 3.0, "time": 4.0}
GIVEN = settings(SIGMAS, constant=1.0)
MAP = 42  # cells of a map of the daily grid


@pytest.fixture(autouse=True)
def small(monkeypatch):
    shrink(monkeypatch)


@pytest.fixture(scope="module")
def bars():
    """Error bars of the daily grid."""
    return fill_grid(as_grid(daily()), GIVEN, std=True).std


def test_tiles_are_within_a_tenth_of_the_error_bar_of_the_whole_grid(bars):
    whole, tiled, told = fill_both(daily(), GIVEN, 50 * MAP)
    assert told.layout.count > 1
    assert np.array_equal(whole.cells, tiled.cells)
    assert (
        told.left == whole.left == {"left as masked": 120, "left beyond the data along time": 120}
    )
    assert told.filled == whole.cells.sum()
    assert told.missing == np.isnan(whole.grid.values).sum() + told.filled
    ratio = bar_ratio(whole, tiled, bars)
    assert np.sqrt(np.mean(ratio**2)) < 0.05
    assert np.abs(ratio).max() < 0.3
    assert 0 < told.seams.worst < 0.1
    assert told.seams.count > 20
    assert not [note for note in told.notes if "no farther" in note]


@pytest.mark.slow
def test_more_context_is_nearer_to_the_whole_grid(bars, monkeypatch):
    errors = []
    for context in (Context(1, 2), Context(4, 12), Context(60, 60)):
        shrink(monkeypatch, (context,), usual=0)
        monkeypatch.setattr(planning, "_panel_bytes", lambda item, width, core, rest: core * rest)
        inexact = settings(SIGMAS, constant=1.0, accept_inexact=True)
        whole, tiled, told = fill_both(daily(), inexact, 57 * MAP + 20 * MAP)
        assert told.layout.count > 1
        errors.append(np.sqrt(np.mean(bar_ratio(whole, tiled, bars) ** 2)))
    assert errors[0] > 3 * errors[1] > 0
    assert errors[2] < 1e-5  # all data is seen by every tile


def test_tiles_that_see_only_what_is_near_fit_together(bars, monkeypatch):
    shrink(monkeypatch, (Context(4, 32, far=False),), usual=0)
    whole, tiled, told = fill_both(daily(), GIVEN, 30 * MAP)
    assert told.layout.count > 3
    assert [note for note in told.notes if "16 coordinates around them and no farther" in note]
    assert told.seams.worst < 0.1
    assert np.sqrt(np.mean(bar_ratio(whole, tiled, bars) ** 2)) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"max_gap": {"time": 3.0}},
        {"max_gap": {"time": 5.0, "lon": 2.0}},
        {"within": 1.0},
        {"within": {"time": 2.0, "lat": 2.0}},
        {"within": {"time": "1D"}, "mask": "always"},
        {"mask": "none"},
        {"mask": "none", "extrapolate": True},
    ],
    ids=str,
)
def test_rules_choose_the_cells_that_they_choose_on_the_whole_grid(asked):
    whole, tiled, told = fill_both(daily(), settings(SIGMAS), 50 * MAP, **asked)
    assert told.layout.count > 1
    assert np.array_equal(whole.cells, tiled.cells)
    assert told.left == whole.left
    assert np.abs(tiled.values - whole.grid.values)[whole.cells].max() < 0.02


def test_masks_may_be_given():
    data = daily()
    land = data.isel(time=0, drop=True).copy(data=np.arange(42.0).reshape(6, 7) % 5)
    each = data.copy(data=(np.arange(data.size).reshape(data.shape) % 3 > 0) * 1.0)
    for mask in (land, each):
        whole, tiled, told = fill_both(data, settings(SIGMAS), 50 * MAP, mask=mask)
        assert np.array_equal(whole.cells, tiled.cells)
        assert told.left == whole.left


def test_the_mask_of_the_first_slice_is_that_of_the_whole_grid():
    data = daily()[2:]
    whole, tiled, told = fill_both(data, settings(SIGMAS), 50 * MAP, mask="first")
    assert np.array_equal(whole.cells, tiled.cells)
    assert told.left == whole.left
    turned = xr.DataArray(data.values.transpose(1, 2, 0), dims=["y", "x", "z"], name="v")
    other = settings({"z": 4.0, "x": 3.0, "y": 3.0})  # the first slice of y, tiles along z
    whole, tiled, told = fill_both(turned, other, 50 * MAP, mask="first")
    assert told.layout.outer.axis == 2
    assert np.array_equal(whole.cells, tiled.cells)


@pytest.mark.slow
def test_bounds_hold_in_tiles_as_in_the_whole_grid():
    data = daily(seed=3)
    low = float(data.min()) + 0.0
    bounded = settings(SIGMAS, bounds=(low, None))
    whole, tiled, _ = fill_both(data, bounded, 50 * MAP, std=True)
    assert (tiled.values[whole.cells] == low).sum() == (whole.grid.values[whole.cells] == low).sum()
    assert tiled.values[tiled.cells].min() >= low
    with pytest.raises(SettingError, match=r"1 of \d+ values lie outside, from"):
        fill_both(data, settings(SIGMAS, bounds=(low + 1e-3, None)), 50 * MAP)
    data.attrs["valid_min"] = low + 1e-3
    told = fill_both(data, settings(SIGMAS), 50 * MAP)[2]
    assert any("1 of" in note and "not kept" in note for note in told.notes)
    del data.attrs["valid_min"]
    packed = Style(packing=Packing("int16", {"scale_factor": 0.1, "valid_min": 9.0}))
    told = fill_both(replace(as_grid(data), style=packed), settings(SIGMAS), 50 * MAP)[2]
    assert any(note.startswith("valid_min 9.0 of") and "not used" in note for note in told.notes)


def test_standard_errors_are_those_of_the_whole_grid_but_for_what_tiles_do_not_see(bars):
    whole, tiled, _ = fill_both(daily(), GIVEN, 50 * MAP, std=True)
    ratio = tiled.std[whole.cells] / whole.std[whole.cells]
    assert 0.97 < np.median(ratio) < 1.05
    assert (tiled.std[~np.isnan(daily().values)] == 0).all()
    left = np.isnan(daily().values) & ~whole.cells
    assert np.isnan(tiled.std[left]).all()
    most = float(np.median(bars[whole.cells]))
    less, fewer, told = fill_both(daily(), GIVEN, 50 * MAP, max_std=most)
    assert (less.cells != fewer.cells).mean() < 0.05
    (count,) = (n for reason, n in told.left.items() if "standard error" in reason)
    assert count == tiled.cells.sum() - fewer.cells.sum()
    with pytest.raises(SettingError, match="largest standard error 0"):
        fill_both(daily(), GIVEN, 50 * MAP, max_std=0.0)


def fill_in(data, chosen, limit, **asked):
    grid = as_grid(data)
    return fill_in_tiles(source_of(grid), chosen, FillRequest(**asked), Sheet(grid), limit)


def hole(long: int) -> xr.DataArray:
    data = daily(120)
    data[40 : 40 + long, 2:5, 2:6] = np.nan
    return data


@pytest.mark.slow
def test_a_hole_larger_than_tiles_has_the_answers_of_the_whole_grid(monkeypatch):
    data = hole(45)
    shrink(monkeypatch, (Context(16, 64),), usual=0)
    whole, tiled, told = fill_both(data, GIVEN, 100 * MAP, std=True)
    cores = [stop - start for start, stop in told.layout.outer.cores]
    assert max(cores) < 40
    inside = np.zeros(data.shape, bool)
    inside[40:85, 2:5, 2:6] = True
    inside &= whole.cells
    ratio = (tiled.values - whole.grid.values)[inside] / whole.std[inside]
    assert np.sqrt(np.mean(ratio**2)) < 0.1


@pytest.mark.slow
def test_tiles_that_do_not_fit_together_see_more_or_are_refused(monkeypatch):
    data = hole(45)
    few = (Context(1, 1), Context(1, 1), Context(16, 60), Context(60, 120))
    shrink(monkeypatch, few, usual=1)
    _, tiled, told = fill_both(data, GIVEN, 100 * MAP)
    assert tiled.restarts > 1
    assert told.layout.context in few[2:]
    assert told.seams.fit
    shrink(monkeypatch, few[:2], usual=1)
    with pytest.raises(ConvergenceError, match="of the error bar where they meet") as caught:
        fill_both(data, GIVEN, 100 * MAP)
    assert caught.value.setting == "max_memory accept_inexact"
    inexact = settings(SIGMAS, constant=1.0, accept_inexact=True)
    warned = fill_both(data, inexact, 100 * MAP)[2]
    assert "tiles differ by" in warned.warnings[0]


def world(rows=40, columns=48, seed=0) -> xr.DataArray:
    """Return a map whose longitudes go round the globe."""
    values = draw_field((rows, columns), (4.0, 4.0), constant=0.0, seed=seed)
    values += 2 * np.cos(np.arange(columns) * 2 * np.pi / columns)
    values[np.random.default_rng(2).random(values.shape) < 0.4] = np.nan
    values[5:11, 44:] = values[5:11, :4] = np.nan  # across the seam of the ring
    coords = {
        "lat": ("lat", np.linspace(-58, 58, rows), NORTH),
        "lon": ("lon", np.arange(columns) * 360.0 / columns, EAST),
    }
    return xr.DataArray(values, coords, ["lat", "lon"], "height")


def test_a_map_is_cut_along_both_axes_and_round_the_ring():
    given = settings({"lat": 8.0, "lon": 22.0}, periods={"lon": 360.0})
    whole, tiled, told = fill_both(world(), given, 33 * 33, mask="none", std=True)
    assert len(told.layout.outer.cores) > 1
    assert len(told.layout.inner.cores) > 1
    assert np.array_equal(whole.cells, tiled.cells)
    ratio = bar_ratio(whole, tiled, whole.std)
    assert np.sqrt(np.mean(ratio**2)) < 0.02
    ring = np.ix_(np.arange(5, 11), [0, 1, 46, 47])
    seam = np.abs(tiled.values - whole.grid.values)[ring] / whole.std[ring]
    assert seam.max() < 0.1
    assert told.seams.count > 100


def test_a_ring_that_lost_longitudes_is_cut_as_a_line():
    ring = world()
    ring[:, :3] = np.nan
    given = settings({"lat": 8.0, "lon": 22.0})
    whole, tiled, told = fill_both(ring, given, 30 * 33, mask="none")
    assert told.layout.inner is not None
    assert np.array_equal(whole.cells, tiled.cells)
    assert told.left == whole.left == {"left beyond the data along lon": 120}


def test_a_column_that_repeats_a_longitude_is_filled_like_its_twin():
    ring = world()
    again = xr.concat([ring, ring.isel(lon=[0]).assign_coords(lon=[360.0])], "lon")
    again.lon.attrs.update(EAST)
    again[3, 0], again[3, -1] = 7.0, np.nan
    given = settings({"lat": 8.0, "lon": 22.0}, periods={"lon": 360.0})
    whole, tiled, told = fill_both(again, given, 33 * 48, mask="none")
    assert told.layout.axes == (0,)
    assert np.array_equal(whole.cells, tiled.cells)
    assert tiled.values[3, -1] == 7.0
    assert np.abs(tiled.values - whole.grid.values)[whole.cells].max() < 0.03


def test_land_of_a_map_is_not_told_by_a_part_of_it():
    with pytest.raises(InputError, match="told by their shape") as caught:
        fill_in(world(), settings({"lat": 8.0, "lon": 22.0}), 33 * 33)
    assert caught.value.setting == "mask within"
    sea = world().rename("sst")
    told = fill_in(sea, settings({"lat": 8.0, "lon": 22.0}), 33 * 33)
    assert told.filled == 0
    assert "of the sea" in told.note
    near = fill_both(world(), settings({"lat": 8.0, "lon": 22.0}), 33 * 33, within=2)
    assert np.array_equal(near[0].cells, near[1].cells)
    assert near[2].left == near[0].left


@pytest.mark.slow
def test_groups_are_for_dimensions_that_are_not_cut():
    with pytest.raises(SettingError, match="A group with 'lat' needs that dimension whole"):
        fill_in(world(), Settings(group="lat,lon"), 33 * 33, mask="none")
    small = {"ridge": 0.01, "sigma": {"time": 4.0}, "kernel": {"time": "matern52"}}
    days = Settings(**small, group="lat,lon", accept_inexact=True)
    told = fill_in(daily(), days, 50 * MAP)  # maps are whole
    assert told.model.choice.setting.grouping.axes == ((1, 2),)


def test_that_no_group_is_tried_is_told(monkeypatch):
    """What is chosen is given, as it takes time."""
    given = settings({"lat": 8.0, "lon": 22.0}, periods={"lon": 360.0})

    def choose(sample, plan, *rest, **others):
        return choose_model(sample, plan_fit(sample.axes, given, complete=False), *rest, **others)

    monkeypatch.setattr("dkrls_cli.model.tiling.fill.choose_model", choose)
    told = fill_in(world(), Settings(), 33 * 33, mask="none")
    assert told.notes == ("tiles cut lat and lon: dimensions with one distance are not tried",)


@pytest.mark.slow
def test_settings_are_chosen_as_for_the_whole_grid():
    data = daily(90, seed=5)
    whole, tiled, told = fill_both(data, Settings(), 70 * MAP, std=True)
    assert told.layout.count > 1
    kernels = {level.name: level.kernel for level in whole.model.levels}
    assert told.model.choice.setting.kernels == tuple(kernels[dim] for dim in data.dims)
    assert told.model.choice.setting.ridge == whole.model.joint_ridge
    assert told.model.bars.error == pytest.approx(whole.model.errors[0])
    assert np.sqrt(np.mean(bar_ratio(whole, tiled, whole.std) ** 2)) < 0.1


def test_a_part_of_a_grid_tells_its_settings(monkeypatch):
    """The part has the gaps, wherever they are."""
    data = daily(90).fillna(5.0)
    data[60:64, 2:4] = np.nan
    monkeypatch.setattr("dkrls_cli.model.tiling.sampling._MOST_CELLS", 24 * MAP)
    whole, tiled, told = fill_both(data, settings(SIGMAS), 70 * MAP)
    assert np.array_equal(whole.cells, tiled.cells)
    assert told.filled == 4 * 2 * 7
    assert told.model.choice.error > 0


@pytest.mark.slow
def test_a_tile_without_data_is_answered_by_its_context(monkeypatch):
    data = daily(120)
    data[50:75] = np.nan
    shrink(monkeypatch, (Context(8, 32), Context(16, 64), Context(24, 90)), usual=0)
    with pytest.raises(ConvergenceError, match="where they meet"):
        fill_in(data, GIVEN, 66 * MAP)
    whole, tiled, told = fill_both(data, GIVEN, 84 * MAP, std=True)
    assert tiled.restarts > 1
    assert any(start >= 50 and stop <= 75 for start, stop in told.layout.outer.cores)
    assert np.array_equal(whole.cells, tiled.cells)
    assert np.sqrt(np.mean(bar_ratio(whole, tiled, whole.std) ** 2)) < 0.1


def test_a_tile_that_sees_no_data_at_all_is_refused(monkeypatch):
    values = np.full((30, 30), np.nan)
    values[:3] = values[:, :3] = 1.0
    values[0, 0] = 2.0
    data = xr.DataArray(values, dims=["y", "x"], name="v")
    shrink(monkeypatch, (Context(1, 1),) * 3, usual=1)
    with pytest.raises(InputError, match="sees no data at all"):
        fill_in(data, settings({"y": 2.0, "x": 2.0}), 14 * 14, mask="none")


@pytest.mark.parametrize("level", [0.0, 300.0])
def test_a_constant_grid_is_filled_with_its_constant(level):
    _, tiled, told = fill_both(daily() * 0.0 + level, settings(SIGMAS), 50 * MAP)
    assert told.seams.fit
    assert tiled.values[tiled.cells] == pytest.approx(level, rel=1e-9)


def test_tiles_that_cannot_be_compared_are_told():
    data = daily().fillna(5.0)
    data[5, 2, 2] = np.nan
    told = fill_in(data, settings(SIGMAS), 50 * MAP)
    assert told.layout.count > 1
    assert told.layout.context.near > 4  # more than the usual
    assert told.seams.count == 0
    assert told.notes[-1] == "tiles could be compared in 0 cells only, where they meet"


def test_a_complete_grid_stays_as_it_is():
    data = daily().fillna(1.0)
    grid = as_grid(data)
    told = fill_in_tiles(
        source_of(grid), GIVEN, FillRequest(std=True), sheet := Sheet(grid), 50 * MAP
    )
    assert (told.filled, told.missing, told.layout) == (0, 0, None)
    assert np.array_equal(sheet.values, grid.values)
    assert (sheet.std == 0).all()


def test_errors_of_observations_and_grids_without_data_are_refused():
    grid = as_grid(daily())
    with_errors = source_of(grid)
    object.__setattr__(with_errors, "errors", lambda: 0.1)
    with pytest.raises(InputError, match="Errors of the observations need the whole grid"):
        fill_in_tiles(with_errors, GIVEN, FillRequest(), Sheet(grid), 50 * MAP)
    empty = as_grid(daily() * np.nan)
    with pytest.raises(InputError, match="All 2520 values are missing"):
        fill_in_tiles(source_of(empty), GIVEN, FillRequest(), Sheet(empty), 50 * MAP)


def test_solves_that_do_not_end_are_an_error(monkeypatch):
    monkeypatch.setattr("dkrls_cli.model.tiling.solving.SOLVE_LIMIT", 1)
    with pytest.raises(ConvergenceError, match="solved for to"):
        fill_in(daily(), GIVEN, 50 * MAP)


def test_single_precision_stays_single():
    whole, tiled, _ = fill_both(daily(dtype="float32"), settings(SIGMAS), 50 * MAP)
    new = tiled.values[tiled.cells]
    assert np.array_equal(new, new.astype("f4"))
    assert np.array_equal(whole.cells, tiled.cells)
    assert np.abs(tiled.values - whole.grid.values)[whole.cells].max() < 0.02
