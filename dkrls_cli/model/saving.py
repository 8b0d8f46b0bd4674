"""Models in files: one model, or those of several variables together."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from dkrls_cli import __version__
from dkrls_cli.cascade.level import check_axis
from dkrls_cli.errors import InputError, ModelFileError, SettingError
from dkrls_cli.files import npz as modelfile
from dkrls_cli.grid.style import grow_style
from dkrls_cli.model.filing.header import check_arrays, check_axes, check_header, check_variables
from dkrls_cli.model.filing.references import (
    VERSION,
    reference_from,
    reference_record,
    stand_in_core,
)
from dkrls_cli.model.model import Model
from dkrls_cli.model.narrowing import pack_mask
from dkrls_cli.model.records.bars import bars_from, bars_record, filled_from
from dkrls_cli.model.records.cascades import cascade_from, cascade_record, poles_from, poles_record
from dkrls_cli.model.records.files import join_records, narrow_record, split_record, widen_arrays
from dkrls_cli.model.records.labels import (
    axis_from,
    axis_record,
    bounds_from,
    bounds_record,
    coverage_from,
    coverage_record,
)
from dkrls_cli.model.records.styles import style_from, style_record
from dkrls_cli.model.records.values import Record, from_json, to_json
from dkrls_cli.spelling import suggest


def save_models(
    models: Iterable[Model], path: str | os.PathLike[str], *, overwrite: bool = True
) -> None:
    """Write the models of several variables to one model file, whole or not at all.

    Parameters
    ----------
    models
        Models of different names. What they have in common is stored once.
    path
        The file.
    overwrite
        Whether the file may exist.

    Raises
    ------
    InputError
        If two models have the same name.
    OutputError
        If the file exists and `overwrite` is False, or cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from dataclasses import replace
    >>> from dkrls_cli import fit, load_models
    >>> x = np.linspace(0, 3, 20)
    >>> t, u = fit(np.sin(x), {"x": x}), fit(np.cos(x), {"x": x})
    >>> t, u = replace(t, name="t"), replace(u, name="u")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_models([t, u], pathlib.Path(folder) / "m.npz")
    ...     list(load_models(pathlib.Path(folder) / "m.npz"))
    ['t', 'u']
    """
    several = list(models)
    names = [model.name for model in several]
    if len(set(names)) < len(names):
        raise InputError(f"Two of the models have the same name: {', '.join(names)}.")
    folder = os.path.dirname(os.path.abspath(path))
    records = [model_record(model, folder) for model in several]
    header, arrays = join_records(records) if records[1:] else records[0]
    if any(model.reference is not None for model in several):
        header = {**header, "version": VERSION}
    modelfile.write(path, header, arrays, overwrite=overwrite)


def load_models(path: str | os.PathLike[str]) -> dict[str, Model]:
    """Read a model file of one variable or several.

    Parameters
    ----------
    path
        A file that :func:`save_models`, :meth:`Model.save` or ``dkrls fit`` wrote.

    Returns
    -------
    dict
        The models, by name of their variable.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, or of a version that this program cannot read.
    """
    header, arrays = modelfile.read(path)
    try:
        check_variables(header)
        records = split_record(header, arrays)
        for place, (one, _) in enumerate(records):
            check_header(one, f"variables[{place}]" if "variables" in header else "")
        folder = os.path.dirname(os.path.abspath(path))
        models = [_model_from(*record, folder) for record in records]
        found = {model.name: model for model in models}
        if not found or len(found) < len(models):
            raise ValueError("its variables do not have a name each")
        return found
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ModelFileError(f"'{path}' is damaged ({reason}). Fit the model again.") from None


def load_model(path: str | os.PathLike[str], var: str | None = None) -> Model:
    """Read a model file.

    Parameters
    ----------
    path
        A file that :meth:`Model.save` or ``dkrls fit`` wrote.
    var
        Name of the variable; needed only if the file has several.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, or of a version that this program cannot read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from dkrls_cli import fit
    >>> model = fit(np.outer(np.arange(9.0), np.arange(8.0)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(pathlib.Path(folder) / "m.npz")
    ...     load_model(pathlib.Path(folder) / "m.npz").dims
    ('dim_0', 'dim_1')
    """
    models = load_models(path)
    if var is None and len(models) > 1:
        raise SettingError(
            f"'{path}' has models of {len(models)} variables: {', '.join(models)}. Choose one.",
            setting="var",
        )
    name = next(iter(models)) if var is None else var
    if name not in models:
        raise SettingError(
            f"'{path}' has no variable '{name}'. It has {', '.join(models)}.{suggest(name, models)}"
        )
    return models[name]


def pickled(model: Model) -> tuple[str, dict[str, NDArray[Any]]]:
    """Return a model as a file stores it, for :func:`unpickled` in another process."""
    header, arrays = model_record(model)
    return json.dumps(header), dict(arrays)


def unpickled(header: str, arrays: Mapping[str, NDArray[Any]]) -> Model:
    """Return the model that :func:`pickled` has made."""
    return _model_from(json.loads(header), arrays, os.curdir)


def _model_from(
    header: Mapping[str, Any], stored: Mapping[str, NDArray[Any]], folder: str
) -> Model:
    """Return the model that was recorded, or raise an error if its parts do not fit together."""
    arrays = widen_arrays(header, stored)
    check_arrays(arrays)
    known = header.get("reference")
    if known is not None:
        arrays = {**arrays, "core": stand_in_core(known)}
    trained = cascade_from(header, arrays)
    for level, numbers in zip(trained.levels, trained.coordinates, strict=True):
        check_axis(numbers, level)
    poles = None
    if header.get("poles") is not None:
        poles, trained = poles_from(header["poles"], trained)
    own = list(trained.coordinates)
    if poles is not None:
        rows = own[poles.latitude]
        own[poles.latitude] = rows[poles.inner(rows.size)]
    axes = tuple(
        axis_from(axis, level.name, known, arrays)
        for axis, level, known in zip(header["axes"], trained.levels, own, strict=True)
    )
    attrs, origin = from_json(header["attrs"]), from_json(header["origin"])
    coverage = coverage_from(header, arrays, axes)
    check_axes(axes if coverage is None else (*axes, *coverage.axes))
    style = style_from(header["style"], arrays, axes if coverage is None else coverage.axes)
    bars = bars_from(header["bars"], arrays, trained.shape, trained.joint_ridge is not None)
    filled = filled_from(arrays, trained.shape)
    return Model(
        trained,
        axes,
        tuple(header["hierarchy"]),
        bars,
        header["name"],
        attrs,
        style,
        origin,
        filled,
        known_coverage=coverage,
        bounds=bounds_from(header),
        poles=poles,
        cell_means=tuple(header.get("cell_means", ())),
        reference=None if known is None else reference_from(known, folder),
    )


def model_record(model: Model, folder: str | None = None) -> Record:
    """Return a model as a file in some folder stores it."""
    if model.reference is None:
        model.cascade.refuse_stand_in()
    cascade, poles = model.cascade, {}
    if model.poles is not None:
        record, cascade = poles_record(cascade, model.poles)
        poles = {"poles": record}
    header, arrays = cascade_record(cascade)
    header |= poles
    if model.reference is not None:
        core = arrays.pop("core")
        header["reference"] = reference_record(model.reference, core.shape, cascade.mean, folder)
    bars, missing = bars_record(model.calibrated_bars)
    whole = model.coverage.axes
    style, beside = style_record(grow_style(model.style, whole[model.grows]), whole)
    axes = [axis_record(axis, f"written_{i}") for i, axis in enumerate(model.axes)]
    header |= {
        "bars": bars,
        "program": f"dkrls {__version__}",
        "name": model.name,
        "attrs": to_json(model.attrs),
        "style": style,
        "origin": to_json(model.origin),
        "hierarchy": list(model.hierarchy),
        "axes": [record for record, _ in axes],
    }
    if model.bounds is not None:
        header["bounds"] = bounds_record(model.bounds)
    if model.cell_means:
        header["cell_means"] = list(model.cell_means)
    filled = {} if model.filled is None else {"filled": pack_mask(model.filled)}
    coverage, land = coverage_record(model.known_coverage, model.axes)
    written = {name: array for _, one in axes for name, array in one.items()}
    together = {**arrays, **missing, **filled, **land, **beside, **written}
    return narrow_record({**header, **coverage}, together, {"core"} if cascade.exact else ())
