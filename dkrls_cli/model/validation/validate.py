"""How good the answers are: of a model on another grid, or of the method on parts held out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from dkrls_cli.arrays import AT_ONCE, Array, Indices, blocks
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.alignment import check_units, drop_other_single
from dkrls_cli.grid.axes import Axis, convert_cells, convert_coordinates
from dkrls_cli.grid.cf import by_dimension
from dkrls_cli.grid.derived import cells_on
from dkrls_cli.grid.grid import (
    Coordinates,
    ErrorLike,
    Grid,
    GridLike,
    as_grid,
    drop_repeats,
    is_labelled,
    scalar_axes,
)
from dkrls_cli.grid.observations import with_errors
from dkrls_cli.grid.style import Style
from dkrls_cli.model.answering.answers import Query, Rules, ask
from dkrls_cli.model.answering.bounds import choose_bounds
from dkrls_cli.model.answering.cellmeans import with_cells
from dkrls_cli.model.answering.questions import Question
from dkrls_cli.model.choosing import ChoiceCallback
from dkrls_cli.model.chunked.loading import refuse_large
from dkrls_cli.model.fit import fit_grid
from dkrls_cli.model.model import Model
from dkrls_cli.model.quality.robust import ROBUST, clean_grid
from dkrls_cli.model.settings import DEFAULTS, PerLevel, Settings
from dkrls_cli.model.validation.calibration import Calibration
from dkrls_cli.model.validation.evidence import Evidence, collect_evidence
from dkrls_cli.model.validation.metrics import coverage90, scores
from dkrls_cli.model.validation.splits import Split, random_split

# Enough for a median that one odd hold-out does not move.
REPEATS = 5

RunCallback = Callable[[int, Mapping[str, float]], None]
"""Called after every hold-out with its number, from 0, and its metrics."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Metrics of answers against the truth.

    Attributes
    ----------
    metrics
        By name: those of :func:`dkrls_cli.model.validation.metrics.scores`, and ``coverage90``, the
        share of cells within the 90 % error band. Of hold-outs, the medians over all runs, with
        the seconds of a run (``fit_seconds``, ``predict_seconds``) among them.
    runs
        The same of every hold-out; empty if a model was measured.
    held_out
        Fraction held out of each dimension; empty if a model was measured.
    model
        The model that was measured, or that of the last hold-out.
    axes
        Axes of the true values.
    seconds
        Seconds taken by the predictions; of hold-outs, by everything.
    calibration
        How often error bars of any width hold the truth, over the cells of all runs.
    spread
        Standard deviation of the true values, beside which errors can be judged.
    evidence
        Errors by coordinate and a slice to look at, over all runs; None if it was not asked for.
    """

    metrics: Mapping[str, float]
    runs: tuple[Mapping[str, float], ...]
    held_out: Mapping[str, float]
    model: Model
    axes: tuple[Axis, ...]
    seconds: float
    calibration: Calibration
    spread: float
    evidence: Evidence | None = None


def validate(
    data: GridLike,
    coordinates: Coordinates | None = None,
    *,
    model: Model | None = None,
    holdout: PerLevel[float | str] | None = None,
    repeats: int = REPEATS,
    seed: int = 0,
    keep_edges: bool = False,
    smooth: bool = False,
    obs_error: ErrorLike | None = None,
    evidence: bool = False,
    **settings: Any,
) -> Validation:
    """Measure a model against a grid, or the method against held-out parts of one.

    Parameters
    ----------
    data
        The truth: an xarray.DataArray, a Grid or an array of numbers; NaN where it is not known.
        A chunked DataArray is loaded, and refused if it does not fit into memory.
    coordinates
        For an array of numbers, a coordinate vector per axis, by name or in order.
    model
        The model to measure. The grid needs each of its dimensions (a DataArray may have one as a
        scalar coordinate), at any coordinates.
    holdout
        Instead of a model: the fraction of every dimension to hold out, or a mapping from
        dimension to fraction. A model is fitted to the rest and asked for what was held out.
    repeats
        Number of random hold-outs.
    seed
        Seed of the first hold-out; the next has the next seed.
    keep_edges
        Whether the first and last coordinates of every dimension always train.
    smooth
        Whether the model answers at training coordinates as well, instead of returning the data.
    obs_error
        Standard errors of the data, as for :func:`dkrls_cli.fit`. Models of hold-outs are fitted
        with them. What is held out is compared as it is, and ``coverage90`` is that of the
        observations: their errors are added to the band.
    evidence
        Whether to keep errors by coordinate and one slice of truth and answers.
    **settings
        Settings of the fits, as keywords of :func:`dkrls_cli.fit`; for hold-outs only.

    Returns
    -------
    Validation
        The metrics, and for hold-outs those of every run.

    Raises
    ------
    SettingError
        If not just one of `model` and `holdout` is given, or a setting is not possible.
    InputError
        If the grid does not have the dimensions of the model, or cannot be fitted.

    Examples
    --------
    >>> x, d = np.linspace(0, 3, 30), np.linspace(0, 5, 40)
    >>> found = validate(np.outer(np.sin(x), np.cos(d)), {"x": x, "d": d}, holdout=0.2, repeats=3)
    >>> found.metrics["rmse"] < 0.01, len(found.runs)
    (True, 3)
    """
    if (model is None) == (holdout is None):
        raise SettingError("Give either a model or a fraction to hold out.")
    refuse_large(data)
    grid = with_errors(data, as_grid(data, coordinates), obs_error)
    if holdout is not None:
        return validate_holdout(
            grid,
            Settings(**settings),
            holdout=holdout,
            repeats=repeats,
            seed=seed,
            keep_edges=keep_edges,
            smooth=smooth,
            evidence=evidence,
        )
    assert model is not None
    if settings:
        raise SettingError(
            f"The setting '{next(iter(settings))}' goes with a hold-out: a model has its own."
        )
    scalars = scalar_axes(data, model.dims) if is_labelled(data) else ()
    return validate_model(model, grid, scalars, smooth=smooth, evidence=evidence)


def validate_model(
    model: Model,
    grid: Grid,
    scalars: Sequence[Axis] = (),
    *,
    smooth: bool = False,
    evidence: bool = False,
) -> Validation:
    """Measure a model on the cells of a grid.

    Parameters
    ----------
    model
        The model.
    grid
        The truth, NaN where it is not known, on dimensions of the model in any order.
    scalars
        Axes of one coordinate for the dimensions of the model that the grid does not have.
    smooth
        Whether the model answers at training coordinates as well.
    evidence
        Whether to keep errors by coordinate and one slice of truth and answers.

    Returns
    -------
    Validation
        The metrics; its axes are those of the answers, in the order of the model.

    Raises
    ------
    InputError
        If the grid is in other units, or lacks a dimension of the model, or has another one.

    Examples
    --------
    >>> from dkrls_cli.model.fit import fit
    >>> grid = as_grid(np.outer(np.arange(5.0), np.ones(4)))
    >>> validate_model(fit(grid), grid).metrics["max_error"]
    0.0
    """
    check_units(f"values of '{grid.name}'", grid.attrs, model.attrs)
    grid = drop_other_single(grid, model.axes)
    axes = match_axes(model, grid.axes, scalars)
    start = perf_counter()
    query = ask_truth(model, axes, grid.axes, grid.style, smooth)
    answers = query.values()
    seconds = perf_counter() - start
    order = [grid.dims.index(dim) for dim in model.dims if dim in grid.dims]
    truth = grid.values.transpose(order).reshape(answers.shape)
    noise = None if grid.errors is None else grid.errors.transpose(order).reshape(answers.shape)
    whole = [np.arange(axis.size) for axis in axes]
    found = _compare(query, truth, answers, noise, (axes, whole) if evidence else None)
    spread = _spread(grid.values)
    return Validation(
        found.metrics,
        (),
        {},
        model,
        tuple(axes),
        seconds,
        found.calibration,
        spread,
        found.evidence,
    )


def match_axes(model: Model, axes: Sequence[Axis], scalars: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the axes of a model at the coordinates of a grid.

    Parameters
    ----------
    model
        The model.
    axes
        Axes of the grid, without those of one coordinate that the model does not have.
    scalars
        Axes of one coordinate for the dimensions of the model that the grid does not have.

    Raises
    ------
    InputError
        If the grid lacks a dimension of the model, or has another one.
    """
    names = [axis.name for axis in axes]
    single = (axis for axis in model.axes if axis.size == 1)
    theirs = {axis.name: axis for axis in (*single, *scalars, *axes)}
    if not set(names) <= set(model.dims) <= set(theirs):
        raise InputError(
            f"The grid has dimensions {', '.join(names)}, the model {', '.join(model.dims)}. "
            "The grid needs each of the model's, of size 1 at least, and no other."
        )
    return tuple(
        model.axes_at({own.name: convert_coordinates(theirs[own.name], own) for own in model.axes})
    )


