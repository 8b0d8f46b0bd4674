import numpy as np
import pytest
from globe import eastward, ring, rows, scalar

from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import ROWS, Continuation, half_turn, plan_rows

RING = Level("lon", Kernel("gaussian", 60.0, 360.0, constant=1.0), 1e-12)


def make(lat, lon, sign=1, level=RING, mean=0.0):
    """Return the rows that go on behind latitudes, the first axis."""
    return Continuation(0, 1, sign, *plan_rows(lat), np.asarray(lon), level, mean)


@pytest.mark.parametrize(("field", "sign"), [(scalar, 1), (eastward, -1)])
@pytest.mark.parametrize("kind", ["pole", "cell"])
@pytest.mark.parametrize("order", [1, -1])
def test_copies_are_the_field_beyond_the_poles(field, sign, kind, order):
    lat, lon = rows(kind, 19)[::order], ring(12, -180.0)
    found = make(lat, lon, sign)
    beyond = found.extend_latitudes(lat)
    steps = np.diff(beyond)
    assert (np.sign(steps) == order).all()
    assert np.allclose(np.abs(steps), abs(lat[1] - lat[0]))
    assert np.allclose(found.extend(field(lat, lon)), field(beyond, lon), atol=1e-13)


@pytest.mark.parametrize("lon", [ring(31), np.delete(ring(36), [2, 11, 20])])
def test_where_half_a_turn_away_is_no_longitude_the_model_of_the_ring_is_asked(lon):
    lat = rows("cell", 10)
    found = make(lat, lon)
    assert np.ndim(found.turn) == 2
    expected = scalar(found.extend_latitudes(lat), lon)
    assert np.allclose(found.extend(scalar(lat, lon)), expected, atol=1e-7)


def test_the_model_of_the_ring_falls_back_to_the_mean():
    lat, lon, level = rows("cell", 4), ring(5), Level("lon", Kernel("gaussian", 1e-3, 360.0))
    found = make(lat, lon, -1, level, mean=7.0)
    assert np.allclose(found.cut(found.extend(np.ones((4, 5)))), 1.0)
    assert np.allclose(found.extend(np.ones((4, 5)))[0], -7.0)


def test_longitudes_are_the_same_but_for_the_rounding_of_single_precision():
    lon = np.asarray(ring(360, 0.1).astype(np.float32), np.float64)
    turn = half_turn(lon, RING)
    assert turn.tolist() == np.roll(np.arange(360), -180).tolist()
    moved = lon.copy()
    moved[180] += 2e-3  # twice the thousandth of a step
    assert np.ndim(half_turn(moved, RING)) == 2


def test_missing_cells_have_missing_copies():
    lat, lon = rows("cell", 8), ring(6)
    values = scalar(lat, lon)
    values[-1, 1] = np.nan
    even = make(lat, lon).extend(values)
    assert np.argwhere(np.isnan(even)).tolist() == [[11, 1], [12, 4]]
    lon = ring(7)
    values = scalar(lat, lon)
    values[-1, 1] = np.nan
    assert np.isnan(make(lat, lon).extend(values)[12]).all()


def test_float32_stays_float32():
    lat, lon = rows("cell", 8), ring(6)
    found = make(lat, lon, -1).extend(scalar(lat, lon).astype(np.float32))
    assert found.dtype == np.float32


