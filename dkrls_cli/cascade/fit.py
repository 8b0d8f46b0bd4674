"""Train a cascade on a complete grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from dkrls_cli.arrays import AT_ONCE, Array, Tensor, blocks, checked_values, is_frozen
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.factors.levels import AnyFactor, express, make_factors
from dkrls_cli.cascade.level import Level, check_ridges, checked_coordinates
from dkrls_cli.cascade.spectrum import Spectrum
from dkrls_cli.cascade.tensors import along, span


def fit_cascade(
    values: ArrayLike,
    coordinates: Sequence[ArrayLike],
    levels: Sequence[Level],
    *,
    joint_ridge: float | None = None,
    mean: float = 0.0,
    compact: bool = False,
    dtype: DTypeLike = np.float64,
    spectra: Sequence[Spectrum | None] | None = None,
) -> Cascade:
    """Train the cascade on a complete grid.

    Parameters
    ----------
    values
        The data, one axis per level (any order of levels gives the same answers). Single precision
        is kept in the model as it is. An array that is read-only may be shared with the model.
    coordinates
        One vector per axis, distinct numbers in any order.
    levels
        Kernel and ridge of every axis.
    joint_ridge
        One ridge over the whole grid instead of a ridge per level.
    mean
        Value to which the answers fall back far from data (the paper's is 0).
    compact
        Where the data spans more than the kernel of a level can express, keep only the latter. The
        model is smaller, its answers at training coordinates lose the rest, and ``dropped`` is the
        share of energy that was lost.
    dtype
        Storage of the core. ``float32`` halves the model and costs 6e-8 of the data's size in
        every answer, more (up to 1/sqrt(ridge) times) where a level is nearly singular.
    spectra
        Decomposed Gram matrices of the levels, None for those that are not known yet.

    Returns
    -------
    Cascade
        The trained model.

    Raises
    ------
    InputError
        If the values are not a complete grid of finite numbers, or coordinates repeat.
    SettingError
        If levels, coordinates and axes differ in number, or a ridge is invalid.

    Examples
    --------
    >>> from dkrls_cli.cascade.kernels import Kernel
    >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
    >>> values = np.sin(x)[:, None] * np.cos(d)
    >>> levels = [Level("x", Kernel(sigma=1.0)), Level("d", Kernel(sigma=1.5))]
    >>> model = fit_cascade(values, [x, d], levels)
    >>> bool(abs(model.predict([[0.5], [2.5]]) - np.sin(0.5) * np.cos(2.5)) < 1e-7)
    True
    """
    data = checked_values(values)
    axes = checked_coordinates(coordinates, levels, data.shape)
    check_ridges(levels, joint_ridge)
    usable = make_factors(axes, levels, joint_ridge, spectra or [None] * len(axes))
    if compact:
        usable = [express(factor) for factor in usable]
    frames, core = _frame(data, usable, compact, with_constant=mean != 0)
    dropped = lost_energy(data, core) if compact else 0.0
    exact = core.dtype == np.float32 and np.dtype(dtype) == np.float64
    stored = _own(core, core.dtype if exact else dtype, values)
    return Cascade(
        tuple(levels),
        axes,
        tuple(usable),
        frames,
        stored,
        joint_ridge,
        dropped,
        mean,
        compact,
        exact,
    )


def _own(core: Tensor, dtype: DTypeLike, values: ArrayLike) -> Tensor:
    """Return the core of values in a type, read-only, and as a copy if the values may change."""
    given = np.asarray(values)
    may_change = np.may_share_memory(core, given) and not is_frozen(given)
    stored: Tensor = np.array(core, dtype, order="C", copy=True if may_change else None)
    stored.setflags(write=False)
    return stored


def _frame(
    data: Tensor, factors: Sequence[AnyFactor], compact: bool, with_constant: bool
) -> tuple[tuple[Array | None, ...], Tensor]:
    """Return a frame for every axis that has a smaller one, and the data in these frames.

    The longest axis goes first: the others need not read the part that it removes. A constant that
    is to be taken out later must lie in every frame. A frame is taken only if the model stays at
    most half as large as the data, all in float64: so it is no larger than the data in float32.
    """
    frames: list[Array | None] = [None] * data.ndim
    core: Tensor = data
    for axis in sorted(range(data.ndim), key=lambda a: -data.shape[a]):
        frame = span(core, axis, data.size // data.shape[axis])
        factor = factors[axis]
        if frame is None and compact and isinstance(factor, Spectrum):
            frame = factor.vectors if factor.rank < data.shape[axis] else None
        if frame is not None and with_constant:
            frame = np.linalg.qr(np.column_stack([frame, np.ones(len(frame))]))[0]
        if frame is not None and (compact or _is_small(data, [*frames, frame], core, axis)):
            frames[axis] = frame
            core = along(core, axis, frame.T)
    return tuple(frames), core


def _is_small(data: Tensor, frames: Sequence[Array | None], core: Tensor, axis: int) -> bool:
    """Return whether frames, the last one applied to the core along an axis, halve the data."""
    taken = [frame for frame in frames if frame is not None]
    left = core.size // core.shape[axis] * taken[-1].shape[1]
    return bool(2 * (sum(frame.size for frame in taken) + left) <= data.size)


def lost_energy(data: Tensor, core: Tensor) -> float:
    """Return the share of the sum of squares that the core does not hold."""
    largest = float(max(-data.min(), data.max()))
    if largest == 0:
        return 0.0
    return max(0.0, 1.0 - _sum_of_squares(core, largest) / _sum_of_squares(data, largest))


def _sum_of_squares(values: Tensor, unit: float) -> float:
    """Return the sum of the squares of numbers in some unit; no copy is made of a large array."""
    parts = (values[part].astype(np.float64) / unit for part in blocks(values.shape, AT_ONCE))
    return math.fsum(float(np.vdot(part, part)) for part in parts)
