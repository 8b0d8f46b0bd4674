"""What fits, answers, choices and whole commands cost, as ratios measured in one run."""

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
from dkrls_cli.bench.machine import seconds
from dkrls_cli.bench.paper.data import PAPER_SIGMAS, paper_3d, paper_3d_split
from dkrls_cli.bench.rivals import RIVALS, problem_of
from dkrls_cli.cascade.cascade import Cascade
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import to_data_array
from dkrls_cli.model import fit as fitting

LONG_SIGMAS = (2.0, 2.6, 4.0)

GROWING = (
    *((m, m, m) for m in (32, 64, 128, 256)),
    *((m,) * n for n, m in ((1, 1024), (2, 512), (4, 23), (5, 12), (6, 8))),
)
"""Grids that show how cost grows: with the samples of three dimensions, and with the number of
dimensions at a quarter of a million cells, of which 64 x 64 x 64 is one. A single dimension of that
many would need a matrix beyond any memory; it has a thousand."""


@dataclass(frozen=True)
class Measure:
    """A number that was measured, and in what it is counted: a unit, or what it is a ratio to."""

    what: str
    value: float
    unit: str


def levels(sigmas: Sequence[float], ridge: float) -> list[Level]:
    """Gaussian levels, one per sigma."""
    return [Level(f"d{i}", Kernel(sigma=sigma), ridge) for i, sigma in enumerate(sigmas)]


def bare_products(values: Array) -> Callable[[], None]:
    """One plain matrix product per dimension over the full array: the bound of a dense fit."""
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


def speed(repeats: int = 9) -> Iterator[Measure]:
    """Fit and predict against the bare matrix products and scipy, one BLAS thread."""
    from scipy.interpolate import RegularGridInterpolator

    train, held = paper_3d_split(0)
    smooth = paper_3d(train)
    noisy = smooth + 1e-3 * np.random.default_rng(1).standard_normal(smooth.shape)
    points = [np.random.default_rng(2).uniform(c.min(), c.max(), 10**6) for c in train]
    with threadpool_limits(limits=1):
        bound = seconds(bare_products(smooth), repeats)
        yield Measure("one matrix product per dimension, 116 x 120 x 80", 1e3 * bound, "ms")
        for name, values, count in (("smooth", smooth, 10**6), ("noisy", noisy, 10**5)):
            some = [p[:count] for p in points]
            linear = RegularGridInterpolator(train, values)
            rival = seconds(partial(linear, np.stack(some, axis=1)), 3)
            for sigmas in (PAPER_SIGMAS, LONG_SIGMAS):
                fitting = seconds(
                    partial(fit_cascade, values, train, levels(sigmas, 1e-12)), repeats
                )
                trained = fit_cascade(values, train, levels(sigmas, 1e-12))
                asking = seconds(partial(trained.predict, held), repeats)
                scattered = _once(partial(trained.predict_points, some))
                which = f"{name}, sigmas {', '.join(map(str, sigmas))}"
                yield Measure(f"fit, {which}", fitting / bound, "x the products")
                yield Measure(f"grid of 29 x 30 x 20, {which}", asking / fitting, "x the fit")
                yield Measure(f"{count} points, {which}", scattered / rival, "x scipy linear")
        for shape in GROWING:
            yield from _growth(shape)


def _growth(shape: tuple[int, ...]) -> Iterator[Measure]:
    """A fit of noise, of which nothing can be left out, and answers midway between all cells."""
    size = " x ".join(map(str, shape))
    values = np.random.default_rng(3).standard_normal(shape)
    axes = [np.arange(float(n)) for n in shape]
    rough = [Level(f"d{i}", Kernel("matern32", 2.0), 1e-2) for i in range(len(shape))]
    repeats = 5 if values.size < 10**6 else 1
    bound = seconds(bare_products(values), repeats)
    trained = fit_cascade(values, axes, rough)
    fitting = seconds(partial(fit_cascade, values, axes, rough), repeats)
    asking = seconds(partial(trained.predict, [axis[:-1] + 0.5 for axis in axes]), repeats)
    yield Measure(f"one matrix product per dimension, {size}", 1e3 * bound, "ms")
    yield Measure(f"fit, noise, {size}", fitting / bound, "x the products")
    yield Measure(f"all midpoints, noise, {size}", asking / bound, "x the products")


def _once(job: Callable[[], object]) -> float:
    """Time of a job that is long enough not to need a warm-up."""
    start = perf_counter()
    job()
    return perf_counter() - start


def large(size: int = 400) -> Iterator[Measure]:
    """Memory and rate of a fit at full rank on size^3 cells, all cores."""
    rng = np.random.default_rng(0)
    axis = np.arange(float(size))
    values = rng.standard_normal((size, size, size))
    short = [Level(name, Kernel("matern12", 0.5)) for name in "xyz"]
    square = rng.standard_normal((2000, 2000))
    peak_rate = 2 * 2000**3 / seconds(lambda: square @ square, 5)

    def run() -> Cascade:
        return fit_cascade(values, [axis] * 3, short)

    tracemalloc.start()
    trained = run()
    extra = tracemalloc.get_traced_memory()[1] / values.nbytes
    tracemalloc.stop()
    work = 2.0 * values.size * 3 * size
    yield Measure(f"memory of a fit of {size}^3, model included", extra, "x the input")
    rate = work / seconds(run, 1)
    yield Measure("fit, counted as one product per dimension", rate / peak_rate, "x the dgemm rate")
    middle = axis[:-1] + 0.5
    rate = work / seconds(lambda: trained.predict([middle] * 3), 1)
    yield Measure(f"predict on {size - 1}^3 new cells", rate / peak_rate, "x the dgemm rate")


def tuning(repeats: int = 5) -> Iterator[Measure]:
    """Choosing all settings and fitting against quintic splines, one BLAS thread."""
    train, held = paper_3d_split(0)
    values = paper_3d(train)
    named = dict(zip("xyz", train, strict=True))
    cube = np.linspace(0, 10, 200)
    large_values = paper_3d([cube, cube, cube])
    cubes = dict.fromkeys("xyz", cube)
    with threadpool_limits(limits=1):
        problem = problem_of(values, train, dict(enumerate(held)))
        splines = seconds(partial(RIVALS["spline5"].answer, problem), repeats)
        tuned = seconds(lambda: fitting.fit(values, named), repeats)
        whole = seconds(lambda: fitting.fit(large_values, cubes), 3)
        alone = seconds(lambda: fit_cascade(large_values, [cube] * 3, levels((1, 1, 1), 1e-10)), 3)
    yield Measure("tuning and fit, 116 x 120 x 80", tuned / splines, "x quintic splines")
    yield Measure("tuning and fit, 200^3", whole / alone, "x the fit alone")


def startup(repeats: int = 7) -> Iterator[Measure]:
    """Whole commands against what they cannot do without."""
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
            bound = _command_time([sys.executable, "-c", code], repeats)
            yield Measure(name, _command_time(own, repeats) / bound, f"x {other}")


def _write_paper_grid(path: Path) -> None:
    train, _ = paper_3d_split(0)
    axes = [axis_of(name, c) for name, c in zip("xyz", train, strict=True)]
    to_data_array(paper_3d(train), axes, "xi", {}).to_netcdf(path)


def _command_time(words: Sequence[str], repeats: int) -> float:
    return seconds(lambda: subprocess.run(words, check=True, capture_output=True), repeats)
