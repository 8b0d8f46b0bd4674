"""Full models of grids beyond memory: they refer to their data, and grow without reading it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dkrls_cli.errors import InputError, ScatteredGapsError
from dkrls_cli.files.reading import open_source
from dkrls_cli.files.source import Source
from dkrls_cli.gaps.lasting.bars import LandBars
from dkrls_cli.model.chunked.survey import Surveyed, survey
from dkrls_cli.model.filing.references import Reference
from dkrls_cli.model.lasting.choosing import survey_land
from dkrls_cli.model.lasting.land import find_land, scan_land
from dkrls_cli.model.model import Model
from dkrls_cli.model.settings import Settings


def fit_by_reference(
    source: Source,
    settings: Settings,
    limit: float = math.inf,
    *,
    surveyed: Surveyed | None = None,
    contents: bool = False,
) -> Model:
    """Fit a full model of a grid whose data stays where it is.

    Parameters
    ----------
    source
        The grid, in files.
    settings
        Settings of the fit.
    limit
        Bytes that may be in use, the program included.
    surveyed
        Settings that were chosen, with error bars; None: they are, on a few chunks.
    contents
        Whether to read all of the data for a fingerprint of its contents: a copy of the files, with
        other times of change, is then known as the same data.

    Returns
    -------
    Model
        A model without values, that knows where these are.

    Raises
    ------
    InputError
        If the grid is not in files that can be read part by part, or cells are missing that are no
        places at times.
    SettingError
        If a setting is not possible, or not for a grid beyond memory.
    """
    if settings.compact or settings.tolerance is not None:
        raise InputError(
            "A model that refers to its data holds none of it: there is nothing to make smaller. "
            "Leave the tolerance and the compact model out, or fit a model that holds its data.",
            setting="tolerance",
        )
    if not source.paths:
        raise InputError(f"'{source.name}' is not in a file that a model could refer to.")
    model = surveyed.model if surveyed is not None else _choose(source, settings, limit)
    return replace(model, reference=Reference.of(source.name, source.paths, contents=contents))


def _choose(source: Source, settings: Settings, limit: float) -> Model:
    """Return the stand-in of a grid; all of it is read only if its missing cells come and go."""
    try:
        land = find_land(source)
        if land is None:
            return survey(source, settings, None, limit).model
        return survey_land(land, settings, limit, bars=True).model
    except ScatteredGapsError:
        land = scan_land(source)
        if land is None:
            raise
    return survey_land(land, settings, limit, bars=True).model


def open_reference(model: Model) -> Source:
    """Open the data that a model refers to, if it is what the model was made of.

    Raises
    ------
    InputError
        If the data is not there, or has changed.
    """
    assert model.reference is not None
    model.reference.check()
    source = _open(model, model.reference.paths)
    own, theirs = model.coverage.axes, source.axes
    if [(axis.name, axis.size) for axis in own] != [(axis.name, axis.size) for axis in theirs]:
        raise InputError(f"'{model.reference}' has another grid than the model that refers to it.")
    return source


def _open(model: Model, paths: Sequence[str]) -> Source:
    assert model.reference is not None
    return open_source(paths, model.reference.variable, list(model.hierarchy))


def extend_reference(model: Model, paths: Sequence[str], *, contents: bool = False) -> Model:
    """Return a model that refers to more files, which go on along its last level.

    Settings, mean, error bars and bounds stay. No values are read, unless missing cells come and
    go: all are then looked at, to see which are missing at all times.

    Parameters
    ----------
    model
        A model that refers to its data.
    paths
        The new files.
    contents
        As for :func:`fit_by_reference`.

    Raises
    ------
    InputError
        If the data that the model refers to has changed, or the new files do not go on from it.
    """
    reference = model.reference
    assert reference is not None
    reference.check()
    source = _open(model, [*reference.paths, *paths])
    settings = Settings(
        list(model.levels),
        mean=model.cascade.mean,
        poles=model.across_poles,
        cell_means=model.cell_means or False,
        bounds=None,
    )
    if model.joint_ridge is None:
        stand_in = survey(source, settings, bars=False).model
    else:
        stand_in = _with_land(model, source, replace(settings, ridge=model.joint_ridge))
    added = Reference.of(reference.variable, tuple(source.paths), contents=contents)
    origin = dict(model.origin)
    grown = stand_in.shape[model.grows] - model.shape[model.grows]
    origin["slices_added"] = int(origin.get("slices_added", 0)) + grown
    is_varied = isinstance(stand_in.known_bars, LandBars)
    return replace(
        stand_in,
        known_bars=stand_in.known_bars if is_varied else model.known_bars,
        bounds=model.bounds,
        origin=origin,
        reference=added,
    )


def _with_land(model: Model, source: Source, settings: Settings) -> Model:
    """Return the stand-in of a grid with land that has become longer, if its land is the same."""
    bars = model.known_bars
    if isinstance(bars, LandBars) and bars.most:
        return _with_gaps(bars, source, settings)
    land = find_land(source)
    if land is None or not np.array_equal(land.missing, model.coverage.absent):
        raise InputError(
            f"Other cells of '{source.name}' are missing in the new files than before. Fill them "
            "first, or fit a new model."
        )
    return survey_land(land, settings, math.inf).model


def _with_gaps(bars: LandBars, source: Source, settings: Settings) -> Model:
    """Return the stand-in of a longer grid whose missing cells come and go, all of it looked at."""
    land = scan_land(source)
    assert land is not None  # it has places and times, as before
    found = survey_land(land, settings, math.inf)
    missing = found.missing.squeeze(land.slices)
    one = replace(bars.one, unobserved=missing)
    return replace(found.model, known_bars=replace(bars, one=one, most=land.most))
