"""Errors of observations in files: a number, another variable of the input, or another file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.netcdf import fields_of, open_xarray
from dkrls_cli.files.reading import (
    ALL,
    has_variable,
    open_file,
    open_slices,
    open_source,
    open_variables,
    read_tables,
)
from dkrls_cli.files.source import Source, expand, kind_of
from dkrls_cli.files.suitable import keep_suitable
from dkrls_cli.files.text.tables import value_columns
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.observations import read_number
from dkrls_cli.spelling import suggest

_STANDARD_ERROR = "standard_error"
"""Modifier of the standard name of a variable with the standard errors of another, after CF."""


@dataclass(frozen=True)
class GivenErrors:
    """Where the errors of the observations of variables are, as the user has given it.

    Attributes
    ----------
    usual
        A number, the name of a variable or a file, for every variable that is not named; or None.
    named
        The same by name of the variable.
    """

    usual: str | None = None
    named: Mapping[str, str] | None = None

    @classmethod
    def read(cls, texts: Sequence[str] | None) -> GivenErrors:
        """Return what texts such as ``0.5`` or ``sst=sst_error`` say.

        Raises
        ------
        SettingError
            If a variable is named twice, or two are for all variables.
        """
        usual: list[str] = []
        named: dict[str, str] = {}
        for text in texts or ():
            name, equals, value = text.partition("=")
            if not equals or os.path.exists(text):
                usual.append(text)
            elif name.strip() in named or not (name.strip() and value.strip()):
                raise SettingError(
                    f"Invalid errors '{text}'. Give VALUE, or NAME=VALUE once for each variable."
                )
            else:
                named[name.strip()] = value.strip()
        if len(usual) > 1:
            raise SettingError(
                f"The errors {' and '.join(usual)} are both for all variables. Give one, or "
                "NAME=VALUE for each variable."
            )
        return cls(usual[0] if usual else None, named)

    def __bool__(self) -> bool:
        """Return whether any errors are given."""
        return self.usual is not None or bool(self.named)

    def of(self, name: str) -> str | None:
        """Return where the errors of a variable are; None if it has none."""
        return (self.named or {}).get(name, self.usual)

    @property
    def texts(self) -> list[str]:
        """All numbers, variables and files."""
        return [*([] if self.usual is None else [self.usual]), *(self.named or {}).values()]

    def refuse_unknown(self, sources: Sequence[Source]) -> None:
        """Raise SettingError if errors are given for a variable that is not there."""
        known = [source.name for source in sources]
        for name in self.named or {}:
            if name not in known:
                raise SettingError(
                    f"Errors are given for a variable '{name}', which is not modelled. Modelled "
                    f"are: {', '.join(known)}.{suggest(name, known)}"
                )


def open_with_errors(
    inputs: Sequence[str],
    names: Sequence[str],
    levels: Sequence[str] | None,
    given: GivenErrors,
) -> list[Source]:
    """Open variables, each with the errors of its observations.

    Parameters
    ----------
    inputs, names, levels
        As for :func:`dkrls_cli.files.reading.open_variables`. A variable that holds errors is none
        of all.
    given
        Where the errors are.

    Raises
    ------
    InputError
        If errors are neither a number nor a variable of the inputs nor a file.
    SettingError
        If errors are given for a variable that is not modelled.
    """
    raw = read_tables(inputs)
    beside = [text for text in given.texts if read_number(text) is None and not _is_file(text)]
    if raw:
        sources = _open_columns(inputs, names, levels, beside, raw)
    else:
        _refuse_absent(inputs, beside)
        sources = open_variables(inputs, _without(inputs, names, beside), levels)
    errors = {source.name: source for source in sources if source.name in beside}
    modelled = [source for source in sources if source.name not in beside]
    given.refuse_unknown(modelled)
    modelled = keep_suitable(modelled) if ALL in names else modelled

    def attach(source: Source) -> Source:
        text = given.of(source.name)
        if text is None or read_number(text) is not None or _is_file(text):
            return _with_other(source, text)
        its = errors[text] if text in errors else _open_beside(inputs, text, source, levels)
        return replace(source, errors=its.grid, errors_from=text)

    return [attach(source) for source in modelled]


def _with_other(source: Source, text: str | float | None) -> Source:
    """Return a source with errors that are a number or in another file; None: without any."""
    if text is None:
        return source
    number = read_number(text)
    if number is None:
        return replace(source, errors=open_file(str(text)).grid)
    return replace(source, errors=partial(float, number), errors_from=number)


def slices_with_errors(
    source: Source,
    inputs: Sequence[str],
    text: str | float,
    hierarchy: Sequence[str],
    raw: Mapping[str, bytes],
) -> Source:
    """Return a source of new slices with the errors of their observations.

    Parameters
    ----------
    source
        The slices.
    inputs, hierarchy, raw
        As for :func:`dkrls_cli.files.reading.open_slices`.
    text
        A number, the name of a variable of the inputs, or a file.

    Raises
    ------
    InputError
        If errors are neither of these.
    """
    if read_number(text) is not None or _is_file(str(text)):
        return _with_other(source, text)
    name = str(text)
    if not raw:
        _refuse_absent(inputs, [name])
    errors = open_slices(inputs, name, hierarchy, name, raw)
    return replace(source, errors=errors.grid, errors_from=name)


def _is_file(text: str) -> bool:
    return os.path.exists(text)


def _refuse_absent(inputs: Sequence[str], names: Sequence[str]) -> None:
    """Raise InputError if a dataset has no variable of a name."""
    for name in names:
        if not has_variable(inputs, name):
            path = expand(inputs[0])[0]
            with open_xarray(path, kind_of(path)) as dataset:
                known = [str(other) for other in dataset.data_vars]
            raise InputError(
                f"The errors '{name}' are no number, no variable of '{path}' and no file. It has "
                f"{', '.join(known)}.{suggest(name, known)}",
            )


def _without(inputs: Sequence[str], names: Sequence[str], beside: Sequence[str]) -> list[str]:
    """Return the variables of a dataset to model, those that hold errors left out.

    Where none is named and one is left, it is that one.
    """
    if names and ALL not in names:
        return [name for name in names if name not in beside]
    path = expand(inputs[0])[0]
    with open_xarray(path, kind_of(path)) as dataset:
        left = [name for name in fields_of(dataset, path) if name not in beside]
    return left if names or len(left) == 1 else []


def _open_columns(
    inputs: Sequence[str],
    names: Sequence[str],
    levels: Sequence[str] | None,
    beside: Sequence[str],
    raw: Mapping[str, bytes],
) -> list[Source]:
    """Open columns of tables: those of values, and those of their errors."""
    if not beside:
        return open_variables(inputs, names, levels, raw)
    path = expand(inputs[0])[0]
    _, others = value_columns(raw[path], path, beside, None)
    if ALL in names and levels is not None:
        names = [name for name in others if name not in levels]
    if not names:
        left = [name for name in others if name not in (levels or ())]
        if levels is None or len(left) != 1:
            raise InputError(
                f"'{path}' has columns {', '.join(others)} beside the errors. Choose the one of "
                "the values by its name.",
                setting="var",
            )
        names = left
    return open_variables(inputs, [*dict.fromkeys([*names, *beside])], levels, raw)


def _open_beside(
    inputs: Sequence[str], name: str, source: Source, levels: Sequence[str] | None
) -> Source:
    """Open a variable with errors; one that does not vary along joined files, in the first."""
    paths = [path for given in inputs for path in expand(given)]
    last = hierarchy_of(source.axes, levels)[-1]
    first = open_file(paths[0], name)
    if len(paths) == 1 or last not in [axis.name for axis in first.axes]:
        return first
    return open_source(inputs, name, levels)


def known_errors(inputs: Sequence[str], source: Source) -> str | None:
    """Return the variable of a dataset that CF says to hold the standard errors of another."""
    path = expand(inputs[0])[0]
    kind = kind_of(path)
    if kind == "table":
        return None
    with open_xarray(path, kind) as dataset:
        if source.name not in dataset.data_vars:
            return None
        own = dataset[source.name].attrs
        wanted = f"{own.get('standard_name', '')} {_STANDARD_ERROR}"
        linked = str(own.get("ancillary_variables", "")).split()
        for name, array in dataset.data_vars.items():
            standard = str(array.attrs.get("standard_name", ""))
            is_linked = str(name) in linked and standard.endswith(_STANDARD_ERROR)
            if is_linked or (own.get("standard_name") and standard == wanted):
                return str(name)
    return None
