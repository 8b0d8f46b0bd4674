"""Cascades in records: what comes back, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kept_records import KERNELS, NEW, NOISE, SMOOTH, T, X, fitted, through_a_file

from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.model.records.cascades import cascade_from, cascade_record

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"joint": 1e-2, "mean": 0.3},
        {"values": SMOOTH},
        {"values": SMOOTH, "mean": 2.0},
        {"dtype": np.float32},
        {"compact": True},
    ],
    ids=["level", "joint", "framed", "about a mean", "single", "compact"],
)
def test_a_cascade_comes_back(how: dict[str, Any]) -> None:
    model = fitted(**how)
    header, arrays = cascade_record(model)
    again = cascade_from(through_a_file(header), arrays)
    assert again.levels == model.levels
    assert (again.joint_ridge, again.mean) == (model.joint_ridge, model.mean)
    assert (again.dropped, again.compact) == (model.dropped, model.compact)
    assert again.core.dtype == model.core.dtype
    for smooth in (False, True):
        np.testing.assert_array_equal(
            again.predict(NEW, smooth=smooth), model.predict(NEW, smooth=smooth)
        )


def test_a_record_holds_no_factors_and_computes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    model = replace(fitted(), factors=(None, None))
    monkeypatch.setattr(Cascade, "spectra", None)
    header, arrays = cascade_record(model)
    assert sorted(arrays) == ["coordinates_0", "coordinates_1", "core"]
    assert cascade_from(header, arrays).factors == (None, None)


@pytest.mark.parametrize(
    ("smallest", "triangular", "compact"),
    [
        ((0.1, 0.1), None, True),
        ((0.1, 1e-16), None, False),
        ((0.0, 0.1), [False, False], False),
        ((0.1, 0.1), [True, False], False),
        ((0.1, 0.1), [False, False], True),
    ],
)
def test_older_records_are_compact_if_no_direction_is_round_off(
    smallest: tuple[float, float], triangular: list[bool] | None, compact: bool
) -> None:
    header, arrays = cascade_record(fitted())
    del header["compact"]
    if triangular is not None:
        header["triangular"] = triangular
    for i, least in enumerate(smallest):
        arrays[f"spectrum_{i}"] = np.array([2.0, 1.0, least])
    assert cascade_from(header, arrays).compact == compact
    del arrays["spectrum_1"]
    with pytest.raises(KeyError):
        cascade_from(header, arrays)


def cut(name: str, axis: int = 0) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[name] = np.delete(arrays[name], 0, axis)

    return change


WRONG = {
    "coordinates": (cut("coordinates_0"), "level 'x'"),
    "rows of a frame": (cut("frame_0", 0), "level 'x'"),
    "columns of a frame": (cut("frame_0", 1), "level 'x'"),
    "core along a frame": (cut("core", 0), "level 'x'"),
    "core along samples": (cut("core", 1), "level 't'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_arrays_that_do_not_fit_together_are_refused(what: str) -> None:
    """The data is framed along x only."""
    framed = np.outer(np.sin(3 * X), RNG.standard_normal(20)) + np.outer(X, NOISE[0])
    header, arrays = cascade_record(fitted(framed))
    if "frame_1" in arrays:  # the other axis in samples
        arrays["core"] = arrays["core"] @ arrays.pop("frame_1").T
    assert cascade_from(header, arrays).shape == (30, 20)
    change, message = WRONG[what]
    change(header, arrays)
    with pytest.raises(ValueError, match=f"arrays of {message} do not fit together"):
        cascade_from(header, arrays)


@pytest.mark.parametrize("shape", [(30,), (30, 20, 1)])
def test_a_core_has_one_axis_per_level(shape: tuple[int, ...]) -> None:
    header, arrays = cascade_record(fitted())
    arrays["core"] = np.zeros(shape)
    with pytest.raises(ValueError, match=f"2 levels for {len(shape)} axes"):
        cascade_from(header, arrays)


def test_a_spline_with_pieces_comes_back_and_wrong_pieces_are_refused() -> None:
    kernel = Kernel("linear", 4.0, errors="matern32", pieces=(Piece("cubic", 3.0, 4.0),))
    levels = [Level("x", KERNELS[0], 1e-3), Level("t", kernel, 0.0)]
    cascade = fit_cascade(SMOOTH, [X, T], levels)
    header, arrays = cascade_record(cascade)
    read = cascade_from(through_a_file(header), arrays)
    assert read.levels == cascade.levels
    assert np.array_equal(read.predict(NEW), cascade.predict(NEW))
    for pieces in ([], [["quintic", 3.0, 4.0]], [["cubic", 4.0, 3.0]]):
        wrong = through_a_file(header)
        wrong["levels"][1]["pieces"] = pieces
        with pytest.raises(ValueError, match=r"pieces"):
            cascade_from(wrong, arrays)
