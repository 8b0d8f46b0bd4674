"""Races that print ratios measured in one run: ``python -m dkrls_cli.benchmark``."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from dkrls_cli.cascade import Cascade, fit
from dkrls_cli.kernels import Array, Kernel
from dkrls_cli.levels import Level
from dkrls_cli.splits import random_split

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
    from scipy.interpolate import RegularGridInterpolator  # noqa: PLC0415

    train, held = paper_3d_split(0)
    smooth = paper_3d(train)
    noisy = smooth + 1e-3 * np.random.default_rng(1).standard_normal(smooth.shape)
    points = [np.random.default_rng(2).uniform(c.min(), c.max(), 10**6) for c in train]
    with threadpool_limits(limits=1):
        bound = seconds(bare_products(smooth), repeats)
        rival = seconds(lambda: RegularGridInterpolator(train, smooth)(np.stack(points, axis=1)), 3)
        print(f"one matrix product per dimension, 116 x 120 x 80: {1e3 * bound:.1f} ms")
        print(f"scipy linear at 1,000,000 points: {rival:.2f} s")
        for name, values in (("paper's function", smooth), ("with noise 1e-3", noisy)):
            for sigmas in (PAPER_SIGMAS, LONG_SIGMAS):
                chosen = levels(sigmas, 1e-12)
                fitting = seconds(lambda v=values, c=chosen: fit(v, train, c), repeats)  # type: ignore[misc]
                model = fit(values, train, chosen)
                asking = seconds(lambda m=model: m.predict(held), repeats)  # type: ignore[misc]
                scattered = seconds(lambda m=model: m.predict_points(points), 1)  # type: ignore[misc]
                print(
                    f"{name}, sigmas {sigmas}: fit {fitting / bound:.2f} x the products, "
                    f"grid of 29 x 30 x 20 {asking / fitting:.2f} x the fit, "
                    f"points {scattered / rival:.1f} x scipy linear"
                )


def large(size: int = 400) -> None:
    """Memory and rate of a fit at full rank on size^3 cells, all cores."""
    rng = np.random.default_rng(0)
    axis = np.arange(float(size))
    values = rng.standard_normal((size, size, size))
    short = [Level(name, Kernel("matern12", 0.5)) for name in "xyz"]
    square = rng.standard_normal((2000, 2000))
    peak_rate = 2 * 2000**3 / seconds(lambda: square @ square, 5)

    def run(joint_ridge: float | None) -> Cascade:
        return fit(values, [axis] * 3, short, joint_ridge=joint_ridge)

    tracemalloc.start()
    model = run(None)
    extra = tracemalloc.get_traced_memory()[1] / values.nbytes
    tracemalloc.stop()
    work = 2.0 * values.size * 3 * size
    rate = work / seconds(lambda: run(None), 1)
    print(f"{size}^3 at full rank: fit keeps and uses {extra:.2f} x the input in memory")
    print(f"  fit: {rate / peak_rate:.2f} x the dgemm rate, counted as one product per dimension")
    middle = axis[:-1] + 0.5
    rate = work / seconds(lambda: model.predict([middle] * 3), 1)
    print(f"  predict on {size - 1}^3 new cells: {rate / peak_rate:.2f} x the dgemm rate")


if __name__ == "__main__":
    speed()
    large()
