"""Error bars of all slices are those of one."""

import numpy as np
import pytest

from dkrls_cli.cascade.calibration.folds import BetweenScale
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import SettingError
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.lasting.bars import LandBars, cut_slice

Y, X, T = np.arange(6.0), np.arange(7.0), np.arange(4.0)
QY, QX, QT = np.array([0.0, 1.5, 3.0]), np.array([2.0, 2.5]), np.array([1.0, 0.0, 3.0])


def cascade_of(axes):
    kernels = {"y": 2.0, "x": 1.5, "t": 1e-3}
    coordinates = {"y": Y, "x": X, "t": T}
    return Cascade(
        tuple(Level(name, Kernel("matern32", kernels[name])) for name in axes),
        tuple(coordinates[name] for name in axes),
        (None,) * len(axes),
        (None,) * len(axes),
        np.zeros([coordinates[name].size for name in axes]),
        1e-3,
    )


def one_slice():
    gone = np.zeros((6, 7), bool)
    gone[2:4, 1:4] = True
    between = BetweenScale(np.full((2, 2), 0.7), np.full((2, 2), 0.5), 1.0, 2.0)
    return GapBars(gone, 0.3, 0.9, 0.1, between=between)


@pytest.mark.parametrize(("axes", "slices"), [("tyx", (0,)), ("ytx", (1,)), ("yxt", (2,))])
@pytest.mark.parametrize("smooth", [False, True])
def test_variance_on_grids_and_at_points(axes, slices, smooth):
    queries = {"t": QT, "y": QY, "x": QX}
    own = cascade_of("yx")
    whole = (slice(0, 3), slice(0, 2))
    expected = one_slice().variance_blocks(own, [QY, QX], smooth=smooth)(whole)
    bars, cascade = LandBars(slices, one_slice()), cascade_of(axes)
    asked = [queries[name] for name in axes]
    found = bars.variance_blocks(cascade, asked, smooth=smooth)
    parts = {"t": slice(1, 3), "y": slice(0, 3), "x": slice(1, 2)}
    block = found(tuple(parts[name] for name in axes))
    moved = np.moveaxis(block, slices[0], 0)
    assert moved.shape == (2, 3, 1)
    np.testing.assert_array_equal(moved, np.broadcast_to(expected[:, 1:], (2, 3, 1)))
    y, x = np.array([0.0, 2.5, 3.0]), np.array([2.0, 2.5, 3.0])
    at = {"t": QT, "y": y, "x": x}
    exact = one_slice().variance_at_points(own, [y, x], smooth=smooth)
    points = [at[name] for name in axes]
    np.testing.assert_array_equal(bars.variance_at_points(cascade, points, smooth=smooth), exact)
    spread = bars.variance_at_points(
        cascade, [QT[:2] if n == "t" else at[n] for n in axes], spread=slices, smooth=smooth
    )
    np.testing.assert_array_equal(spread, np.stack([exact, exact], axis=1))


def test_places_that_all_points_share():
    bars, cascade = LandBars((0,), one_slice()), cascade_of("tyx")
    found = bars.variance_at_points(cascade, [QT, QY, QX], spread=(2,))
    exact = one_slice().variance_at_points(cascade_of("yx"), [QY, QX], spread=(1,))
    np.testing.assert_array_equal(found, exact)


def test_what_else_they_are():
    bars = LandBars((0,), one_slice())
    assert bars.errors.tolist() == [0.1]
    assert bars.unobserved is None
    assert bars.with_unobserved(np.zeros(3, bool), 0) is bars
    assert bars.measured_in(cascade_of("tyx")) is bars
    varied = LandBars((0,), one_slice(), most=3)
    for ask in (varied.deviations, varied.deviations_at_points):
        with pytest.raises(SettingError, match="where every time misses other cells"):
            ask(cascade_of("tyx"), [QT, QY, QX])


def test_a_slice_has_the_data_that_it_is_given():
    values = np.arange(42.0).reshape(6, 7)
    cut = cut_slice(cascade_of("tyx"), [1, 2], values)
    np.testing.assert_array_equal(cut.predict(), values)
