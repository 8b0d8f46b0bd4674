"""Temperatures of the Intel lab from a matrix or raw readings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench.paper.lab_files import degrees, raw_lines
from scipy import ndimage

from dkrls_cli.bench.paper import intel_lab
from dkrls_cli.bench.paper.intel_lab import parse_reading, read_intel_lab, smooth
from dkrls_cli.errors import InputError


def test_raw_readings_become_a_grid(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("\n".join(raw_lines()) + "\n")
    rows, without = intel_lab.resample(logs_of(path))
    assert 7 in without
    assert 5 not in without
    assert set(without) == set(intel_lab.MOTES) - {1, 2, 3, 9}
    steps = np.arange(300, 400)
    for mote, row in zip((1, 2, 3, 9), rows, strict=True):
        exact = np.array([degrees(mote, step) for step in steps])
        gap = (steps >= 340) & (steps < 350) & (mote == 2)
        np.testing.assert_allclose(row[~gap], exact[~gap], atol=1e-5)
        np.testing.assert_allclose(row[gap], np.interp(steps, steps[~gap], exact[~gap])[gap])
    found = read_intel_lab(str(path))
    assert found.values.shape == (4, 100)
    assert "readings were dropped" in found.notes[0]
    assert "7" in found.notes[1]


def logs_of(path: Path) -> dict[int, intel_lab.MoteLog]:
    logs: dict[int, intel_lab.MoteLog] = {}
    for line in path.read_text().splitlines():
        reading = intel_lab.parse_reading(line)
        if reading is not None:
            logs.setdefault(reading.mote, intel_lab.MoteLog()).add(reading)
    return logs


def test_a_matrix_gives_the_window_of_the_paper(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(20, 1, (410, 52)).round(3)
    np.savetxt(tmp_path / "matrix.txt", matrix, fmt="%.3f")
    offsets = np.arange(6) - 2.5
    weights = np.exp(-np.add.outer(offsets**2, offsets**2) / 10)
    expected = ndimage.correlate(matrix[300:400].T, weights / weights.sum(), mode="reflect")
    np.testing.assert_allclose(read_intel_lab(str(tmp_path / "matrix.txt")).values, expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 2 3\n" * 500, "has 3 columns"),
        ("1 " * 52 + "\n", "less than 400 rows"),
        (("1 " * 52 + "\n") * 350 + "x " * 52, "row 351: could not convert"),
        (("1 " * 52 + "\n") * 350 + "1 1\n", "row 351: expected 52 finite numbers"),
        ("", "has 0 columns"),
        ("2004-02-28 00:00:00 1 1 99 0 0 9\n", "None of the 1 lines"),
        ("2004-02-28 00:00:00 1 1 20 0 0 2.7\n", "0 motes with readings"),
    ],
)
def test_files_that_are_neither_are_refused(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=why):
        read_intel_lab(str(path))


@pytest.mark.parametrize(
    ("temperature", "voltage", "mote", "good"),
    [
        (0.0, 2.7, 1, False),
        (0.1, 2.2, 1, True),
        (49.9, 3.2, 54, True),
        (50.0, 2.7, 1, False),
        (20.0, 2.19, 1, False),
        (20.0, 3.21, 1, False),
        (20.0, 2.7, 5, False),
        (20.0, 2.7, 15, False),
        (20.0, 2.7, 55, False),
        (20.0, 2.7, 0, False),
    ],
)
def test_readings_are_trusted_within_bounds(
    temperature: float, voltage: float, mote: int, good: bool
) -> None:
    line = f"2004-02-28 00:00:30.5 1 {mote} {temperature} 37 45 {voltage}"
    reading = parse_reading(line)
    assert (reading is not None) == good
    if reading is not None:
        assert (reading.mote, reading.degrees) == (mote, temperature)
        assert reading.time == 58 * 86400 + 30.5


def test_the_middle_of_a_constant_field_stays_and_weights_sum_to_one() -> None:
    np.testing.assert_allclose(smooth(np.full((9, 12), 21.5)), 21.5, rtol=1e-14)


def test_a_mote_needs_readings_in_half_of_the_steps() -> None:
    def log(steps: int) -> intel_lab.MoteLog:
        found = intel_lab.MoteLog()
        for step in [0, *range(300, 300 + steps)]:
            found.add(intel_lab.Reading(1, 30.0 * step + 1.0, 20.0))
        return found

    rows, without = intel_lab.resample({1: log(50), 2: log(49)})
    assert len(rows) == 1
    assert 2 in without
    assert 1 not in without


def test_a_step_has_the_mean_of_its_readings() -> None:
    log = intel_lab.MoteLog()
    for step in [0, *range(300, 400)]:
        for degrees_there in (20.0, 22.0):
            log.add(intel_lab.Reading(1, 30.0 * step + degrees_there, degrees_there))
    ((row,), _) = intel_lab.resample({1: log})
    np.testing.assert_allclose(row, 21.0)
