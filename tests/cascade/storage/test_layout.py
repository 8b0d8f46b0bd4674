"""Principal directions hold all of the data, and what is left out is what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.storage import layout as module
from dkrls_cli.cascade.storage.layout import choose_axes, principal_directions, turn

VALUES = np.random.default_rng(0).standard_normal((8, 7, 6)).cumsum(axis=0)


def fitted(mean: float = 0.0) -> Cascade:
    axes = [np.arange(float(m)) for m in VALUES.shape]
    levels = [Level(d, Kernel("matern52", 2.0), 1e-3) for d in "xyz"]
    return fit_cascade(mean + VALUES, axes, levels, mean=mean)


def data_of(cascade: Cascade) -> np.ndarray:
    data = np.asarray(cascade.core, float)
    for axis, frame in enumerate(cascade.frames):
        if frame is not None:
            data = np.moveaxis(np.tensordot(frame, data, (1, axis)), 0, axis)
    return data


@pytest.mark.parametrize("mean", [0.0, 100.0])
def test_directions_are_orthonormal_and_hold_all_of_the_data(mean: float) -> None:
    full = fitted(mean)
    bases = principal_directions(full)
    for basis in bases:
        assert basis is not None
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
        if mean:
            np.testing.assert_allclose(np.ptp(basis[:, 0]), 0.0, atol=1e-12)
    np.testing.assert_allclose(data_of(turn(full, bases).turned), mean + VALUES, atol=1e-10)


@pytest.mark.parametrize("mean", [0.0, 100.0])
def test_ranks_fall_one_by_one_and_leave_out_what_they_say(mean: float) -> None:
    full = fitted(mean)
    layout = turn(full, principal_directions(full))
    path = layout.path(1.0)
    assert path[0] == (layout.sizes, 0.0)
    assert len(path) > 5
    for (ranks, rms), (before, _) in zip(path[1:], path, strict=False):
        assert sum(before) - sum(ranks) == 1
        off = data_of(layout.truncate(ranks, "f8")) - (mean + VALUES)
        assert rms == pytest.approx(math.sqrt(np.mean(off**2)), rel=1e-6)
        assert rms <= 1.0
        energy = np.sum((mean + VALUES) ** 2)
        assert layout.dropped(ranks) == pytest.approx(np.sum(off**2) / energy, rel=1e-6)


def test_an_axis_that_is_kept_is_never_shrunk() -> None:
    full = fitted()
    first, second, _ = principal_directions(full)
    layout = turn(full, [first, None, None])
    assert layout.shrinkable(layout.sizes) == [0]
    assert layout.turned.frames[1:] == (None, None)
    assert turn(full, [first, second, None]).shrinkable((1, 7, 6)) == [1]


@pytest.mark.parametrize(
    ("ranks", "truncated"),
    [
        ((8, 7, 6), []),
        ((2, 2, 2), [0, 1, 2]),
        ((1, 1, 1), [1, 2]),
        ((2, 7, 6), [0]),
        ((8, 7, 3), [2]),
    ],
)
def test_axes_are_truncated_where_that_stores_less(
    ranks: tuple[int, int, int], truncated: list[int]
) -> None:
    full = fitted()
    chosen = choose_axes(full, principal_directions(full), ranks)
    assert [axis for axis, basis in enumerate(chosen) if basis is not None] == truncated


@pytest.mark.parametrize(("most", "kept"), [(8, False), (7, True)])
def test_an_axis_too_long_has_no_basis(
    most: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONG", most)
    assert (principal_directions(fitted())[0] is None) == kept
