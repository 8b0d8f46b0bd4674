"""The plan that settings make for the axes of a grid.

What can be refused before a value is read is refused here, and by :class:`Settings` what no grid
allows at all. A fit and a dry run both call :func:`plan_fit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dkrls_cli.cascade.level import (
    Level,
    check_joint_kernel,
    check_ridges,
    checked_coordinates,
)
from dkrls_cli.cascade.poles.continuation import plan_rows
from dkrls_cli.errors import DkrlsError, SettingError
from dkrls_cli.gaps.bases.sphere import sphere_memory
from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.cf import (
    by_dimension,
    hierarchy_of,
    natural_cycles,
    period_beside,
    place_of,
)
from dkrls_cli.model.planning.groups import find_group, is_sphere
from dkrls_cli.model.planning.refusals import (
    check_levels,
    refuse_poles,
    refuse_poles_of_means,
    refuse_with_errors,
    refuse_with_gaps,
)
from dkrls_cli.model.planning.requests import FitPlan, LevelRequest
from dkrls_cli.model.poles.planning import plan_poles
from dkrls_cli.model.settings import DEFAULTS, Settings, pick, read_family, read_length, read_number


def plan_fit(
    axes: Sequence[Axis],
    settings: Settings = DEFAULTS,
    complete: bool | None = None,
    *,
    errors: bool = False,
) -> FitPlan:
    """Resolve settings for the axes of a grid, and refuse what these axes do not allow.

    Parameters
    ----------
    axes
        Axes of the grid, in the order of the data.
    settings
        Settings of the fit.
    complete
        Whether no cell is missing. None: not known, as before the values are read; the grid is
        then taken for complete, and nothing is refused because of it.
    errors
        Whether observations have errors of known size: there is then one joint ridge.

    Returns
    -------
    FitPlan
        Levels, given or to be chosen, and the kind of ridge.

    Raises
    ------
    SettingError
        If the settings contradict each other, name a dimension that the data does not have, or
        need a complete grid.
    InputError
        If coordinates are not finite, or two of a level are the same.

    Examples
    --------
    >>> from dkrls_cli.grid.axes import axis_of
    >>> axes = [axis_of("time", [0.0, 1.0, 2.0]), axis_of("x", [0.5, 1.5])]
    >>> plan_fit(axes, Settings(sigma={"x": 2})).hierarchy
    ('x', 'time')
    """
    settings = _named_as(axes, settings)
    joint = settings.noise == "joint" or complete is False or errors
    if errors:
        refuse_with_errors(settings, axes)
    if complete is False:
        refuse_with_gaps(settings)
    joint_ridge = _joint_ridge(settings) if joint else None
    whole = {level.name: level for level in settings.levels or () if isinstance(level, Level)}
    check_levels(settings, [axis.name for axis in axes], whole, joint)
    hierarchy = hierarchy_of(axes, settings.level_names)
    levels = tuple(whole.get(axis.name) or _request(axis, axes, settings, joint) for axis in axes)
    examples = [level if isinstance(level, Level) else level.example for level in levels]
    if joint:
        check_ridges(list(whole.values()), joint_ridge or 0.0)
        for level in examples:
            check_joint_kernel(level.name, level.kernel)
    shape = tuple(axis.size for axis in axes)
    checked_coordinates([axis.numbers for axis in axes], examples, shape)
    group = find_group(axes, settings, levels)
    given = settings.group_names is not None
    if given and complete and not errors:
        raise SettingError(
            f"A group ({','.join(settings.group_names or ())}) is for grids with missing cells, "
            "and no cell is missing here. Leave it out."
        )
    sphere = is_sphere(axes, group, levels)
    poles = None
    if errors or (given and complete is False):
        refuse_poles(settings)
    elif settings.cell_means:
        refuse_poles_of_means(settings)
    else:
        poles = plan_poles(axes, [level.kernel.period for level in examples], settings.poles)
    return FitPlan(hierarchy, levels, joint, joint_ridge, group, given, sphere, poles)


def group_memory(axes: Sequence[Axis], settings: Settings) -> int:
    """Return the bytes that the matrices of a group take where cells are missing.

    Settings that cannot be have none: the fit itself says what is wrong.
    """
    try:
        plan = plan_fit(axes, settings)
    except DkrlsError:
        return 0
    if not plan.sphere:
        return 0
    by_kind = {place_of(axes[place]): axes[place].numbers for place in plan.group}
    return sphere_memory(by_kind["latitude"], by_kind["longitude"])


def pole_shape(axes: Sequence[Axis], settings: Settings) -> tuple[int, ...]:
    """Return the sizes of a grid with the rows that may go on across the poles.

    Settings that cannot be add none: the fit itself says what is wrong.
    """
    shape = [axis.size for axis in axes]
    try:
        poles = plan_fit(axes, settings).poles
    except DkrlsError:
        poles = None
    if poles is not None:
        before, after = plan_rows(axes[poles.latitude].numbers)
        shape[poles.latitude] += len(before) + len(after)
    return tuple(shape)


def _named_as(axes: Sequence[Axis], settings: Settings) -> Settings:
    """Return settings whose dimensions have the names of the axes, or raise SettingError."""
    named: dict[str, Any] = {}
    for name in ("kernel", "sigma", "ridge", "period"):
        value = getattr(settings, name)
        if isinstance(value, Mapping):
            named[name] = by_dimension(value, axes, purpose=f" to set {name} of")
    if settings.levels is not None:
        hierarchy = hierarchy_of(axes, settings.level_names)
        single = len(hierarchy) - len(settings.levels)  # not named, and first
        named["levels"] = [
            *hierarchy[:single],
            *(
                replace(level, name=name) if isinstance(level, Level) else name
                for level, name in zip(settings.levels, hierarchy[single:], strict=True)
            ),
        ]
    return replace(settings, **named)


def _request(axis: Axis, axes: Sequence[Axis], settings: Settings, joint: bool) -> LevelRequest:
    """Return the settings given for one axis."""
    circle = pick(settings.period, axis.name)
    return LevelRequest(
        axis.name,
        read_family(pick(settings.kernel, axis.name)),
        read_length(axis, pick(settings.sigma, axis.name), "sigma"),
        None if joint else read_number(pick(settings.ridge, axis.name), "ridge"),
        period_beside(axis, axes) if circle == "auto" else _period(axis, circle),
        natural_cycles(axis) if circle == "auto" else (),
    )


def _period(axis: Axis, value: float | str | None) -> float | None:
    """Return the length of a circle in units of an axis, or None for a line."""
    return None if value is None or value == "none" else read_length(axis, value, "period")


def _joint_ridge(settings: Settings) -> float | None:
    """Return the one ridge of the whole grid, or None if it is to be chosen."""
    if isinstance(settings.ridge, Mapping):
        raise SettingError(
            "A joint ridge is one number for the whole grid. Give the ridge without a dimension."
        )
    return read_number(settings.ridge, "ridge")
