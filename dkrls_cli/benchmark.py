"""Races that print ratios measured in one run.

``python -m dkrls_cli.benchmark`` runs speed, tuning and startup; ``... real FILE...`` races the
default fit against scipy's interpolation on held-out parts of any grid.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from threadpoolctl import threadpool_limits

from dkrls_cli import model
from dkrls_cli.axes import axis_of
from dkrls_cli.cascade import Cascade, fit
from dkrls_cli.grid import Grid, to_data_array
from dkrls_cli.kernels import Array, Kernel
from dkrls_cli.levels import Level
from dkrls_cli.metrics import coverage90
from dkrls_cli.reading import open_source
from dkrls_cli.settings import is_time
from dkrls_cli.splits import Split, alternate_split, random_split

PAPER_3D_SIZES = (145, 150, 100)
PAPER_3D_ENDS = (4 * np.pi, 8 * np.pi, 12 * np.pi)
PAPER_SIGMAS = (1.0, 0.3, 1.0)
LONG_SIGMAS = (2.0, 2.6, 4.0)


def paper_3d(coordinates: Sequence[Array]) -> Array:
    """The paper's three-dimensional function (section 3.2) on a product grid."""
    x, d1, d2 = coordinates
    return np.asarray(np.cos(x)[:, None, None] * np.sin(d1 / 2)[:, None] * np.sin(d2 / 3))


def paper_3d_split(seed: int) -> tuple[list[Array], list[Array]]:
    """Training (116 x 120 x 80) and validation (29 x 30 x 20) coordinates of the 3D grid."""
    rng = np.random.default_rng(seed)
    axes = [np.linspace(0.1, end, n) for n, end in zip(PAPER_3D_SIZES, PAPER_3D_ENDS, strict=True)]
    splits = [random_split(axis.size, 0.2, rng) for axis in axes]
    return (
        [axis[s.train] for axis, s in zip(axes, splits, strict=True)],
        [axis[s.held] for axis, s in zip(axes, splits, strict=True)],
    )


def levels(sigmas: Sequence[float], ridge: float) -> list[Level]:
    """Gaussian levels, one per sigma."""
    return [Level(f"d{i}", Kernel(sigma=sigma), ridge) for i, sigma in enumerate(sigmas)]


def seconds(job: Callable[[], object], repeats: int) -> float:
    """Median time of a job after one warm-up."""
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


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


def speed(repeats: int = 9) -> None:
    """Fit and predict against the bare matrix products and scipy, one BLAS thread."""
    from scipy.interpolate import RegularGridInterpolator

    train, held = paper_3d_split(0)
    smooth = paper_3d(train)
    noisy = smooth + 1e-3 * np.random.default_rng(1).standard_normal(smooth.shape)
    points = [np.random.default_rng(2).uniform(c.min(), c.max(), 10**6) for c in train]
    with threadpool_limits(limits=1):
        bound = seconds(bare_products(smooth), repeats)
        print(f"one matrix product per dimension, 116 x 120 x 80: {1e3 * bound:.1f} ms")
        for name, values, count in (("smooth", smooth, 10**6), ("noisy", noisy, 10**5)):
            some = [p[:count] for p in points]
            linear = RegularGridInterpolator(train, values)
            rival = seconds(partial(linear, np.stack(some, axis=1)), 3)
            for sigmas in (PAPER_SIGMAS, LONG_SIGMAS):
                fitting = seconds(partial(fit, values, train, levels(sigmas, 1e-12)), repeats)
                trained = fit(values, train, levels(sigmas, 1e-12))
                asking = seconds(partial(trained.predict, held), repeats)
                scattered = seconds(partial(trained.predict_points, some), 1)
                print(
                    f"{name}, sigmas {sigmas}: fit {fitting / bound:.2f} x the products, "
                    f"grid of 29 x 30 x 20 {asking / fitting:.2f} x the fit, "
                    f"{count} points {scattered / rival:.1f} x scipy linear"
                )


