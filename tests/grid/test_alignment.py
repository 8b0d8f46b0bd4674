"""New slices are brought into the order of a model, and refused by name where they differ."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.alignment import align_slices, coordinates_on, plain_slices, rename_like
from dkrls_cli.grid.axes import Axis, axis_of, index_axis, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.grid import Grid

DAYS = TimeScale("days since 2000-01-01")
EAST = {"units": "degrees_east"}
TIME = Axis("time", np.arange(3.0), time=DAYS)
LAT = axis_of("lat", [10.0, 20.0, 30.0, 40.0], {"units": "degrees_north"})
SITE = text_axis("site", ["p", "q"])
MODEL = (TIME, LAT, SITE)
ATTRS = {"units": "K"}


def slices(*axes, name="t", attrs=ATTRS):
    shape = [axis.size for axis in axes]
    return Grid(np.arange(float(np.prod(shape))).reshape(shape), axes, name, attrs)


def later(*days):
    return replace(TIME, numbers=np.array(days, float))


@given(st.permutations([0, 1, 2]), st.permutations([0, 1, 2, 3]), st.permutations([0, 1]))
def test_any_order_of_dimensions_and_coordinates_gives_the_same_slices(dims, lats, sites):
    straight = slices(later(3, 4), LAT, SITE)
    axes = (later(3, 4), LAT.take(lats), text_axis("site", [SITE.texts[i] for i in sites]))
    values = straight.values[:, lats][:, :, sites].transpose(dims)
    mixed = Grid(values, tuple(axes[dim] for dim in dims), "t", ATTRS)
    found, new = align_slices(mixed, MODEL, 0, ATTRS)
    np.testing.assert_array_equal(found, straight.values)
    assert new.numbers.tolist() == [3.0, 4.0]


def test_dates_count_in_the_units_of_the_model():
    hours = Axis("time", np.array([72.0, 84.0]), time=TimeScale("hours since 2000-01-01"))
    _, new = align_slices(slices(hours, LAT, SITE), MODEL, 0, ATTRS)
    assert new.numbers.tolist() == [3.0, 3.5]
    assert new.time == DAYS


def test_longitudes_of_another_convention_are_the_same_places():
    own = axis_of("lon", [-20.0, -10.0, 0.0, 10.0], EAST)
    theirs = axis_of("lon", [0.0, 10.0, 340.0, 350.0], EAST)
    found, _ = align_slices(slices(later(3), theirs), (TIME, own), 0, ATTRS)
    assert found.tolist() == [[2.0, 3.0, 0.0, 1.0]]


def test_single_precision_of_new_slices_is_enough():
    theirs = axis_of("x", np.array([0.3, 0.1], np.float32))
    own = axis_of("x", [0.1, 0.3])
    found, _ = align_slices(slices(later(3), theirs), (TIME, own), 0, ATTRS)
    assert found.tolist() == [[1.0, 0.0]]
    with pytest.raises(InputError, match=r"lack 0.1, 0.3 and have beyond"):
        align_slices(slices(later(3), axis_of("x", theirs.numbers)), (TIME, own), 0, ATTRS)


def test_new_labels_along_the_growing_axis_are_numbered_on():
    _, new = align_slices(
        slices(text_axis("site", ["r", "s"]), later(0, 1, 2)), (SITE, TIME), 0, ATTRS
    )
    assert new.numbers.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("axes", "attrs", "words"),
    [
        ((later(3), LAT), ATTRS, "have dimensions time, lat, the model time, lat, site"),
        (MODEL, {"units": "degC"}, "values of 't' are in 'degC', those of the model in 'K'"),
        ((later(3), index_axis("lat", 4), SITE), ATTRS, "no coordinates of 'lat', the model has"),
        (
            (replace(TIME, time=TimeScale(DAYS.units, "noleap")), LAT, SITE),
            ATTRS,
            "count 'time' by the calendar noleap, the model by standard",
        ),
        (
            (later(3), axis_of("lat", LAT.numbers, {"units": "m"}), SITE),
            ATTRS,
            "Coordinates of 'lat' are in 'degrees_north' here and in 'm' there",
        ),
        (
            (later(3), axis_of("lat", LAT.numbers, {"units": "furlong"}), SITE),
            ATTRS,
            "Coordinates of 'lat' are in 'degrees_north' here and in 'furlong' there",
        ),
        ((later(3), LAT.take([0, 1, 2]), SITE), ATTRS, "new slices lack 40.0."),
        (
            (later(3), axis_of("lat", [10.0, 20, 30, 40, 50]), SITE),
            ATTRS,
            "new slices have beyond the model's 50.0.",
        ),
        (
            (later(3), axis_of("lat", [10.0, 21, 30, 40]), SITE),
            ATTRS,
            "lack 20.0 and have beyond the model's 21.0",
        ),
        ((later(3), LAT, text_axis("site", ["p", "z"])), ATTRS, "lack q and have .* z"),
        (
            (later(3), axis_of("lat", [10.0, 20, 30, 40, 40]), SITE),
            ATTRS,
            "some coordinate of 'lat' twice",
        ),
        (
            (later(3), LAT, axis_of("site", [1.0, 2.0])),
            ATTRS,
            r"of another kind there \(numbers\) than here \(text labels\)",
        ),
        (
            (later(3), text_axis("lat", ["p", "q", "r", "s"]), SITE),
            ATTRS,
            r"of another kind there \(text labels\) than here \(degrees_north\)",
        ),
        ((later(np.nan), LAT, SITE), ATTRS, "A coordinate of 'time' is nan. Expected a finite"),
    ],
)
def test_what_differs_is_named(axes, attrs, words):
    with pytest.raises(InputError, match=words):
        align_slices(slices(*axes, attrs=attrs), MODEL, 0, ATTRS)


def test_numbers_that_count_time_are_those_of_one_calendar():
    def days(*numbers, **calendar):
        return axis_of("time", np.array(numbers), {"units": DAYS.units, **calendar})

    own = days(0.0, 1.0, calendar="365_day")
    _, new = align_slices(slices(days(2.0, calendar="noleap"), LAT), (own, LAT), 0, ATTRS)
    assert new.numbers.tolist() == [2.0]
    align_slices(slices(axis_of("time", [2.0]), LAT), (own, LAT), 0, ATTRS)  # no units, no calendar
    for theirs, name in ((days(2.0), "standard"), (days(2.0, calendar="360_day"), "360_day")):
        with pytest.raises(InputError, match=f"by the calendar {name}, the model by noleap"):
            align_slices(slices(theirs, LAT), (own, LAT), 0, ATTRS)


def test_units_that_one_of_both_lacks_are_not_compared():
    for own, theirs in (({}, ATTRS), (ATTRS, {})):
        align_slices(slices(later(3), LAT, SITE, attrs=theirs), MODEL, 0, own)
    lon = axis_of("lon", [0.0, 10.0], EAST)
    degrees = axis_of("lon", [0.0, 10.0], {"units": "degrees"})
    align_slices(slices(later(3), degrees), (TIME, lon), 0, ATTRS)


def test_values_in_another_spelling_of_the_units_are_taken():
    align_slices(slices(later(3), LAT, SITE, attrs={"units": "kelvin"}), MODEL, 0, ATTRS)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1]])
@pytest.mark.parametrize(
    ("units", "size"),
    [("radians", np.pi / 180), ("degree_N", 1.0), ("degrees", 1.0), ("degrees_south", -1.0)],
)
def test_coordinates_in_other_units_are_those_of_the_model(units, size, order):
    straight = slices(later(3), LAT, SITE)
    lat = axis_of("lat", LAT.numbers[order] * size, {"units": units})
    mixed = replace(straight, values=straight.values[:, order], axes=(later(3), lat, SITE))
    np.testing.assert_array_equal(align_slices(mixed, MODEL, 0, ATTRS)[0], straight.values)


def test_the_growing_axis_goes_on_in_the_units_of_the_model():
    own = axis_of("lead", [0.0, 6.0, 12.0], {"units": "hours"})
    theirs = axis_of("lead", [0.75, 1.0], {"units": "days"})
    _, new = align_slices(slices(theirs, LAT), (own, LAT), 0, ATTRS)
    assert new.numbers.tolist() == [18.0, 24.0]
    assert new.units == "hours"


def test_infinite_values_are_refused_and_missing_ones_are_not():
    new = slices(later(3), LAT, SITE)
    new.values[0, 0, 0] = np.nan
    assert np.isnan(align_slices(new, MODEL, 0, ATTRS)[0][0, 0, 0])
    new.values[0, 0, 0] = np.inf
    with pytest.raises(InputError, match="infinite"):
        align_slices(new, MODEL, 0, ATTRS)


def test_an_array_of_the_shape_of_the_model_needs_only_coordinates():
    values = np.ones((2, 4, 2))
    found, new = plain_slices(values, ["2000-01-04", "2000-01-05"], MODEL, 0)
    assert found is values
    assert new.numbers.tolist() == [3.0, 4.0]


def test_a_scalar_coordinate_is_that_of_one_slice():
    found, new = plain_slices(np.ones((4, 2)), 5.0, MODEL, 0)
    assert found.shape == (1, 4, 2)
    assert new.numbers.tolist() == [5.0]
    assert plain_slices(np.ones((3, 2)), 50.0, MODEL, 1)[0].shape == (3, 1, 2)
    assert plain_slices(np.ones((1, 4, 2)), 5.0, MODEL, 0)[0].shape == (1, 4, 2)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4, 3), (1, 4, 2), (2, 2, 4)])
def test_an_array_of_another_shape_is_refused(shape):
    with pytest.raises(InputError, match=r"Expected \(2, 4, 2\), as the model's with 2 along"):
        plain_slices(np.ones(shape), [3.0, 4.0], MODEL, 0)


def test_coordinates_of_plain_arrays_are_needed():
    with pytest.raises(SettingError, match="along 'time' are needed"):
        plain_slices(np.ones((1, 4, 2)), None, MODEL, 0)


def test_coordinates_are_read_as_the_user_writes_them():
    assert coordinates_on(TIME, "2000-01-11").numbers.tolist() == [10.0]
    assert coordinates_on(SITE, ["q", "new"]).numbers.tolist() == [1.0, 2.0]
    assert coordinates_on(text_axis("n", ["1"]), [2, 1]).texts == ["2", "1"]
    with pytest.raises(InputError, match=r"must be a vector, got shape \(1, 1\)"):
        coordinates_on(TIME, [[1.0]])
    with pytest.raises(InputError, match=r"is inf. Expected a finite number"):
        coordinates_on(TIME, [np.inf])


def test_dimensions_get_the_names_of_those_that_mean_the_same():
    axes = axis_of("lat", [0.0, 1.0]), axis_of("q", [1.0]), axis_of("time", [2.0])
    grid = Grid(np.ones((2, 1, 1)), axes)
    wanted = [axis_of("time", [0.0]), axis_of("latitude", [5.0]), axis_of("x", [1.0])]
    assert rename_like(grid, wanted).dims == ("latitude", "q", "time")
