"""The competition of Heaton et al. (2019): a filled field, beside the results of its methods.

Tables are those of "A Case Study Competition Among Methods for Analyzing Large Spatial Data"
(Journal of Agricultural, Biological and Environmental Statistics 24, 398-425). Every method there
got the same training cells of two fields, one measured by a satellite and one simulated, and
predicted the same test cells. Nothing of the published results was measured by this package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from dkrls_cli.arrays import Array, Mask
from dkrls_cli.bench.methods import DKRLS
from dkrls_cli.errors import InputError
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.fill import fill_grid
from dkrls_cli.model.validation.metrics import coverage, crps, interval_score, scores

VARIABLES = TRAINING, TRUTH = "temp", "truth"
"""Variables of a file: the training cells, and all cells whose truth is known."""

DATASETS = SATELLITE, SIMULATED = "satellite", "simulated"
"""The two fields of the competition."""

MEASURED, FROM_PAPER = "measured", "published"
"""Where the scores of a row come from: this machine, or the paper."""

# Probability of the intervals that are scored: that of the paper.
LEVEL = 0.95


@dataclass(frozen=True)
class CompetitionScores:
    """Scores of a method over all test cells; NaN where it has none, and a note why.

    Attributes
    ----------
    rmse, mae, crps
        Root mean square error, mean absolute error, and continuous ranked probability score.
    interval_score, coverage95
        Score of the 95 % intervals, and the share of test cells in them.
    seconds
        Time of the predictions and their standard errors.
    note
        What went wrong, without a full stop.
    """

    rmse: float
    mae: float
    crps: float
    interval_score: float
    coverage95: float
    seconds: float = math.nan
    note: str = ""


def _published(
    mae: float, rmse: float, ranked: float, interval: float, covered: float
) -> CompetitionScores:
    """Return a line of the paper's tables, whose columns are MAE, RMSE, CRPS, INT and CVG."""
    return CompetitionScores(rmse, mae, ranked, interval, covered)


PUBLISHED: Mapping[str, Mapping[str, CompetitionScores]] = MappingProxyType(
    {
        SIMULATED: {  # Table 2
            "FRK": _published(1.03, 1.31, 0.74, 8.35, 0.84),
            "Gapfill": _published(0.74, 1.00, 0.67, 18.01, 0.44),
            "LatticeKrig": _published(0.63, 0.87, 0.45, 4.04, 0.97),
            "LAGP": _published(0.79, 1.11, 0.57, 5.71, 0.90),
            "MetaKriging": _published(0.74, 0.97, 0.53, 4.69, 0.99),
            "MRA": _published(0.61, 0.83, 0.44, 3.64, 0.93),
            "NNGP (conjugate)": _published(0.65, 0.88, 0.46, 3.79, 0.96),
            "NNGP (response)": _published(0.65, 0.88, 0.46, 3.81, 0.96),
            "Partition": _published(0.64, 0.86, 0.47, 5.05, 0.86),
            # the authors' script takes the standard errors of SPDE from the satellite field here
            "SPDE": _published(0.62, 0.86, 0.59, 7.81, 1.00),
            "Tapering": _published(0.69, 0.97, 0.55, 6.39, 1.00),
            "Periodic embedding": _published(0.65, 0.91, 0.47, 4.16, 0.97),
        },
        SATELLITE: {  # Table 3
            "FRK": _published(1.96, 2.44, 1.44, 14.08, 0.79),
            "Gapfill": _published(1.33, 1.86, 1.17, 34.78, 0.36),
            "LatticeKrig": _published(1.22, 1.68, 0.87, 7.55, 0.96),
            "LAGP": _published(1.65, 2.08, 1.17, 10.81, 0.83),
            "MetaKriging": _published(2.08, 2.50, 1.44, 10.77, 0.89),
            "MRA": _published(1.33, 1.85, 0.94, 8.00, 0.92),
            "NNGP (conjugate)": _published(1.21, 1.64, 0.85, 7.57, 0.95),
            "NNGP (response)": _published(1.24, 1.68, 0.87, 7.50, 0.94),
            "Partition": _published(1.41, 1.80, 1.02, 10.49, 0.86),
            # predictive processes are left out: copies of the table differ in their row
            "SPDE": _published(1.10, 1.53, 0.83, 8.85, 0.97),
            "Tapering": _published(1.87, 2.45, 1.32, 10.31, 0.93),
            "Periodic embedding": _published(1.29, 1.79, 0.91, 7.44, 0.93),
        },
    }
)
"""The paper's results by data set and method."""