def large(size: int = 400) -> None:
    """Memory and rate of a fit at full rank on size^3 cells, all cores."""
    rng = np.random.default_rng(0)
    axis = np.arange(float(size))
    values = rng.standard_normal((size, size, size))
    short = [Level(name, Kernel("matern12", 0.5)) for name in "xyz"]
    square = rng.standard_normal((2000, 2000))
    peak_rate = 2 * 2000**3 / seconds(lambda: square @ square, 5)

    def run() -> Cascade:
        return fit(values, [axis] * 3, short)

    tracemalloc.start()
    trained = run()
    extra = tracemalloc.get_traced_memory()[1] / values.nbytes
    tracemalloc.stop()
    work = 2.0 * values.size * 3 * size
    rate = work / seconds(run, 1)
    print(f"{size}^3 at full rank: fit uses {extra:.2f} x the input in memory, model included")
    print(f"  fit: {rate / peak_rate:.2f} x the dgemm rate, counted as one product per dimension")
    middle = axis[:-1] + 0.5
    rate = work / seconds(lambda: trained.predict([middle] * 3), 1)
    print(f"  predict on {size - 1}^3 new cells: {rate / peak_rate:.2f} x the dgemm rate")


def tuning(repeats: int = 5) -> None:
    """Choosing all settings and fitting against quintic splines, one BLAS thread."""
    train, held = paper_3d_split(0)
    values = paper_3d(train)
    named = dict(zip("xyz", train, strict=True))
    cube = np.linspace(0, 10, 200)
    large_values = paper_3d([cube, cube, cube])
    cubes = dict.fromkeys("xyz", cube)
    with threadpool_limits(limits=1):
        splines = seconds(lambda: spline(values, train, held, 5), repeats)
        tuned = seconds(lambda: model.fit(values, named), repeats)
        whole = seconds(lambda: model.fit(large_values, cubes), 3)
        alone = seconds(lambda: fit(large_values, [cube] * 3, levels((1, 1, 1), 1e-10)), 3)
    print(f"tuning and fit, 116 x 120 x 80: {tuned / splines:.1f} x quintic splines")
    print(f"tuning and fit, 200^3: {whole / alone:.1f} x the fit alone")


def startup(repeats: int = 7) -> None:
    """Whole commands against what they cannot do without."""
    bare = "import typer; app = typer.Typer(); app.command('a')(lambda: None)\n"
    bare += "app.command('b')(lambda: None); app()"
    with TemporaryDirectory() as folder:
        grid, saved = Path(folder) / "grid.nc", Path(folder) / "model.npz"
        _write_paper_grid(grid)
        ours = [sys.executable, "-m", "dkrls_cli"]
        given = ["--sigma", "1", "--ridge", "1e-10", "--kernel", "gaussian"]
        fitting = [*ours, "fit", str(grid), *given, "--overwrite", "-o", str(saved)]
        asking = [*ours, "predict", str(saved), "--at", "x=1", "--at", "y=2", "--at", "z=3"]
        load = f"import xarray, netCDF4; xarray.open_dataset(r'{grid}').load()"
        races = {
            "--help, bare Typer app": ([*ours, "--help"], ["-c", bare, "--help"]),
            "fit, loading the file with xarray": (fitting, ["-c", load]),
            "predict of a point, importing numpy and typer": (
                asking,
                ["-c", "import numpy, typer"],
            ),
        }
        for name, (own, other) in races.items():
            ratio = _command_time(own, repeats) / _command_time([sys.executable, *other], repeats)
            print(f"{name}: {ratio:.2f}")


def _write_paper_grid(path: Path) -> None:
    train, _ = paper_3d_split(0)
    axes = [axis_of(name, c) for name, c in zip("xyz", train, strict=True)]
    to_data_array(paper_3d(train), axes, "xi", {}).to_netcdf(path)


def _command_time(words: Sequence[str], repeats: int) -> float:
    return seconds(lambda: subprocess.run(words, check=True, capture_output=True), repeats)


