"""Fields: distinct places, shapes, and what is too many."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.drawing import fields as module
from dkrls_cli.cascade.drawing.fields import Field, Places
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import SettingError

LON, Y, T = np.arange(0.0, 360.0, 45.0), np.arange(4.0), np.arange(6.0)
KERNELS = [
    Kernel("matern32", 60.0, period=360.0),
    Kernel("gaussian", 1.5, constant=1.0),
    Kernel("matern12", 2.0),
]


@pytest.fixture(scope="module")
def cascade() -> Cascade:
    levels = [Level(n, k, 0.1) for n, k in zip(["lon", "y", "t"], KERNELS, strict=True)]
    return fit_cascade(np.random.default_rng(0).random((8, 4, 6)), [LON, Y, T], levels)


def test_queries_at_one_place_are_one(cascade: Cascade) -> None:
    lon = np.array([350.1, 10.0, -9.9, 710.1, 370.0, 0.0, 360.0])
    places = Places.of(cascade, [lon, Y, T], (0,))
    assert len(places) == 3
    assert places.copies.tolist() == [2, 1, 2, 2, 1, 0, 0]
    assert places.coordinates[0].tolist() == [0.0, 10.0, 350.1]


def test_points_are_one_place_only_if_all_coordinates_agree(cascade: Cascade) -> None:
    lon, y = np.array([10.0, 370.0, 10.0, 20.0]), np.array([1.0, 1.0, 2.0, 1.0])
    places = Places.of(cascade, [lon, y, T], (0, 1))
    assert (len(places), places.levels) == (3, (0, 1))
    assert places.copies[0] == places.copies[1]
    assert np.unique(places.copies).size == 3


def test_a_grid_has_an_axis_for_every_level(cascade: Cascade) -> None:
    field = Field.of(cascade, [np.array([7.0, 45.0]), Y[::-1], T[:1]])
    assert field.is_grid
    assert field.shape == (2, 4, 1)
    assert [n.tolist() for n in field.nodes] == [[-1, 1], [0, 1, 2, 3], [0]]
    assert [v.shape for v in field.lay_out(field.nodes)] == [(2, 1, 1), (1, 4, 1), (1, 1, 1)]
    values = np.arange(8.0).reshape(2, 4, 1)
    np.testing.assert_array_equal(field.repeat(values), values[:, ::-1])
    smooth = Field.of(cascade, [LON, Y, T], smooth=True)
    assert all((nodes == -1).all() for nodes in smooth.nodes)
    assert smooth.repeat(values) is values  # no copy where nothing is repeated


def test_points_share_their_first_axis(cascade: Cascade) -> None:
    field = Field.of(cascade, [np.array([7.0, 8.0]), Y, np.array([2.0, 2.5])], [1])
    assert not field.is_grid
    assert field.shape == (2, 4)
    assert [places.levels for places in field.axes] == [(0, 2), (1,)]
    assert [v.shape for v in field.lay_out(field.nodes)] == [(2, 1), (1, 4), (2, 1)]
    assert field.axis_of == {0: 0, 2: 0, 1: 1}
    assert [c.tolist() for c in field.coordinates] == [[7.0, 8.0], Y.tolist(), [2.0, 2.5]]
    both = [
        gram(KERNELS[level], c, c)
        for level, c in ((0, np.array([7.0, 8.0])), (2, np.array([2.0, 2.5])))
    ]
    np.testing.assert_allclose(field.similarity((0, 2), np.arange(2)), both[0] * both[1])


def test_places_may_have_a_coordinate_in_common(cascade: Cascade) -> None:
    points = [np.array([10.0, 370.0, 20.0]), np.array([1.0, 2.0, 1.0]), np.arange(3.0)]
    field = Field.of(cascade, points, [])
    here = np.argsort(field.coordinates[2])  # in the order of the points
    assert field.is_same(0, here).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert field.is_same(1, here).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    assert field.is_same(2, here[:2]).tolist() == [[1, 0], [0, 1]]


def test_a_correlation_is_computed_once_and_has_unit_variance(cascade: Cascade) -> None:
    field = Field.of(cascade, [LON, Y, T])
    root = field.correlation(1)
    assert field.correlation(1) is root
    rows = root.rows @ np.eye(root.width)
    np.testing.assert_allclose(rows @ rows.T, gram(KERNELS[1], Y, Y) / 2.0, atol=1e-13)


def test_many_places_along_a_matern_level_are_drawn_along_it(
    cascade: Cascade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW", 5)
    field = Field.of(cascade, [LON, Y, T])
    assert [field.is_drawn_along(2, count) for count in (5, 6)] == [False, True]
    assert not field.is_drawn_along(1, module.LARGEST)
    rows = field.correlation(2).rows @ np.eye(6)
    np.testing.assert_allclose(rows @ rows.T, gram(KERNELS[2], T, T), atol=1e-11)


@pytest.mark.parametrize(
    ("axis", "reason"),
    [
        (0, "at 4097 coordinates of 'lon' is too large for its matern32 kernel on a circle"),
        (1, "at 4097 coordinates of 'y' is too large for its gaussian kernel. Ask for 4096"),
    ],
)
def test_more_places_than_a_matrix_has_are_refused(
    cascade: Cascade, axis: int, reason: str
) -> None:
    field = Field.of(cascade, [LON, Y, T])
    assert not field.is_drawn_along(axis, 4096)
    with pytest.raises(SettingError, match=reason):
        field.is_drawn_along(axis, 4097)
    points = Field.of(cascade, [LON[:4], Y, T], [2])
    assert not points.is_drawn_along(0, 4096)
    with pytest.raises(SettingError, match=r"4097 scattered points .* Ask for 4096 points at most"):
        points.is_drawn_along(0, 4097)


def test_levels_that_add_nothing_have_no_terms(cascade: Cascade) -> None:
    field = Field.of(cascade, [LON, Y, T])
    nothing = {0: np.zeros(8), 2: np.zeros(6)}
    assert field.terms(nothing, lambda level, here: np.eye(here.size)) == []
    some = field.terms({1: np.array([0.0, 4.0, 0.0, 1.0])}, lambda level, here: np.eye(here.size))
    assert len(some) == 1
    rows = some[0][1].rows @ np.eye(2)
    np.testing.assert_allclose(rows, [[0, 0], [2, 0], [0, 0], [0, 1]], atol=1e-12)
    assert some[0][0] is field.correlation(0)