def test_rows_copies_and_cuts_belong_together():
    lat, lon = rows("pole", 9), ring(6)
    found = make(lat, lon)
    values = found.extend(scalar(lat, lon))
    assert np.array_equal(found.cut(values), scalar(lat, lon))
    copies, whole = found.copies(len(values)), found.extend_latitudes(lat)
    for row in np.flatnonzero(copies >= 0):
        assert abs(whole[row]) > 90
        assert np.isclose(whole[row], np.copysign(180, whole[row]) - whole[copies[row]])
    assert np.count_nonzero(copies < 0) == lat.size
    few = found.nearest(2)
    assert (few.before, few.after) == (found.before[-2:], found.after[:2]) == ((2, 1), (7, 6))
    assert np.allclose(
        few.extend_latitudes(lat), whole[found.rows // 2 - 2 : -(found.rows // 2) + 2]
    )


@pytest.mark.parametrize(
    ("lat", "reached"),
    [
        (np.linspace(-90, 90, 7), (True, True)),
        (np.linspace(90, -90, 7), (True, True)),
        (np.linspace(-75, 75, 6), (True, True)),
        (np.linspace(0, 90, 10), (False, True)),
        (np.linspace(-89, -40, 10), (True, False)),
        (np.linspace(-75.1, 74.9, 16), (True, False)),  # 1.49 and 1.51 steps away
        (np.linspace(74.9, -74.9, 16), (False, False)),
        (np.linspace(-90, 90, 3), (False, False)),  # too few
        (np.linspace(-90.01, 90, 19), (False, False)),  # not on the globe
        (np.array([-90.0, 30, 0, 60, 90]), (False, False)),  # in no order
        (np.array([-90.0, 0, 0, 60, 90]), (False, False)),
        (np.asarray(np.float32([-90.00001, -45, 0, 45, 90.00001]), float), (True, True)),
    ],
)
def test_rows_go_on_behind_the_ends_that_reach_a_pole(lat, reached):
    before, after = plan_rows(lat)
    assert (bool(before), bool(after)) == reached


def test_the_row_at_the_pole_is_its_own_copy_and_rows_are_a_dozen():
    before, after = plan_rows(np.linspace(-90, 89.5, 360))
    assert before == tuple(range(12, 0, -1))
    assert after == tuple(range(359, 347, -1))
    assert len(after) == ROWS
    assert plan_rows(rows("cell", 7)) == ((2, 1, 0), (6, 5, 4))  # half of the rows at most


def test_answers_up_to_the_pole_are_inside():
    lat = np.linspace(85.0, -85.0, 18)
    assert sorted(make(lat, ring(4)).reach(lat))[::19] == [-90.0, 90.0]
    cap = np.linspace(40.0, 85.0, 10)
    found = make(cap, ring(4)).reach(cap)
    assert (found.min(), found.max()) == (40.0, 90.0)


@pytest.mark.parametrize("joint", [None, 1e-3])
def test_a_bare_cascade_is_that_of_the_data(joint):
    lat, lon = rows("cell", 8), ring(6)
    found = make(lat, lon)
    ridge = 1e-3 if joint is None else 0.0
    levels = [Level("lat", Kernel("matern32", 30.0), ridge), Level("lon", RING.kernel, ridge)]
    values = scalar(lat, lon) + np.random.default_rng(0).normal(size=(8, 6))
    both = [
        fit_cascade(v, [c, lon], levels, mean=0.5, joint_ridge=joint)
        for v, c in ((found.extend(values), found.extend_latitudes(lat)), (values, lat))
    ]
    bare, query = found.bare(both[0]), [[3.0, 80.0], [1.0, 77.0]]
    assert np.allclose(bare.predict(query), both[1].predict(query), atol=1e-13)
    assert not np.allclose(both[0].predict(query), both[1].predict(query), atol=1e-5)
    assert found.restores(both[0])
    assert np.array_equal(found.restore(bare).predict(query), both[0].predict(query))


def test_a_bare_cascade_in_frames_is_that_of_the_data():
    lat, lon = rows("pole", 25), ring(24)
    found = make(lat, lon)
    levels = [Level("lat", Kernel("gaussian", 30.0), 1e-9), RING]
    values = scalar(lat, lon)
    axes = [found.extend_latitudes(lat), lon]
    whole = fit_cascade(found.extend(values), axes, levels, compact=True)
    assert whole.frames[0] is not None
    assert not found.restores(whole)
    query = [[3.0, 80.0], [1.0, 77.0]]
    expected = fit_cascade(values, [lat, lon], levels).predict(query)
    assert np.allclose(found.bare(whole).predict(query), expected, atol=1e-6)


def test_rows_that_were_changed_are_not_restored():
    lat, lon = rows("cell", 8), ring(6)
    found = make(lat, lon)
    values = found.extend(scalar(lat, lon))
    values[0, 0] += 1e-15 + abs(values[0, 0]) * 1e-15
    levels = [Level("lat", Kernel("matern12", 30.0), 1e-3), RING]
    assert not found.restores(fit_cascade(values, [found.extend_latitudes(lat), lon], levels))


@pytest.mark.parametrize("sign", [1, -1])
def test_on_a_whole_circle_the_answers_are_those_of_the_symmetric_kernel(sign):
    lat, lon, ridge = rows("cell", 6), ring(8), 0.05
    rng = np.random.default_rng(1)
    values = rng.normal(size=(6, 8))
    up, east = Kernel("matern52", 40.0, 360.0), Kernel("matern32", 70.0, 360.0)
    found = Continuation(0, 1, sign, (), tuple(range(5, -1, -1)), lon, Level("lon", east))
    levels = [Level("lat", up), Level("lon", east)]
    axes = [found.extend_latitudes(lat), lon]
    cascade = fit_cascade(found.extend(values), axes, levels, joint_ridge=ridge)

    def kernel(a, b):
        (la, lo), (lb, ob) = a, b
        plain = np.kron(gram(up, la, lb), gram(east, lo, ob))
        return plain + sign * np.kron(gram(up, la, 180 - lb), gram(east, lo, ob + 180))

    query = np.array([11.0, 83.0, -61.0]), np.array([5.0, 201.0])
    dense = kernel((lat, lon), (lat, lon)) + ridge * np.eye(48)
    expected = kernel(query, (lat, lon)) @ np.linalg.solve(dense, values.ravel())
    assert np.allclose(cascade.predict(query), expected.reshape(3, 2), atol=1e-10)
