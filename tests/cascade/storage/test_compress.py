"""Compression: the promise, that no direction is stored in vain, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import FAMILIES, Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.storage import comparison, layout
from dkrls_cli.cascade.storage.compress import Compressed, compress, stored_bytes
from dkrls_cli.errors import SettingError


def fitted(
    values: np.ndarray,
    *,
    joint: float | None = None,
    mean: float = 0.0,
    families: Sequence[str] = ("matern52",),
    period: float | None = None,
    order: np.random.Generator | None = None,
) -> Cascade:
    """Train on coordinates 0, 1, 2, ... of which the first axis may be a circle."""
    axes = [np.arange(float(m)) for m in values.shape]
    if order is not None:
        axes = [order.permutation(axis) for axis in axes]
    ridge = 1e-3 if joint is None else 0.0
    levels = [
        Level(f"d{i}", Kernel(families[i % len(families)], 2.0, period if i == 0 else None), ridge)
        for i in range(values.ndim)
    ]
    return fit_cascade(values, axes, levels, joint_ridge=joint, mean=mean)


def test_a_truncation_of_exact_single_precision_is_told_from_it() -> None:
    """The full cascade counts as double precision; what is rounded does not."""
    rng = np.random.default_rng(0)
    waves = np.sin(np.arange(30.0))[:, None] * np.cos(np.arange(28.0))
    full = fitted((waves + 1e-3 * rng.standard_normal((30, 28))).astype("f4"))
    assert (full.core.dtype, full.storage) == ("float32", "float64")
    small = compress(full, 0.02).cascade
    assert small.core.dtype == small.storage == "float32"
    assert not small.exact
    assert compress(full, 1e-9).cascade is full


def differences(full: Cascade, small: Cascade, between: Sequence[bool] | None = None) -> np.ndarray:
    """Return the differences of all answers at nodes and midpoints, one pattern after another."""
    choices = []
    for axis, (nodes, level) in enumerate(zip(full.coordinates, full.levels, strict=True)):
        line = sorted(nodes)
        period = level.kernel.period
        line += [line[0] + period] if period else []
        middles = np.array([(a + b) / 2 for a, b in pairwise(line)])
        asked = between is None or between[axis]
        choices.append([nodes, middles] if asked and middles.size else [nodes])
    found = [full.predict(some) - small.predict(some) for some in product(*choices)]
    return np.concatenate([part.ravel() for part in found])


def check_promise(full: Cascade, found: Compressed, tolerance: float, **options) -> None:
    off = differences(full, found.cascade, **options)
    cells = list(map(np.ravel, np.meshgrid(*full.coordinates, indexing="ij")))
    at_cells = full.predict_points(cells) - found.cascade.predict_points(cells)
    largest = max(np.abs(off).max(), np.abs(at_cells).max())
    scale = np.abs(off).max() or 1.0
    rms = scale * np.sqrt(np.mean((off / scale) ** 2))
    round_off = 1e-12 * (np.abs(full.core).max() + abs(full.mean))
    assert largest <= tolerance * (1 + 1e-9) + round_off
    assert found.difference.largest == pytest.approx(largest, rel=1e-6, abs=round_off)
    assert found.difference.rms == pytest.approx(rms, rel=1e-6, abs=round_off)
    assert found.bytes == stored_bytes(found.cascade) <= found.full_bytes == stored_bytes(full)


def modes(shape: Sequence[int], count: int, noise: float, seed: int = 0) -> np.ndarray:
    """Return a sum of smooth products that fall by half each, and noise."""
    rng = np.random.default_rng(seed)
    values = noise * rng.standard_normal(shape)
    for k in range(count):
        waves = [np.sin((k + 1) * np.linspace(0, 3, m) + rng.uniform(0, 6)) for m in shape]
        term = waves[0]
        for wave in waves[1:]:
            term = np.multiply.outer(term, wave)
        values += 0.5**k * term
    return values


# ---- the promise


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    families=st.lists(st.sampled_from(sorted(FAMILIES)), min_size=1, max_size=3),
    joint=st.sampled_from([None, 1e-3]),
    mean=st.sampled_from([0.0, 5.0]),
    circle=st.booleans(),
    count=st.integers(0, 3),
    power=st.floats(-9, 1),
    seed=st.integers(0, 99),
)
def test_answers_are_within_the_tolerance_at_and_between_all_cells(
    shape, families, joint, mean, circle, count, power, seed
) -> None:
    values = mean + modes(shape, count, 0.01, seed)
    order = np.random.default_rng(seed)
    period = shape[0] + 0.5 if circle else None
    full = fitted(values, joint=joint, mean=mean, families=families, period=period, order=order)
    check_promise(full, compress(full, 10**power), 10**power)


@pytest.mark.slow
@pytest.mark.parametrize("joint", [None, 1e-3], ids=["level", "joint"])
@pytest.mark.parametrize("tolerance", [0.3, 0.05, 0.03])
@pytest.mark.parametrize("kept", [0, 10**6])
def test_large_differences_are_found_wherever_they_are(
    joint: float | None, tolerance: float, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_CELLS_KEPT", kept)
    monkeypatch.setattr(comparison, "_SAMPLE_CELLS", 8)
    monkeypatch.setattr(comparison, "_CELLS_AT_ONCE", 100)
    monkeypatch.setattr(comparison, "_COORDINATES_AT_ONCE", 7)
    monkeypatch.setattr(comparison, "_WITNESSES", 3)
    values = modes((14, 12, 10), 4, 0.01)
    values[11, 3, 8] += 0.1
    full = fitted(values, joint=joint)
    found = compress(full, tolerance)
    check_promise(full, found, tolerance)
    assert found.bytes < found.full_bytes / 2


def test_between_labels_nothing_is_asked() -> None:
    full = fitted(modes((8, 20, 9), 3, 1e-3))
    found = compress(full, 0.01, [False, True, True])
    check_promise(full, found, 0.01, between=[False, True, True])


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e200])
def test_the_promise_does_not_depend_on_units(size: float) -> None:
    values = 3 + modes((16, 14, 12), 3, 1e-3)
    plain = compress(fitted(values, mean=3.0), 0.02)
    full = fitted(size * values, mean=3.0 * size)
    found = compress(full, 0.02 * size)
    check_promise(full, found, 0.02 * size)
    assert found.cascade.core.shape == plain.cascade.core.shape


# ---- size


def without_last(cascade: Cascade, axis: int) -> Cascade:
    """Return a cascade without the last direction of an axis."""
    frames = list(cascade.frames)
    frame = frames[axis]
    assert frame is not None
    frames[axis] = frame[:, :-1]
    core = np.moveaxis(np.moveaxis(cascade.core, axis, 0)[:-1], 0, axis)
    return replace(cascade, core=core, frames=tuple(frames))


@pytest.mark.parametrize("joint", [None, 1e-3], ids=["level", "joint"])
@pytest.mark.parametrize("mean", [0.0, 280.0])
@pytest.mark.parametrize("tolerance", [0.1, 0.02, 4e-3])
def test_one_direction_less_breaks_the_promise(
    joint: float | None, mean: float, tolerance: float
) -> None:
    full = fitted(mean + modes((24, 20, 16), 5, 5e-4), joint=joint, mean=mean)
    found = compress(full, tolerance)
    check_promise(full, found, tolerance)
    assert found.cascade.core.dtype == np.float32
    assert found.bytes < found.full_bytes / 5
    for axis in range(3):
        fewer = without_last(found.cascade, axis)
        assert np.abs(differences(full, fewer)).max() > tolerance


@pytest.mark.parametrize("tolerance", [0.025, 0.03, 0.035, 0.04])
def test_no_direction_is_in_vain_where_noise_decides(tolerance: float) -> None:
    """Single cells decide how much of the noise is kept, and not its energy."""
    full = fitted(modes((24, 20, 16), 3, 1e-2))
    found = compress(full, tolerance)
    check_promise(full, found, tolerance)
    for axis, frame in enumerate(found.cascade.frames):
        if frame is not None and frame.shape[1] > 1:
            fewer = without_last(found.cascade, axis)
            assert np.abs(differences(full, fewer)).max() > tolerance


def test_a_constant_is_stored_once() -> None:
    """The strongest direction along the first axis is the constant, which is stored anyway."""

    def wave(size: int, turns: int) -> np.ndarray:
        return np.cos(turns * np.pi * (np.arange(size) + 0.5) / size)  # orthogonal to the others

    still = np.outer(wave(20, 1), wave(16, 1))
    moving = 0.3 * np.multiply.outer(wave(24, 1), np.outer(wave(20, 2), wave(16, 1)))
    noise = 1e-6 * np.random.default_rng(2).standard_normal((24, 20, 16))
    found = compress(fitted(5 + still + moving + noise, mean=5.0), 1e-3)
    assert found.cascade.core.shape[0] == 2


def test_a_few_modes_take_little_more_than_their_numbers() -> None:
    full = fitted(modes((60, 50, 40), 4, 1e-5))
    found = compress(full, 1e-3)
    assert found.cascade.core.shape == (4, 4, 4)
    assert found.bytes == 4 * (4 * (60 + 50 + 40) + 4**3)
    energy = np.sum(full.core**2)
    turned = np.sqrt(np.sum(differences(full, found.cascade, [False] * 3) ** 2))
    assert found.cascade.dropped == pytest.approx(turned**2 / energy, rel=1e-3)


def test_of_a_matrix_one_axis_is_kept_in_samples() -> None:
    full = fitted(modes((40, 30), 3, 1e-5))
    found = compress(full, 1e-3)
    assert found.cascade.core.shape in ((3, 30), (40, 3))
    assert found.bytes == 4 * 3 * (40 + 30)


def test_a_line_is_stored_in_single_precision_or_as_it_is() -> None:
    full = fitted(modes((10,), 3, 0.1))
    half = compress(full, 1e-5)
    assert half.cascade.core.dtype == np.float32
    assert half.bytes * 2 == half.full_bytes
    assert half.cascade.dropped == 0.0
    whole = compress(full, 1e-12)
    assert whole.cascade is full
    assert (whole.difference.rms, whole.difference.largest) == (0.0, 0.0)


def test_double_precision_is_kept_where_the_tolerance_needs_it() -> None:
    full = fitted(modes((40, 30, 20), 3, 1e-12))
    found = compress(full, 1e-9)
    check_promise(full, found, 1e-9)
    assert found.cascade.core.dtype == np.float64
    assert found.cascade.core.shape == (3, 3, 3)


def test_double_precision_may_be_smaller_than_single_with_more_directions() -> None:
    values = modes((40, 30, 20), 1, 0.0) + 1e-7 * np.random.default_rng(1).random((40, 30, 20))
    full = fitted(values)
    found = compress(full, 1.05e-7)
    check_promise(full, found, 1.05e-7)
    assert found.bytes < full.core.size * 4


def test_a_frame_that_is_larger_than_the_samples_is_undone() -> None:
    values = modes((60, 12), 14, 0.0)
    frame = np.linalg.qr(np.column_stack([values, np.ones(60)]))[0]
    core = frame.T @ values
    full = replace(fitted(values), frames=(frame, None), core=core)
    assert core.size + frame.size > values.size
    found = compress(full, 1e-12)
    assert found.cascade.frames == (None, None)
    assert found.bytes == values.nbytes < found.full_bytes
    check_promise(full, found, 1e-12)


def test_an_axis_too_long_for_a_square_matrix_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_LONG", 15)
    full = fitted(modes((24, 10, 9), 3, 1e-4))
    found = compress(full, 1e-2)
    check_promise(full, found, 1e-2)
    assert found.cascade.frames[0] is None
    assert found.cascade.core.shape == (24, 3, 3)


def test_directions_below_the_root_of_round_off_are_in_order() -> None:
    """Squares of the data would lose a mode of 1e-10 in those of round-off."""
    values = modes((30, 25, 20), 1, 0.0) + 1e-10 * modes((30, 25, 20), 3, 1e-4, seed=5)
    found = compress(fitted(values), 1e-12)
    assert found.cascade.core.shape == (4, 4, 4)


# ---- storage


def test_every_frame_holds_the_constant_that_is_taken_out() -> None:
    full = fitted(280 + modes((24, 20, 16), 3, 1e-4), mean=280.0)
    found = compress(full, 1e-2).cascade
    for frame in found.frames:
        assert frame is not None
        np.testing.assert_allclose(frame @ frame.sum(axis=0), 1.0, atol=1e-5)
        np.testing.assert_allclose(frame.T @ frame, np.eye(frame.shape[1]), atol=1e-6)


@pytest.mark.parametrize("mean", [0.0, 5.0])
def test_a_compressed_cascade_grows(mean: float) -> None:
    values = mean + modes((24, 20, 16), 3, 1e-4)
    full = fitted(values[..., :12], mean=mean)
    grown = Growing(compress(full, 1e-2).cascade, 2).append(np.arange(12.0, 16.0), values[..., 12:])
    np.testing.assert_allclose(grown.cascade.predict(), values, atol=1.1e-2)
    between = [[3.5], [4.5], [12.5]]
    refitted = fitted(values, mean=mean).predict(between)
    np.testing.assert_allclose(grown.cascade.predict(between), refitted, atol=2e-2)


def test_the_stored_arrays_are_contiguous_and_frozen() -> None:
    found = compress(fitted(modes((24, 20, 16), 3, 1e-4)), 1e-2).cascade
    assert found.core.flags.c_contiguous
    assert not found.core.flags.writeable
    assert {array.dtype for array in (found.core, *found.frames)} == {np.dtype(np.float32)}


# ---- parts


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan, np.inf])
def test_a_tolerance_is_a_number_above_0(tolerance: float) -> None:
    with pytest.raises(SettingError, match=r"Invalid tolerance .*above 0"):
        compress(fitted(np.eye(3)), tolerance)
