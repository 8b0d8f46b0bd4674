"""Growth of cost with cells: slopes of known times, limits of the series, and the grids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dkrls_cli.bench import growth
from dkrls_cli.bench.growth import Growth, make_thin_products, make_waves, measure_cells, slopes


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
def test_the_slope_is_the_power_of_the_cells(power: float) -> None:
    times = [Growth(10**n, 3e-8 * 10 ** (power * n), 2e-9 * 10**n, 1.0) for n in (5, 6, 8)]
    fit, predict = slopes(times)
    assert fit.value == pytest.approx(power)
    assert predict.value == pytest.approx(1.0)
    assert (fit.what, fit.unit) == ("growth of a fit, 10^5 to 10^8 cells", "slope, 1 is linear")
    assert list(slopes(times[:1])) == []


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sides that were measured; a cell takes a microsecond of the clock."""
    sides: list[int] = []
    clock = [0.0]

    def measure(side: int) -> Growth:
        sides.append(side)
        clock[0] += 1e-6 * side**3 * (6 if side**3 <= 10**7 else 1)
        return Growth(side**3, 4e-9 * side**3, 2e-9 * side**3, 1e-9 * side**3)

    monkeypatch.setattr(growth, "measure_side", measure)
    monkeypatch.setattr(growth, "perf_counter", lambda: clock[0])
    return sides


def test_sizes_are_told_by_the_million_and_beside_products(measured: list[int]) -> None:
    found = list(measure_cells(1e9, sides=(10, 20), free=np.inf))
    assert measured == [10, 20]
    told = [(m.what, pytest.approx(m.value), m.unit) for m in found[:4]]
    assert told == [
        ("compact fit, fixed ranks, 10^3", 4.0, "ms a million cells"),
        ("the same, 10^3", 4.0, "x the products"),
        ("all midpoints, fixed ranks, 10^3", 2.0, "ms a million cells"),
        ("the same, 10^3", 2.0, "x the products"),
    ]
    assert [m.value for m in found[-2:]] == [pytest.approx(1.0)] * 2


@pytest.mark.parametrize(
    ("seconds", "count"), [(0.0, 1), (7.9, 1), (8.1, 2), (63.9, 2), (64.1, 3), (1e9, 3)]
)
def test_the_series_ends_before_a_size_that_takes_too_long(
    seconds: float, count: int, measured: list[int]
) -> None:
    """Several runs of a small size count as one of a large size."""
    list(measure_cells(seconds, sides=(100, 200, 400), free=np.inf))
    assert measured == [100, 200, 400][:count]


@pytest.mark.parametrize(("free", "count"), [(5.9e6, 0), (6e6, 1), (47e6, 1), (48e6, 2)])
def test_the_series_ends_before_a_size_that_needs_too_much_memory(
    free: float, count: int, measured: list[int]
) -> None:
    list(measure_cells(1e9, sides=(100, 200), free=free))
    assert measured == [100, 200][:count]


def test_sizes_span_three_decades() -> None:
    assert growth.SIDES[-1] ** 3 / growth.SIDES[0] ** 3 == pytest.approx(1000, rel=0.05)


def test_a_cube_is_measured_at_ranks_that_do_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[float] = []
    ranks: list[tuple[int, ...]] = []

    def timed(job: Callable[[], object], runs: int) -> float:
        assert runs == 6
        job()
        jobs.append(float(len(jobs) + 1))
        return jobs[-1]

    def products(values: np.ndarray, sizes: tuple[int, ...]) -> Callable[[], None]:
        ranks.append(sizes)
        return make_thin_products(values, sizes)

    monkeypatch.setattr(growth, "_seconds", timed)
    monkeypatch.setattr(growth, "make_thin_products", products)
    assert growth.measure_side(24) == Growth(24**3, 1.0, 2.0, 3.0)
    assert growth.measure_side(48) == Growth(48**3, 4.0, 5.0, 6.0)
    assert max(ranks[1]) <= max(ranks[0]) + 3 < 24


def test_a_large_cube_is_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_FEW", 1)
    runs: list[int] = []
    monkeypatch.setattr(growth, "_seconds", lambda job, runs: (job(), note(runs))[1])

    def note(count: int) -> float:
        runs.append(count)
        return 1.0

    assert not growth.measure_side(12).is_small
    assert runs == [1, 1, 1]


@pytest.mark.parametrize(("runs", "expected"), [(1, 9.0), (4, 2.0)])
def test_times_are_those_of_the_processor(
    runs: int, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run of several is no matter."""
    ticks = iter([0.0, 9.0, 10.0, 11.0, 20.0, 22.0, 30.0, 37.0])
    monkeypatch.setattr(growth, "process_time", lambda: next(ticks))
    assert growth._seconds(lambda: None, runs) == expected


def test_waves_are_in_single_precision_and_nobody_can_change_them() -> None:
    values = make_waves(20)
    assert (values.shape, values.dtype, values.flags.writeable) == ((20,) * 3, "float32", False)
    assert 9 < values.mean() < 11
    finer = make_waves(39)[::2, ::2, ::2]  # the same field, but for the noise
    assert np.abs(values - finer).std() < 0.1


def test_thin_products_take_every_axis_to_its_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, ...]] = []
    matmul = np.matmul

    def counted(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        shapes.append((result := matmul(a, b)).shape)
        return np.asarray(result)

    monkeypatch.setattr(growth.np, "matmul", counted)
    make_thin_products(np.ones((7, 8, 9), np.float32), (2, 3, 4))()
    assert shapes == [(7, 4, 3), (2, 12)]