def spline(values: Array, nodes: Sequence[Array], queries: Sequence[Array], degree: int) -> Array:
    """Interpolating splines along one axis after another; linear is degree 1."""
    from scipy.interpolate import make_interp_spline

    for axis, (node, query) in enumerate(zip(nodes, queries, strict=True)):
        if node is query:
            continue
        order = np.argsort(node)
        leading = np.moveaxis(values, axis, 0)[order]
        values = np.moveaxis(make_interp_spline(node[order], leading, k=degree)(query), 0, axis)
    return values


def splits_of(grid: Grid, seeds: Sequence[int]) -> Iterator[tuple[str, list[Split]]]:
    """A fifth of every dimension at random, and every second of the horizontal ones."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        yield (
            f"20 %, seed {seed}",
            [random_split(axis.size, 0.2, rng, keep_edges=True) for axis in grid.axes],
        )
    last_two = [a.name for a in grid.axes if not is_time(a) and a.labels is None][-2:]
    yield (
        "every second",
        [
            alternate_split(axis.size)
            if axis.name in last_two
            else Split(np.arange(axis.size), np.arange(axis.size))
            for axis in grid.axes
        ],
    )


def real(paths: Sequence[str], seeds: Sequence[int] = (0, 1, 2)) -> None:
    """The default fit against splines on held-out cells of real grids: ratios of the errors."""
    ratios = []
    print(
        f"{'grid':24} {'held out':14} {'linear':>9} {'cubic':>9} {'quintic':>9} {'dkrls':>9}",
        end="",
    )
    print(f" {'ratio':>6} {'cover':>6}")
    for path in paths:
        grid = open_source([path]).grid()
        grid.refuse_missing()
        for name, splits in splits_of(grid, seeds):
            errors, cover = _race(grid, splits)
            ratios.append(errors["dkrls"] / min(e for n, e in errors.items() if n != "dkrls"))
            cells = " ".join(f"{errors.get(n, np.nan):9.4g}" for n in (1, 3, 5, "dkrls"))
            print(f"{Path(path).name[:24]:24} {name:14} {cells} {ratios[-1]:6.2f} {cover:6.2f}")
    within = np.mean(np.array(ratios) <= 1.02)
    mean = np.exp(np.mean(np.log(ratios)))
    print(f"within 2 % of the best rival: {within:.0%}, geometric mean {mean:.3f}", end="")
    print(f", worst {max(ratios):.2f}")


def _race(grid: Grid, splits: Sequence[Split]) -> tuple[dict[object, float], float]:
    """Root mean square errors by rival and ours, and the share in our 90 % band."""
    from dkrls_cli.errorbars import variance

    train = grid.take([split.train for split in splits])
    truth = grid.take([split.held for split in splits])
    nodes = [axis.numbers for axis in train.axes]
    queries = [
        node if s.held.size == s.train.size else axis.numbers
        for node, axis, s in zip(nodes, truth.axes, splits, strict=True)
    ]

    def error(answers: Array) -> float:
        return float(np.sqrt(np.mean((answers - truth.values) ** 2)))

    values = train.values.astype(np.float64)
    shortest = min(n.size for n, q in zip(nodes, queries, strict=True) if n is not q)
    errors: dict[object, float] = {
        k: error(spline(values, nodes, queries, k)) for k in (1, 3, 5) if shortest > k
    }
    ours = model.fit(train)
    answers = ours.cascade.predict(queries)
    errors["dkrls"] = error(answers)
    spread = variance(ours.cascade, ours.scales, queries)
    return errors, coverage90(truth.values, answers, spread)


def main(words: Sequence[str]) -> None:
    """Run the races named, or those that need no file."""
    if words[:1] == ["real"]:
        real(words[1:])
        return
    races = {"speed": speed, "large": large, "tuning": tuning, "startup": startup}
    for name in words or races:
        races[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