def validate_holdout(
    grid: Grid,
    settings: Settings = DEFAULTS,
    *,
    holdout: PerLevel[float | str],
    repeats: int = REPEATS,
    seed: int = 0,
    keep_edges: bool = False,
    smooth: bool = False,
    evidence: bool = False,
    on_run: RunCallback | None = None,
    watch: ChoiceCallback | None = None,
) -> Validation:
    """Measure models on parts of a grid that are held out at random: the paper's protocol.

    Coordinates are held out of every dimension independently, and the models are asked for the
    cells that are at held-out coordinates along all of these dimensions.

    Parameters
    ----------
    grid
        Values on named axes, NaN where cells are missing.
    settings
        Settings of the fits.
    holdout
        Fraction of every dimension to hold out (those of text labels aside, between which there
        is nothing to answer), or a mapping from dimension to fraction.
    repeats, seed, keep_edges, smooth, evidence
        As for :func:`validate`.
    on_run
        Called after every hold-out with its number and its metrics.
    watch
        Called with what was tried for every level in the last hold-out.

    Returns
    -------
    Validation
        Medians of the metrics, and the metrics of every run.

    Raises
    ------
    SettingError
        If a fraction is not between 0 and 1, holds nothing out of a dimension, or is of a
        dimension that is not there or has text labels; or if a setting is not possible.
    InputError
        If what is left of the grid cannot be fitted.

    Examples
    --------
    >>> grid = as_grid(np.outer(np.arange(9.0), np.ones(8)))
    >>> validate_holdout(grid, holdout={"dim_0": 0.3}, repeats=2).metrics["n"]
    24
    """
    refuse_impossible(repeats, seed)
    grid = with_cells(drop_repeats(grid)[0], settings.cell_means)
    fractions = read_fractions(holdout, grid.axes)
    truth, facts = grid, {}
    if settings.robust:  # once for all: bad cells are neither trained on nor asked for
        cleaned = clean_grid(grid, settings)
        grid, facts = cleaned.grid, {ROBUST: cleaned.facts}
        truth = replace(grid, values=np.where(cleaned.bad, np.nan, grid.values))
        settings = replace(settings, robust=False)
    bounds, told = choose_bounds(settings.bounds, grid)
    if bounds is None:  # what speaks against bounds may be held out
        settings = replace(settings, bounds=None)
    start = perf_counter()
    runs: list[Mapping[str, float]] = []
    seen: list[_Comparison] = []  # of all runs until now, put together
    for number in range(repeats):
        rng = np.random.default_rng(seed + number)
        splits = hold_out(grid.axes, fractions, rng, keep_edges)
        last = watch if number == repeats - 1 else None
        model, found = _run(grid, truth, settings, splits, smooth, evidence, last)
        runs.append(found.metrics)
        seen = [one.plus(found) for one in seen] or [found]
        if on_run is not None:
            on_run(number, found.metrics)
    seconds = perf_counter() - start
    (together,) = seen
    if told or facts:
        bounds_told = {"bounds": told} if told else {}
        model = replace(model, origin={**model.origin, **bounds_told, **facts})
    return Validation(
        medians(runs),
        tuple(runs),
        fractions,
        model,
        grid.axes,
        seconds,
        together.calibration,
        _spread(truth.values),
        together.evidence,
    )


