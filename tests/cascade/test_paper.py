"""The paper's own figures: medians over twenty random splits, with its settings and better ones.

The paper reports a maximum error of 0.0134 (2D), 0.0171 (3D) and 3.11 degrees (Intel Lab) for one
split. The split moves that number tenfold, because an unlucky one leaves a wide gap or an edge, so
the bands are for the median. They hold for the paper's protocol, where any coordinate may be held
out, and when the edges always train.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.model.validation.metrics import scores
from dkrls_cli.model.validation.splits import random_split

INTEL_LAB = Path(__file__).parents[3] / "shared/data/intel_lab_subsfin_14400x52.txt"
SEEDS = range(20)
X, D1, D2 = (
    np.linspace(0.1, turns * np.pi, count) for turns, count in [(4, 145), (8, 150), (12, 100)]
)

each_protocol = pytest.mark.parametrize("keep_edges", [False, True], ids=["any", "edges train"])


def median_max_error(
    values: np.ndarray,
    axes: Sequence[np.ndarray],
    sigmas: Sequence[float],
    ridge: float,
    *,
    keep_edges: bool,
    shares: Sequence[float],
) -> float:
    """Median over the seeds, a share of every dimension held out; a share of 0 passes through."""
    levels = [Level(f"d{axis}", Kernel(sigma=sigma), ridge) for axis, sigma in enumerate(sigmas)]

    def max_error(seed: int) -> float:
        rng = np.random.default_rng(seed)
        splits = [
            random_split(axis.size, share, rng, keep_edges=keep_edges)
            for axis, share in zip(axes, shares, strict=True)
        ]
        train = [split.train for split in splits]
        asked = [split.held if split.held.size else split.train for split in splits]
        model = fit_cascade(
            values[np.ix_(*train)], [a[t] for a, t in zip(axes, train, strict=True)], levels
        )
        answers = model.predict([a[h] for a, h in zip(axes, asked, strict=True)])
        return scores(values[np.ix_(*asked)], answers)["max_error"]

    return float(np.median([max_error(seed) for seed in SEEDS]))


@each_protocol
@pytest.mark.parametrize(
    ("sigmas", "ridge", "low", "high"),
    [((1.0, 0.3), 1e-10, 1e-2, 1e-1), ((1.3, 3.9), 1e-12, 0.0, 1e-6)],
    ids=["paper", "chosen"],
)
def test_2d(
    sigmas: tuple[float, ...], ridge: float, low: float, high: float, keep_edges: bool
) -> None:
    values = np.sin(X)[:, None] * np.cos(D1 / 2)
    shares = [0.2, 0.2]
    error = median_max_error(values, [X, D1], sigmas, ridge, keep_edges=keep_edges, shares=shares)
    assert low <= error <= high


@pytest.mark.slow
@each_protocol
@pytest.mark.parametrize(
    ("sigmas", "ridge", "low", "high"),
    [((1.0, 0.3, 1.0), 1e-10, 5e-3, 5e-2), ((2.0, 2.6, 4.0), 1e-12, 0.0, 1e-6)],
    ids=["paper", "chosen"],
)
def test_3d(
    sigmas: tuple[float, ...], ridge: float, low: float, high: float, keep_edges: bool
) -> None:
    values = np.cos(X)[:, None, None] * np.sin(D1 / 2)[:, None] * np.sin(D2 / 3)
    axes, shares = [X, D1, D2], [0.2, 0.2, 0.2]
    error = median_max_error(values, axes, sigmas, ridge, keep_edges=keep_edges, shares=shares)
    assert low <= error <= high


@pytest.fixture(scope="module")
def temperatures() -> np.ndarray:
    """52 sensors by 100 times, filtered as in the paper."""
    if not INTEL_LAB.exists():
        pytest.skip(f"{INTEL_LAB} is not there")
    window = np.loadtxt(INTEL_LAB, skiprows=300, max_rows=100)
    offsets = np.arange(6) - 2.5
    weights = np.exp(-np.add.outer(offsets**2, offsets**2) / (2 * 5))
    return ndimage.correlate(window, weights / weights.sum(), mode="reflect").T


@each_protocol
def test_intel_lab(temperatures: np.ndarray, keep_edges: bool) -> None:
    """The mean stays in, as in the paper: the kernel falls to zero in gaps, hence the degrees."""
    axes = [np.arange(1.0, 53.0), np.arange(301.0, 401.0)]
    error = median_max_error(
        temperatures, axes, (1.0, 1.5), 1e-10, keep_edges=keep_edges, shares=[0.0, 0.2]
    )
    assert 1.5 <= error <= 4.5
