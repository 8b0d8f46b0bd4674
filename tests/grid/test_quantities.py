"""Directions and codes are refused, whatever the size of the grid; other values pass."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import DkrlsError, check, fill, fit, open_grid, regrid, validate
from dkrls_cli.grid.quantities import (
    MarkCounts,
    codes_of,
    holds_codes,
    mark_note,
    refuse_no_averages,
    turn_of,
)
from dkrls_cli.grid.style import Packing

FROM = {"standard_name": "wind_from_direction", "units": "degree"}
CODES = {"flag_values": np.array([1, 2, 9], np.int8), "flag_meanings": "wood water town"}


def directions(attrs: dict[str, Any], offset: float = 340.0) -> xr.DataArray:
    values = np.add.outer(np.arange(8.0) * 3, np.arange(9.0) * 2)
    return xr.DataArray((values + offset) % 360, dims=("y", "x"), name="d", attrs=attrs)


@pytest.mark.parametrize(
    ("name", "attrs", "turn"),
    [
        ("d", FROM, 360.0),
        ("d", {"standard_name": "sea_water_velocity_to_direction", "units": "degrees"}, 360.0),
        ("d", {"standard_name": "direction_of_sea_ice_velocity", "units": "radian"}, 2 * math.pi),
        ("d", {"standard_name": "solar_azimuth_angle", "units": "degree"}, 360.0),
        ("mwd", {"long_name": "Mean wave direction", "units": "Degree true"}, 360.0),
        ("wind_direction", {}, 360.0),
        ("M2_phase", {"units": "degrees"}, 360.0),
        ("wind_direction", {"units": "m s-1"}, None),  # a component
        ("d", {"standard_name": "sea_surface_wave_directional_spread", "units": "degree"}, None),
        ("d", {"long_name": "standard deviation of wind direction", "units": "degree"}, None),
        ("d", {"standard_name": "air_temperature", "units": "degree_Celsius"}, None),
        ("t", {"units": "degrees"}, None),
        ("wind_direction", {"units": "°"}, 360.0),
        ("wind_direction", {"units": "degrees clockwise from true north (0-360)"}, 360.0),
        ("dir", {"long_name": "direction of the highest wind speed", "units": "rad"}, 2 * math.pi),
        ("aspect_ratio", {}, None),
        ("direction_count", {}, None),
        ("phase_speed", {"units": "degrees"}, None),
        ("phase", {"units": "degree s-1"}, None),
        ("phase", {"units": "deg s**-1"}, None),
        ("phase", {"units": "rad/s"}, None),
        ("heading", {"units": "degrees per hour"}, None),
        ("t", {"long_name": "soil temperature, north aspect", "units": "degC"}, None),
        ("t", {"long_name": "soil temperature, north aspect", "units": "Degrees Celsius"}, None),
        ("flux", {"long_name": "heading", "units": "radiance"}, None),
    ],
)
def test_directions_are_told_by_names_and_units(
    name: str, attrs: dict[str, Any], turn: float | None
) -> None:
    assert turn_of(name, attrs, 0.0, 300.0) == turn


@pytest.mark.parametrize(("least", "largest"), [(-180.0, 180.0), (0.0, 360.0)])
def test_without_units_directions_lie_within_a_turn(least: float, largest: float) -> None:
    assert turn_of("direction", {}, least, largest) == 360.0
    assert turn_of("direction", {}, -181.0, largest) is None
    assert turn_of("direction", {}, least, 361.0) is None


def test_directions_within_half_a_turn_are_numbers() -> None:
    refuse_no_averages("d", FROM, 20.0, 200.0)
    with pytest.raises(DkrlsError, match=r"directions from 20 to 201, .*sine and cosine"):
        refuse_no_averages("d", FROM, 20.0, 201.0)
    fit(directions(FROM, offset=20.0))


@pytest.mark.parametrize("ends", [(1.0, 5.0), (0.0, 9.0), (2.0, 2.0)])
def test_codes_at_either_end_are_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(DkrlsError, match="'kind' holds codes"):
        refuse_no_averages("kind", CODES, *ends)


def test_measurements_whose_codes_are_missing_pass() -> None:
    refuse_no_averages("ice", {"flag_values": np.array([251, 252], np.uint8)}, 0.0, 100.0)
    refuse_no_averages("ice", CODES, math.nan, math.nan)


def test_codes_are_told_in_packed_numbers() -> None:
    packing = Packing("uint8", {"scale_factor": 0.01, "add_offset": 1.0})
    attrs = {"flag_masks": np.array([251], np.uint8)}
    np.testing.assert_allclose(codes_of(attrs, packing), [3.51])
    with pytest.raises(DkrlsError, match="codes"):
        refuse_no_averages("ice", attrs, 0.0, float(np.float32(3.51)), packing)
    refuse_no_averages("ice", attrs, 0.0, 251.0, packing)


@pytest.mark.parametrize(
    ("masks", "ends", "refused"),
    [
        ([1, 2, 4], (0.0, 7.0), True),  # all flags are set somewhere, none elsewhere
        ([1, 2, 4], (3.0, 6.0), True),
        ([1, 2, 4], (0.0, 11.0), False),
        ([1, 2, 4], (-3.0, 3.0), False),
        ([1, 2, 4], (0.0, 2.5), False),
        ([1, 2, 4], (math.nan, math.nan), False),
        ([1, 2, 4], (0.0, math.inf), False),
        ([251], (0.0, 99.0), False),  # a code of many bits, and percentages that have some of them
        ([], (0.0, 3.0), False),
    ],
)
def test_sums_of_flags_are_codes(
    masks: list[int], ends: tuple[float, float], refused: bool
) -> None:
    attrs = {"flag_masks": np.array(masks, np.int16)}
    assert holds_codes(attrs, *ends) == refused
    packing = Packing("uint8", {"scale_factor": 0.5, "add_offset": 1.0})
    packed = [end * 0.5 + 1.0 for end in ends]
    assert holds_codes(attrs, packed[0], packed[1], packing) == refused


def test_a_code_is_told_to_the_digits_of_single_precision() -> None:
    assert holds_codes({"flag_values": [0.1]}, float(np.float32(0.1)), 0.5)
    assert not holds_codes({"flag_values": [0]}, 1e-7, 0.5)
    assert not holds_codes({"flag_values": [100]}, 0.0, 100.001)


def test_codes_of_texts_are_none() -> None:
    assert codes_of({"flag_values": "1, 2"}).size == 0


@pytest.mark.parametrize(
    "act",
    [
        fit,
        check,
        lambda data: fill(data.where(data != data[3, 3])),
        lambda data: regrid(data, {"x": [0.5, 1.5]}),
        lambda data: validate(data, holdout=0.2),
    ],
    ids=["fit", "check", "fill", "regrid", "validate"],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_every_way_to_a_model_refuses_directions(act: Any, chunked: bool) -> None:
    data = directions(FROM)
    with pytest.raises(DkrlsError, match="'d' holds directions"):
        act(data.chunk(y=4) if chunked else data)


def test_new_slices_that_go_round_are_refused() -> None:
    before = directions(FROM, offset=320.0).isel(x=slice(0, 2)).assign_coords(x=[0.0, 1.0])
    model, new = fit(before), (before + 4).assign_coords(x=[2.0, 3.0])
    model.update(new)
    with pytest.raises(DkrlsError, match="'d' holds directions from 4 to 343"):
        model.update((new + 40) % 360)


def test_codes_in_new_slices_are_refused() -> None:
    attrs = {"flag_values": np.array([251, 252], np.uint8), "units": "percent"}
    before = directions(attrs, offset=20.0).assign_coords(x=np.arange(9.0))
    model, new = fit(before), (before + 4).isel(x=slice(0, 2)).assign_coords(x=[9.0, 10.0])
    assert model.update(new).shape == (8, 11)
    with pytest.raises(DkrlsError, match=r"'d' holds codes.* from 24 to 251"):
        model.update(new.where(new < 30, 251.0))


def test_a_file_of_codes_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "kind.nc"
    kinds = xr.DataArray(np.eye(6, dtype=np.int8) + np.int8(1), dims=("y", "x"), attrs=CODES)
    kinds.to_dataset(name="kind").to_netcdf(path)
    with pytest.raises(DkrlsError, match=r"'kind' holds codes.* from 1 to 2"):
        fit(open_grid(str(path)))


@pytest.mark.parametrize(
    "mark", [-9999.0, -99.9, 999.0, -32768.0, -(2.0**31), 1e20, 9.969209968386869e36]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_usual_marks_far_from_all_other_values_are_warned_of(mark: float, dtype: str) -> None:
    values = np.array([[12.0, mark, 14.0], [mark, np.nan, 13.0]], dtype)
    assert mark_note("t", values).startswith(f"2 cells of 't' hold {mark:g}, and all others 12 to")
    assert mark_note("t", values[:1]).startswith(f"1 cell of 't' holds {mark:g}, ")


@pytest.mark.parametrize(
    "values",
    [
        [12.0, 14.0, -50.0],  # far away, but no mark
        [-9999.0, -3000.0, 4000.0],  # heights: as far from each other as from the mark
        [-9999.0, np.nan, -9999.0],  # nothing else to compare with
        [np.nan, np.nan],
    ],
)
def test_other_values_are_no_marks(values: list[float]) -> None:
    assert mark_note("t", np.array(values)) == ""


@pytest.mark.parametrize("mark", [-999.0, -9999.0, 1e20])
def test_marks_among_coordinates_are_warned_of(mark: float) -> None:
    note = mark_note("depth", np.array([0.0, 5.0, mark, 20.0]), "coordinate")
    assert note.startswith(f"1 coordinate of 'depth' holds {mark:g}, and all others 0 to 20: if")
    assert note.endswith("marks missing coordinates, leave what is there out")
    assert mark_note("depth", np.array([0.0, mark, 20.0]), "coordinate") == ""  # too few to tell


def test_coordinates_that_grow_by_factors_are_no_marks() -> None:
    levels = np.array([1.0, 10.0, 100.0, 999.0])
    assert mark_note("level", levels, "coordinate") == ""
    assert mark_note("level", levels)


def test_a_mark_is_as_far_from_the_others_as_these_are_wide_and_farther() -> None:
    assert mark_note("t", np.array([-999.0, 0.0, 999.0])) == ""
    assert mark_note("t", np.array([-999.0, 0.0, 998.0])) != ""


def test_a_fit_warns_of_marks(tmp_path: Path) -> None:
    values = np.add.outer(np.arange(6.0), np.arange(7.0))
    values[2, 3] = -9999
    data = xr.DataArray(values, dims=("y", "x"), name="v")
    (note,) = [n for n in fit(data).origin["notes"] if "-9999" in n]
    assert "if that marks missing cells" in note
    assert not any("marks" in n for n in fit(data.where(data >= 0)).origin["notes"])


@pytest.mark.parametrize(
    "values",
    [
        [12.0, 14.5, 13.0, 9.0],
        [12.0, -9999.0, 13.0, -9999.0],
        [-9999.0, -9999.0, 13.0, 15.0],
        [1e20, 3.0, 1e20, -9999.0],
        [-9999.0, -9999.0, -9999.0, -9999.0],
        [-9000.0, -9999.0, 3.0, 4.0],
    ],
)
def test_marks_in_parts_are_those_of_all_values(values):
    counts = MarkCounts()
    for part in ([], values[:2], values[2:]):
        counts.add(np.array(part))
    assert counts.note("t") == mark_note("t", np.array(values))