def refuse_impossible(repeats: int, seed: int) -> None:
    """Raise SettingError if there are no such hold-outs."""
    if repeats < 1:
        raise SettingError(f"Invalid number of repeats {repeats}. It must be 1 or above.")
    if seed < 0:
        raise SettingError(f"Invalid seed {seed}. It must be 0 or above.")


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the medians of the metrics of the hold-outs with a known cell; cells of the first.

    A metric that has no value in one of them has none.

    >>> run = {"n": 0, "rmse": math.nan}
    >>> medians([run, {"n": 3, "rmse": 1.0}, run, {"n": 4, "rmse": 2.0}])
    {'n': 3, 'rmse': 1.5}
    """
    known = [run for run in runs if run["n"]] or runs
    found = {name: float(np.median([run[name] for run in known])) for name in known[0]}
    return found | {"n": known[0]["n"]}


def read_fractions(holdout: PerLevel[float | str], axes: Sequence[Axis]) -> dict[str, float]:
    """Return the fraction to hold out of each dimension, or raise SettingError.

    Parameters
    ----------
    holdout
        One fraction for every dimension of two coordinates or more that has no text labels, or a
        mapping from dimension to fraction. Numbers may be given as text.
    axes
        Axes of the grid.

    Returns
    -------
    dict
        Fractions between 0 and 1, by name of the dimension.

    Raises
    ------
    SettingError
        If a fraction is not between 0 and 1, a dimension is not there or has text labels, or
        nothing would be held out.
    """
    labelled = [axis.name for axis in axes if axis.labels is not None]
    if isinstance(holdout, Mapping):
        wanted = by_dimension(holdout, axes)
        for dim in wanted:
            if dim in labelled:
                raise SettingError(
                    f"'{dim}' holds text labels: between them there is nothing to answer. "
                    "Hold out another dimension."
                )
    else:
        wanted = {a.name: holdout for a in axes if a.name not in labelled and a.size > 1}
    if not wanted:
        raise SettingError("There is no dimension to hold a fraction between 0 and 1 out of.")
    return {dim: _fraction(value) for dim, value in wanted.items()}


def _fraction(value: float | str) -> float:
    try:
        fraction = float(value)
    except ValueError:
        raise SettingError(f"'{value}' is not a fraction to hold out, like 0.2.") from None
    if not 0 < fraction < 1:
        raise SettingError(f"Invalid hold-out {value}. Give a fraction between 0 and 1, like 0.2.")
    return fraction


def hold_out(
    axes: Sequence[Axis], fractions: Mapping[str, float], rng: np.random.Generator, edges: bool
) -> list[Split]:
    """Split every axis that has a fraction; of the others all coordinates train and are asked."""
    splits = []
    for axis in axes:
        if axis.name not in fractions:
            splits.append(Split(np.arange(axis.size), np.arange(axis.size)))
            continue
        split = random_split(axis.size, fractions[axis.name], rng, keep_edges=edges)
        if not split.held.size:
            raise SettingError(
                f"'{axis.name}' is too short ({axis.size}) to hold out a fraction of "
                f"{fractions[axis.name]:g}. Raise the fraction, or hold out other dimensions."
            )
        splits.append(split)
    return splits


def _run(
    grid: Grid,
    known: Grid,
    settings: Settings,
    splits: Sequence[Split],
    smooth: bool,
    evidence: bool,
    watch: ChoiceCallback | None,
) -> tuple[Model, _Comparison]:
    """Fit a model to what trains, and return it with its answers to what was held out, compared.

    `known` is the truth: the grid, NaN where it is not known.
    """
    start = perf_counter()
    part = grid.take([split.train for split in splits]).freeze()
    model = fit_grid(part, settings, watch=watch)
    fitted = perf_counter()
    held = [split.held for split in splits]
    truth = known.take(held)
    query = ask_truth(model, truth.axes, truth.axes, truth.style, smooth)
    answers = query.values()
    seconds = {"fit_seconds": fitted - start, "predict_seconds": perf_counter() - fitted}
    where = (grid.axes, held) if evidence else None
    found = _compare(query, truth.values, answers, truth.errors, where)
    return model, replace(found, metrics={**found.metrics, **seconds})


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Answers compared with the truth: metrics, how good error bars are, and what is kept."""

    metrics: Mapping[str, float]
    calibration: Calibration
    evidence: Evidence | None

    def plus(self, other: _Comparison) -> _Comparison:
        """Return this and another comparison put together; metrics are those of this one."""
        evidence = self.evidence and other.evidence and self.evidence.plus(other.evidence)
        return _Comparison(self.metrics, self.calibration + other.calibration, evidence)


