"""What the clocks measure: names, units and ratios, with times that the tests set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dkrls_cli.bench import speed
from dkrls_cli.bench.speed import LONG_SIGMAS, Measure, gaussian_levels, make_bare_products
from dkrls_cli.cascade.kernels import Kernel


@pytest.mark.parametrize("shape", [(5,), (4, 5), (3, 4, 5)])
def test_the_bound_is_one_product_per_dimension(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    operations: list[int] = []
    matmul = np.matmul

    def counted(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = matmul(a, b)
        operations.append(result.size * a.shape[-1])
        return np.asarray(result)

    monkeypatch.setattr(speed.np, "matmul", counted)
    make_bare_products(np.ones(shape))()
    size = int(np.prod(shape))
    assert operations == [size * n for n in shape]


def test_levels_have_one_kernel_per_sigma() -> None:
    levels = gaussian_levels((2.0, 3.0), 1e-3)
    assert [(lv.name, lv.kernel.sigma, lv.ridge) for lv in levels] == [
        ("d0", 2.0, 1e-3),
        ("d1", 3.0, 1e-3),
    ]
    assert [lv.kernel for lv in levels] == [Kernel(sigma=2.0), Kernel(sigma=3.0)]


def test_growth_is_relative_to_the_products_of_the_same_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = iter([0.5, 1.0, 2.0])
    repeats: list[int] = []

    def timed(job: Callable[[], object], count: int) -> float:
        job()
        repeats.append(count)
        return next(seconds)

    monkeypatch.setattr(speed, "median_seconds", timed)
    assert list(speed.measure_growth((5, 4))) == [
        Measure("one matrix product per dimension, 5 x 4", 500.0, "ms"),
        Measure("fit, noise, 5 x 4", 2.0, "x the products"),
        Measure("all midpoints, noise, 5 x 4", 4.0, "x the products"),
    ]
    assert repeats == [5, 5, 5]


def test_grids_of_two_to_six_dimensions_have_about_as_many_cells() -> None:
    cells = {len(shape): np.prod(shape) for shape in speed.GROWING} | {3: 64**3}
    assert (64, 64, 64) in speed.GROWING
    assert sorted(cells) == [1, 2, 3, 4, 5, 6]
    assert max(cells[n] for n in range(2, 7)) < 1.2 * min(cells[n] for n in range(2, 7))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's grid with few cells, and times of 2 s for the first job, 3 s for the next, ..."""
    train = [np.linspace(0.1, 3.0, n) for n in (8, 7, 6)]
    held = [axis[:-1] + 0.05 for axis in train]
    monkeypatch.setattr(speed, "paper_3d_split", lambda seed: (train, held))
    times = iter(range(2, 10_000))

    def timed(job: Callable[[], object], repeats: int = 1) -> float:
        job()
        return float(next(times))

    monkeypatch.setattr(speed, "median_seconds", timed)
    monkeypatch.setattr(speed, "_seconds_once", timed)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_speed_is_relative_to_products_fits_and_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "GROWING", ((3, 3),))
    found = list(speed.measure_speed(repeats=1))
    assert [m.value for m in found[:7]] == [2000, 4 / 2, 5 / 4, 6 / 3, 7 / 2, 8 / 7, 9 / 3]
    assert [m.unit for m in found[1:4]] == ["x the products", "x the fit", "x scipy linear"]
    assert found[1].what == "fit, smooth, sigmas 1.0, 0.3, 1.0"
    assert found[3].what.startswith("1000000 points, smooth")
    assert found[6].what.endswith(f"sigmas {', '.join(map(str, LONG_SIGMAS))}")
    assert found[9].what.startswith("100000 points, noisy")
    assert found[10].what.startswith("1000000 points, noisy")
    assert [m.value for m in found[9:11]] == [14 / 10, 15 / 11]
    assert [m.what for m in found[-2:]] == ["fit, noise, 3 x 3", "all midpoints, noise, 3 x 3"]


@pytest.mark.usefixtures("tiny")
def test_tuning_is_relative_to_splines_and_to_the_fit_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    linspace = np.linspace
    monkeypatch.setattr(speed.np, "linspace", lambda a, b, n: linspace(a, b, min(n, 9)))
    splines, whole = speed.measure_tuning(repeats=1)
    assert (splines.value, splines.unit) == (3 / 2, "x quintic splines")
    assert (whole.value, whole.unit) == (4 / 5, "x the fit alone")


@pytest.mark.usefixtures("tiny")
def test_a_large_fit_is_relative_to_the_rate_of_a_product() -> None:
    memory, fit, predict = speed.measure_large(size=12)
    assert memory.unit == "x the input"
    assert 0 < memory.value < 100
    rate = 2 * 2000**3 / 2
    assert fit.value == pytest.approx(2.0 * 12**4 * 3 / 3 / rate)
    assert predict.value == pytest.approx(2.0 * 12**4 * 3 / 4 / rate)
    assert (memory.what, predict.what) == (
        "memory of a fit of 12^3, model included",
        "predict on 11^3 new cells",
    )


@pytest.mark.usefixtures("tiny")
def test_commands_are_relative_to_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(words: list[str], **options: Any) -> None:
        assert options == {"check": True, "capture_output": True}
        commands.append(words)

    monkeypatch.setattr(speed.subprocess, "run", run)
    found = list(speed.measure_startup(repeats=1))
    assert [(m.what, m.unit) for m in found] == [
        ("--help", "x a bare Typer app"),
        ("fit", "x loading the file with xarray"),
        ("predict of a point", "x importing numpy and typer"),
    ]
    assert [m.value for m in found] == [3 / 2, 5 / 4, 7 / 6]
    assert [words[1] for words in commands] == ["-c", "-m"] * 3
    assert [words[3] for words in commands[1::2]] == ["--help", "fit", "predict"]
