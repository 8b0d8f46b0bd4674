"""Times of fits, predictions, tuning and whole commands, as ratios measured in one run."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from dkrls_cli.arrays import Array
from dkrls_cli.bench.machine import median_seconds
from dkrls_cli.bench.paper.published import PAPER_SIGMAS, paper_3d, paper_3d_split
from dkrls_cli.bench.rivals.interpolators import INTERPOLATORS, make_problem
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import to_data_array
from dkrls_cli.model import fit as fitting

# Length scales for the paper's 3D data that are longer than its own: the fit has a lower rank.
LONG_SIGMAS = (2.0, 2.6, 4.0)

GROWING = (
    *((m, m, m) for m in (32, 64, 128, 256)),
    *((m,) * n for n, m in ((1, 1024), (2, 512), (4, 23), (5, 12), (6, 8))),
)
"""Grids that show how cost grows: with the samples of three dimensions, and with the number of
dimensions at a quarter of a million cells, of which 64 x 64 x 64 is one. One dimension has only a
thousand samples, as its matrix would not fit in memory otherwise."""


@dataclass(frozen=True)
class Measure:
    """A measured number, with its unit or what it is a ratio to."""

    what: str
    value: float
    unit: str


def gaussian_levels(sigmas: Sequence[float], ridge: float) -> list[Level]:
    """Return one level with a Gaussian kernel per sigma."""
    return [Level(f"d{i}", Kernel(sigma=sigma), ridge) for i, sigma in enumerate(sigmas)]


def make_bare_products(values: Array) -> Callable[[], None]:
    """Return a job of one matrix product per dimension over the whole array.

    It is a lower bound for the time of a dense fit.
    """
    rng = np.random.default_rng(0)
    squares = [rng.standard_normal((n, n)) for n in values.shape]

    def run() -> None:
        for axis, square in enumerate(squares):
            before = int(np.prod(values.shape[:axis], dtype=int))
            if axis == values.ndim - 1:
                np.matmul(values.reshape(-1, values.shape[-1]), square)
            else:
                np.matmul(square, values.reshape(before, values.shape[axis], -1))

    return run


def measure_speed(repeats: int = 9) -> Iterator[Measure]:
    """Yield times of fits and predictions relative to matrix products and scipy, one thread."""
    from scipy.interpolate import RegularGridInterpolator

    train, held = paper_3d_split(0)
    smooth = paper_3d(train)
    noisy = smooth + 1e-3 * np.random.default_rng(1).standard_normal(smooth.shape)
    rng = np.random.default_rng(2)
    points = [rng.uniform(c.min(), c.max(), 10**6) for c in train]
    with threadpool_limits(limits=1):
        bound = median_seconds(make_bare_products(smooth), repeats)
        yield Measure("one matrix product per dimension, 116 x 120 x 80", 1e3 * bound, "ms")
        for name, values, counts in (
            ("smooth", smooth, [10**6]),
            ("noisy", noisy, [10**5, 10**6]),
        ):
            linear = RegularGridInterpolator(train, values)
            rivals = {
                count: median_seconds(partial(linear, np.stack(points, axis=1)[:count]), 3)
                for count in counts
            }
            for sigmas in (PAPER_SIGMAS, LONG_SIGMAS):
                fit_seconds = median_seconds(
                    partial(fit_cascade, values, train, gaussian_levels(sigmas, 1e-12)), repeats
                )
                trained = fit_cascade(values, train, gaussian_levels(sigmas, 1e-12))
                predict_seconds = median_seconds(partial(trained.predict, held), repeats)
                which = f"{name}, sigmas {', '.join(map(str, sigmas))}"
                yield Measure(f"fit, {which}", fit_seconds / bound, "x the products")
                yield Measure(
                    f"grid of 29 x 30 x 20, {which}", predict_seconds / fit_seconds, "x the fit"
                )
                for count, rival in rivals.items():
                    ask = partial(trained.predict_points, [p[:count] for p in points])
                    ratio = _seconds_once(ask) / rival
                    yield Measure(f"{count} points, {which}", ratio, "x scipy linear")
        for shape in GROWING:
            yield from measure_growth(shape)


def measure_growth(shape: tuple[int, ...]) -> Iterator[Measure]:
    """Yield times of a fit of noise, which has full rank, and of predictions between all cells."""
    size = " x ".join(map(str, shape))
    values = np.random.default_rng(3).standard_normal(shape)
    axes = [np.arange(float(n)) for n in shape]
    rough = [Level(f"d{i}", Kernel("matern32", 2.0), 1e-2) for i in range(len(shape))]
    repeats = 5 if values.size < 10**6 else 1
    bound = median_seconds(make_bare_products(values), repeats)
    trained = fit_cascade(values, axes, rough)
    fit_seconds = median_seconds(partial(fit_cascade, values, axes, rough), repeats)
    predict_seconds = median_seconds(
        partial(trained.predict, [axis[:-1] + 0.5 for axis in axes]), repeats
    )
    yield Measure(f"one matrix product per dimension, {size}", 1e3 * bound, "ms")
    yield Measure(f"fit, noise, {size}", fit_seconds / bound, "x the products")
    yield Measure(f"all midpoints, noise, {size}", predict_seconds / bound, "x the products")


def _seconds_once(job: Callable[[], object]) -> float:
    """Return the time of one run of a job that is too long to need a warm-up."""
    start = perf_counter()
    job()
    return perf_counter() - start


def measure_large(size: int = 400) -> Iterator[Measure]:
    """Yield memory and speed of a fit of full rank on size^3 cells, on all cores."""
    rng = np.random.default_rng(0)
    axis = np.arange(float(size))
    values = rng.standard_normal((size, size, size))
    short = [Level(name, Kernel("matern12", 0.5)) for name in "xyz"]
    square = rng.standard_normal((2000, 2000))
    peak_rate = 2 * 2000**3 / median_seconds(lambda: square @ square, 5)

    def run() -> Cascade:
        return fit_cascade(values, [axis] * 3, short)

    tracemalloc.start()
    trained = run()
    extra = tracemalloc.get_traced_memory()[1] / values.nbytes
    tracemalloc.stop()
    work = 2.0 * values.size * 3 * size
    yield Measure(f"memory of a fit of {size}^3, model included", extra, "x the input")
    rate = work / median_seconds(run, 1)
    yield Measure("fit, counted as one product per dimension", rate / peak_rate, "x the dgemm rate")
    middle = axis[:-1] + 0.5
    rate = work / median_seconds(lambda: trained.predict([middle] * 3), 1)
    yield Measure(f"predict on {size - 1}^3 new cells", rate / peak_rate, "x the dgemm rate")


def measure_tuning(repeats: int = 5) -> Iterator[Measure]:
    """Yield times of a fit with all settings tuned, relative to splines and to the fit alone."""
    train, held = paper_3d_split(0)
    values = paper_3d(train)
    named = dict(zip("xyz", train, strict=True))
    cube = np.linspace(0, 10, 200)
    large_values = paper_3d([cube, cube, cube])
    cubes = dict.fromkeys("xyz", cube)
    with threadpool_limits(limits=1):
        problem = make_problem(values, train, dict(enumerate(held)))
        splines = median_seconds(partial(INTERPOLATORS["spline5"].solve, problem), repeats)
        tuned = median_seconds(lambda: fitting.fit(values, named), repeats)
        whole = median_seconds(lambda: fitting.fit(large_values, cubes), 3)
        alone = median_seconds(
            lambda: fit_cascade(large_values, [cube] * 3, gaussian_levels((1, 1, 1), 1e-10)), 3
        )
    yield Measure("tuning and fit, 116 x 120 x 80", tuned / splines, "x quintic splines")
    yield Measure("tuning and fit, 200^3", whole / alone, "x the fit alone")


def measure_startup(repeats: int = 7) -> Iterator[Measure]:
    """Yield times of whole commands relative to the imports and reads that they need."""
    bare = "import typer; app = typer.Typer(); app.command('a')(lambda: None)\n"
    bare += "app.command('b')(lambda: None); app(['--help'])"
    with TemporaryDirectory() as folder:
        grid, saved = Path(folder) / "grid.nc", Path(folder) / "model.npz"
        _write_paper_grid(grid)
        ours = [sys.executable, "-m", "dkrls_cli"]
        given = ["--sigma", "1", "--ridge", "1e-10", "--kernel", "gaussian"]
        fitting = [*ours, "fit", str(grid), *given, "--overwrite", "-o", str(saved)]
        asking = [*ours, "predict", str(saved), "--at", "x=1", "--at", "y=2", "--at", "z=3"]
        load = f"import xarray, netCDF4; xarray.open_dataset(r'{grid}').load()"
        races = {
            ("--help", "a bare Typer app"): ([*ours, "--help"], bare),
            ("fit", "loading the file with xarray"): (fitting, load),
            ("predict of a point", "importing numpy and typer"): (asking, "import numpy, typer"),
        }
        for (name, other), (own, code) in races.items():
            bound = _command_seconds([sys.executable, "-c", code], repeats)
            yield Measure(name, _command_seconds(own, repeats) / bound, f"x {other}")


def _write_paper_grid(path: Path) -> None:
    """Write the paper's 3D training grid as NetCDF."""
    train, _ = paper_3d_split(0)
    axes = [axis_of(name, c) for name, c in zip("xyz", train, strict=True)]
    to_data_array(paper_3d(train), axes, "xi", {}).to_netcdf(path)


def _command_seconds(words: Sequence[str], repeats: int) -> float:
    """Return the median time of a command in a process of its own."""
    return median_seconds(lambda: subprocess.run(words, check=True, capture_output=True), repeats)
