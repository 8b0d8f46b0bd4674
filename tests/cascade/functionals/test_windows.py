"""Tests of dkrls_cli.cascade.functionals.windows."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.cascade.functionals import windows as module
from dkrls_cli.cascade.functionals.cells import SourceCells
from dkrls_cli.cascade.functionals.functional import Means
from dkrls_cli.cascade.functionals.windows import find_gaps, open_parts

T = np.arange(12.0)


def around(nodes, *, latitude=False, period=None):
    rising = np.sort(nodes)
    ends = [2 * rising[0] - rising[1], 2 * rising[-1] - rising[-2]]
    if period is not None:
        ends = [rising[-1] - period, rising[0] + period]
    wider = np.r_[ends[0], rising, ends[1]]
    place = np.argsort(np.argsort(nodes)) + 1
    low, high = (wider[place] + wider[place - 1]) / 2, (wider[place] + wider[place + 1]) / 2
    return SourceCells.around(nodes, low, high, latitude, period)


def parts_of(nodes, low, high, **how):
    asked = Means(np.array([low]), np.array([high]), how.get("latitude", False))
    return open_parts(around(nodes, **how), asked, nodes)


def on_nodes(part, size):
    """Return the shares of all samples."""
    found = np.zeros(size)
    found[part.near] = part.mean.shares
    return found


def test_a_gap_is_where_a_sample_is_missing():
    def gaps(nodes, low, high):
        pieces = around(nodes).cut(Means(np.array([low]), np.array([high])))
        found = find_gaps(pieces, nodes)
        return list(zip(pieces.low[found], pieces.high[found], strict=True))

    assert gaps(T, 2.0, 8.0) == []
    assert gaps(np.delete(T, 5), 2.0, 8.0) == [(4.5, 5.5)]
    assert gaps(np.delete(T, [5, 6]), 2.0, 8.0) == [(4.5, 6.5)]
    assert gaps(np.delete(T, 5), 6.0, 8.0) == []
    assert gaps(np.delete(T, 5), 5.0, 8.0) == [(5.0, 5.5)]
    assert gaps(np.delete(T, 5), 5.1, 8.0) == []  # less than half a step of it
    jumping = T + np.where(T % 3 == 0, 0.2, 0.0)
    assert gaps(jumping, 2.0, 8.0) == []
    wider = np.delete(T, 9) - np.where(np.delete(T, 9) < 4, 0.2, 0.0)
    assert gaps(wider, 2.0, 11.0) == [(pytest.approx(3.3), 3.5), (8.5, 9.5)]


def test_without_gaps_every_second_of_twice_as_many_samples_is_known():
    order = np.random.default_rng(0).permutation(12)
    (part,) = parts_of(T[order], 2.0, 5.0)
    shares = np.zeros(12)
    shares[[2, 3, 4, 5]] = np.array([0.25, 0.5, 0.5, 0.25]) / 3
    np.testing.assert_allclose(on_nodes(part, 12), shares[order], atol=1e-12)
    assert part.mean.unseen == pytest.approx(3 * (0.5 / 3) ** 2)
    assert part.share == 1.0
    assert part.weights.sum() == pytest.approx(1.0)
    assert part.weights @ (part.asked.low + part.asked.high) / 2 == pytest.approx(3.5)
    for power in range(5):  # the mean of the field
        expected = (5.0 ** (power + 1) - 2.0 ** (power + 1)) / (3 * (power + 1))
        assert part.mean.weights @ part.mean.places**power == pytest.approx(expected)


def test_half_a_step_beyond_the_last_sample_another_one_lacks():
    (part,) = parts_of(T, 10.5, 11.5)
    np.testing.assert_allclose(on_nodes(part, 12)[[9, 10, 11]], [0, 0, 0.5], atol=1e-12)
    assert part.mean.unseen == pytest.approx(2 * 0.25**2)


def test_the_range_goes_round_a_circle():
    months = np.arange(0.0, 12)
    (part,) = parts_of(months, 10.0, 13.0, period=12.0)
    expected = np.zeros(12)
    expected[[10, 11, 0, 1]] = np.array([0.25, 0.5, 0.5, 0.25]) / 3
    np.testing.assert_allclose(on_nodes(part, 12), expected, atol=1e-12)
    assert set(part.near[:2].tolist()) == {11, 0}
    (whole,) = parts_of(months, -0.5, 11.5, period=12.0)
    np.testing.assert_allclose(on_nodes(whole, 12), np.full(12, 1 / 24), atol=1e-12)
    assert whole.mean.unseen == pytest.approx(11.5 / 24**2)  # one is cut in two


def test_of_a_range_with_gaps_the_missing_samples_are_open():
    (part,) = parts_of(np.delete(T, [5, 6, 9]), 1.0, 11.0)
    assert part.share == pytest.approx(0.3)
    np.testing.assert_allclose(part.asked.low, [4.5, 5.5, 8.5])
    np.testing.assert_allclose(part.asked.high, [5.5, 6.5, 9.5])
    np.testing.assert_allclose(part.weights, [1 / 3] * 3)
    assert not part.mean.shares.any()
    assert part.mean.unseen == pytest.approx(1 / 3)


def test_latitudes_count_by_their_cosine():
    (part,) = parts_of(np.arange(-85.0, 90, 10), 0.0, 60.0, latitude=True)
    area = np.sin(np.radians(part.asked.high)) - np.sin(np.radians(part.asked.low))
    np.testing.assert_allclose(part.weights, area / np.sin(np.radians(60)))


def test_long_ranges_are_judged_in_parts(monkeypatch):
    nodes = np.arange(500.0)
    parts = parts_of(nodes, 100.0, 196.0)  # 193 cells, 64 around each of seven parts
    assert len(parts) == 7
    assert sum(part.share for part in parts) == pytest.approx(1.0)
    for part in parts:
        middle = (part.asked.low[0] + part.asked.high[-1]) / 2
        assert part.near.size == 64
        assert np.abs(nodes[part.near] - middle).max() <= 33
    monkeypatch.setattr(module, "_PARTS", 3)
    few = parts_of(nodes, 100.0, 196.0)
    assert [part.asked.low[0] for part in few] == [parts[i].asked.low[0] for i in (0, 3, 6)]
    squares = [sum(part.share**2 for part in some) for some in (few, parts)]
    assert squares[0] == pytest.approx(squares[1], rel=0.05)
