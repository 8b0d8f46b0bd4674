"""Differences of tiles where they meet."""

import numpy as np
import pytest

from dkrls_cli.model.tiling.seams import ALLOWED, FARTHEST, Seams


def test_differences_are_counted_in_error_bars():
    one, other = np.array([1.0, 2.0, np.nan, 0.0]), np.array([1.3, 2.0, 1.0, np.nan])
    seams = Seams().add(one, other, np.array([3.0, 1.0, 1.0, 1.0]))
    assert seams.count == 2
    assert seams.worst == seams.rms == pytest.approx(0.1 / np.sqrt(2))
    assert seams.largest == pytest.approx(0.1)
    assert seams.add(one, np.full(4, np.nan), one) is seams
    more = seams.add(np.zeros(2), np.full(2, 0.04), np.ones(2))
    assert more.worst == seams.worst
    assert more.rms == pytest.approx(np.sqrt((0.01 + 2 * 0.0016) / 4))


def test_tiles_fit_if_every_seam_and_every_cell_does():
    assert Seams().fit
    bars = np.ones(100)
    assert Seams().add(np.zeros(100), 0.99 * ALLOWED * bars, bars).fit
    assert not Seams().add(np.zeros(100), 1.01 * ALLOWED * bars, bars).fit
    single = np.zeros(100)
    single[3] = 1.01 * FARTHEST
    assert Seams().add(np.zeros(100), single, bars).worst < ALLOWED
    assert not Seams().add(np.zeros(100), single, bars).fit
    many = Seams().add(np.zeros(1), 1.1 * ALLOWED * np.ones(1), np.ones(1))
    for _ in range(100):
        many = many.add(np.zeros(100), np.zeros(100), bars)
    assert not many.fit  # one bad seam is not made up for by good ones