@dataclass(frozen=True, eq=False)
class CompetitionCase:
    """A field with missing cells, and the truth of some of them.

    Attributes
    ----------
    train
        The training cells, NaN elsewhere.
    truth
        True values in the shape of the grid, NaN where they are not known.
    """

    train: Grid
    truth: Array

    @property
    def test(self) -> Mask:
        """Mask of the test cells: missing for training, and their truth is known."""
        return np.asarray(~self.train.observed & np.isfinite(self.truth))


def find_dataset(path: str) -> str | None:
    """Return the data set that the name of a file names, or None if that is not just one.

    Examples
    --------
    >>> find_dataset("data/AllSatelliteTemps.nc"), find_dataset("satellite/field.nc")
    ('satellite', None)
    """
    name = Path(path).name.lower()
    named = [dataset for dataset in DATASETS if dataset in name]
    return named[0] if len(named) == 1 else None


def make_competition_case(train: Grid, truth: Grid, path: str) -> CompetitionCase:
    """Return the case of the two variables of a file, or raise InputError if they make none."""
    if train.dims != truth.dims:
        raise InputError(
            f"'{train.name}' in '{path}' is on {', '.join(train.dims)}, '{truth.name}' on "
            f"{', '.join(truth.dims)}. Expected the same dimensions in the same order."
        )
    case = CompetitionCase(train, np.asarray(truth.values, np.float64))
    if not case.test.any():
        raise InputError(
            f"'{path}' has no test cells. Expected some that are missing in '{train.name}' and "
            f"present in '{truth.name}'."
        )
    return case


def run_competition(case: CompetitionCase) -> CompetitionScores:
    """Fill the missing cells with default settings, and score the test cells."""
    start = perf_counter()
    found = fill_grid(case.train, mask="none", std=True)
    seconds = perf_counter() - start
    assert found.std is not None
    test = case.test
    unfilled = int(np.count_nonzero(test & ~found.cells))
    note = f"{unfilled} of {np.count_nonzero(test)} test cells are not filled" if unfilled else ""
    return score_cells(
        case.truth[test], found.grid.values[test], found.std[test] ** 2, seconds, note
    )


def score_cells(
    truth: Array, answers: Array, variance: Array, seconds: float, note: str = ""
) -> CompetitionScores:
    """Return the scores of answers with normal distributions, as the paper computes them."""
    errors = scores(truth, answers)
    return CompetitionScores(
        errors["rmse"],
        errors["mae"],
        crps(truth, answers, variance),
        interval_score(truth, answers, variance, LEVEL),
        coverage(truth, answers, variance, LEVEL),
        seconds,
        note,
    )


def make_competition_rows(
    path: str, dataset: str | None, ours: CompetitionScores
) -> list[dict[str, Any]]:
    """Return our row and those published for a data set, the smallest RMSE first.

    Without a data set there is only our row.
    """
    published = {} if dataset is None else PUBLISHED[dataset]
    rows = [_row(path, dataset, DKRLS, MEASURED, ours)]
    rows += [_row(path, dataset, name, FROM_PAPER, theirs) for name, theirs in published.items()]
    return sorted(rows, key=lambda row: math.inf if math.isnan(row["rmse"]) else row["rmse"])


def _row(
    path: str, dataset: str | None, method: str, source: str, found: CompetitionScores
) -> dict[str, Any]:
    where = {"file": path, "dataset": dataset}
    return {**where, "method": method, "source": source, **asdict(found)}


def summarise_competition(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many methods the rows of a file have, and our place among them by RMSE.

    The place is None if there are no others, or not all test cells are filled.
    """
    (place,) = (place for place, row in enumerate(rows, 1) if row["method"] == DKRLS)
    ours = rows[place - 1]
    ranked = len(rows) > 1 and not math.isnan(ours["rmse"])
    where = {"file": ours["file"], "dataset": ours["dataset"]}
    return {**where, "place": place if ranked else None, "methods": len(rows)}