def ask_truth(
    model: Model, axes: Sequence[Axis], theirs: Sequence[Axis], style: Style, smooth: bool
) -> Query:
    """Return the question whose answers a grid has the truth of, outside the training range too.

    Of a model of means over cells these are means over the cells of the grid: its bounds, or
    half-way between its coordinates.

    Parameters
    ----------
    model, axes
        The model, and its axes at the coordinates of the grid.
    theirs, style
        Axes and style of the grid.
    smooth
        Whether the model answers at training coordinates as well.
    """
    by_name = {axis.name: axis for axis in theirs}
    cells = {
        own.name: convert_cells(cells_on(by_name[own.name], style), by_name[own.name], own)
        for own in axes
        if own.name in model.cell_means and own.name in by_name
    }
    question = Question(tuple(cells), cells=cells) if cells else None
    return ask(model, axes, Rules("extrapolate", "none", smooth, question))


def _compare(
    query: Query,
    truth: Array,
    answers: Array,
    noise: Array | None,
    where: tuple[Sequence[Axis], Sequence[Indices]] | None,
) -> _Comparison:
    """Compare answers to a question, and their error bars, with the truth.

    `noise` is the standard errors of the truth, if it is observations that have some. Evidence is
    kept if `where` is given: the axes of the whole grid, and the places on them that are compared.
    """
    variance = query.std() ** 2
    if noise is not None:
        variance = variance + noise**2
    kept = None if where is None else collect_evidence(*where, truth, answers, variance)
    metrics = {**scores(truth, answers), "coverage90": coverage90(truth, answers, variance)}
    return _Comparison(metrics, Calibration.of(truth, answers, variance), kept)


def _spread(values: Array) -> float:
    """Return the standard deviation of the known cells, without a copy; NaN if there is none."""
    parts = list(blocks(values.shape, AT_ONCE))
    count = sum(int(np.count_nonzero(np.isfinite(values[part]))) for part in parts)
    if not count:
        return math.nan
    mean = sum(float(_known(values[part]).sum()) for part in parts) / count
    squares = sum(float(np.square(_known(values[part]) - mean).sum()) for part in parts)
    return math.sqrt(squares / count)


def _known(values: Array) -> Array:
    """Return the known cells in double precision."""
    return values[np.isfinite(values)].astype(np.float64)
