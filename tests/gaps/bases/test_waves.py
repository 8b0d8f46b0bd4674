"""Waves along an axis: orthonormal, as many as steps tell apart, and made once."""

import math

import numpy as np
import pytest

from dkrls_cli.gaps.bases.waves import waves_of


def line(size, seed=None):
    """Return coordinates with steps of 1, or with steps of 0.75 to 1.25."""
    even = np.arange(float(size))
    return even if seed is None else even + np.random.default_rng(seed).uniform(-0.12, 0.13, size)


@pytest.mark.parametrize("offset", [0.0, 0.5, -0.2], ids=["at 0", "between", "anywhere"])
@pytest.mark.parametrize("size", [2, 3, 8, 9, 24, 25])
def test_waves_of_a_full_ring_are_orthonormal(size, offset):
    waves = waves_of((np.arange(size) + offset) * (360.0 / size), 360.0)
    assert waves.circle
    np.testing.assert_allclose(waves.values.T @ waves.values, np.eye(size), atol=1e-12)
    turns = np.arange(size) + 1  # 0, 1, 1, 2, 2 ... turns
    np.testing.assert_allclose(waves.frequencies, (turns // 2) * (2 * math.pi / 360.0))


@pytest.mark.parametrize("size", [2, 7, 40])
def test_waves_of_a_line_with_its_margins_are_orthonormal(size):
    """At the coordinates and at those of the margin, in even steps."""
    waves = waves_of(0.5 * np.arange(size) + 3.0, None)
    assert not waves.circle
    margin = max(2, round(0.1 * size))
    assert waves.values.shape == (size, size + 2 * margin)
    length = 0.5 * (size + 2 * margin)
    np.testing.assert_allclose(waves.frequencies, np.arange(size + 2 * margin) * math.pi / length)
    beyond = (np.arange(size + 2 * margin) + 0.5) / (size + 2 * margin)
    whole = np.cos(math.pi * np.multiply.outer(beyond, np.arange(beyond.size)))
    whole *= np.sqrt(np.where(np.arange(beyond.size) > 0, 2.0, 1.0) / beyond.size)
    np.testing.assert_allclose(whole.T @ whole, np.eye(beyond.size), atol=1e-12)
    np.testing.assert_allclose(waves.values, whole[margin : margin + size], atol=1e-12)


def test_uneven_steps_have_waves_for_the_shortest_within_a_limit():
    """Twice as many as there are coordinates, in units of the length, at most."""
    near = np.array([0.0, 1.0, 2.0, 2.6, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    waves = waves_of(near, None)
    length = math.pi / waves.frequencies[1]
    assert waves.frequencies.size == math.ceil(2 * length / (8.0 + 1.0) * 10)
    mild = waves_of(line(30, 4), None)
    shortest = np.diff(np.sort(line(30, 4))).min()
    assert mild.frequencies.size == math.ceil(math.pi / mild.frequencies[1] / shortest)


def test_waves_are_made_once(monkeypatch):
    axis = line(17, 9)
    first = waves_of(axis, None)
    assert waves_of(axis.copy(), None) is first
    assert waves_of(axis, 40.0) is not first


def test_squares_of_waves_have_a_mean_of_one_in_their_number():
    for waves in (waves_of(line(50, 3), None), waves_of(line(50, 3), 50.0)):
        number = waves.frequencies.size
        assert (waves.values**2).sum(axis=1).mean() == pytest.approx(1.0, abs=0.02)
        assert (waves.values[:, 0] ** 2).mean() == pytest.approx(1 / number)
