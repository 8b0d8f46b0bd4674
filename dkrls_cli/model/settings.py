"""Settings of a fit, and the plan that they make for the axes of a grid.

Everything that can be refused before a value is read is refused here: by :class:`Settings` what no
grid allows, by :func:`plan_fit` what these axes do not allow. A fit and a dry run both call them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from dkrls_cli.cascade.factors.choice import LONG
from dkrls_cli.cascade.kernels import KERNELS, kernel_named, unknown_kernel
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
    find_axis,
    hierarchy_of,
    natural_cycles,
    natural_period,
    place_of,
)
from dkrls_cli.grid.iso.durations import is_duration
from dkrls_cli.model.answering.bounds import BoundsLike, read_bounds
from dkrls_cli.model.answering.tolerance import Tolerance, ToleranceLike, read_tolerance
from dkrls_cli.model.poles.planning import SIGNS, PolePlan, Poles, plan_poles
from dkrls_cli.spelling import suggest

T = TypeVar("T")
PerLevel: TypeAlias = T | Mapping[str, T]
"""One value for all levels, or a value per dimension (``auto`` where one is not named)."""

Noise = Literal["auto", "level", "joint"]
Missing = Literal["model", "error"]
Storage = Literal["float64", "float32"]

# Fewer blocks would leave all slices out at once.
_FEWEST_FOLDS = 2

# Fewer dimensions have no common distance.
_FEWEST_IN_GROUP = 2

# Coordinates of each dimension of a group that is chosen by itself: fewer have no shape to see, and
# more would need a matrix of their square.
_GROUP_SIZES = (8, 2048)

# Degrees that latitudes span, or reach from the equator, from which a plane is no good map of the
# sphere: at 60 degrees a step of longitude is half of one at the equator.
_SPHERE_SPAN, _SPHERE_REACH = 60.0, 60.0

# Latitude of a pole, with what single precision may add.
_POLE = 90.0001

# Bytes of the matrices of a sphere at most. Those of steps of half a degree take 190 MB, or 370 MB
# if latitudes are not the same north and south.
_SPHERE_MEMORY = 2**29


def _values(setting: PerLevel[T]) -> Iterator[T]:
    """Yield the one value of a setting, or that of every dimension named."""
    if isinstance(setting, Mapping):
        yield from setting.values()
    else:
        yield setting


def _pick(setting: PerLevel[Any], dim: str) -> Any:
    """Return the value of a setting for one dimension."""
    return setting.get(dim, "auto") if isinstance(setting, Mapping) else setting


def _check_choice(what: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise SettingError(
            f"Unknown {what} '{value}'. Choose from: {', '.join(choices)}."
            f"{suggest(str(value), choices)}"
        )


def _family(name: str) -> str | None:
    if name == "auto":
        return None
    if name not in KERNELS:
        raise unknown_kernel(str(name), "auto")
    return name


def _check_length(value: float | str, what: str) -> None:
    """Raise SettingError if a length is no number, no duration and not ``auto``."""
    if not (isinstance(value, str) and is_duration(value)):
        _number(value, what, or_else="a duration such as 30D, or auto")


def _length(axis: Axis, value: float | str, what: str) -> float | None:
    """Return a length in units of an axis, or None for ``auto``; a duration needs dates."""
    if not (isinstance(value, str) and is_duration(value)):
        return _number(value, what)
    if axis.time is None:
        raise SettingError(
            f"Invalid {what} '{value}' of '{axis.name}', which has no dates. Give a number"
            + (f" of {axis.length_units}." if axis.length_units else ".")
        )
    return axis.time.length(value)


def _number(value: float | str, what: str, or_else: str = "or auto") -> float | None:
    """Return a number that may be given as text, or None for ``auto``."""
    if value == "auto":
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise SettingError(f"Invalid {what} '{value}'. Give a number, {or_else}.") from None


@dataclass(frozen=True)
class Settings:
    """Settings of a fit. What is ``auto`` is chosen on the data.

    Attributes
    ----------
    levels
        The hierarchy from level 0 to the last: names of dimensions, or whole levels. None: the
        dimensions in the order of the data, a time-like one last.
    kernel, sigma, ridge, period
        Settings of the levels: one value for all, or a mapping from dimension to value. Numbers
        may be given as text; a sigma or period of dates also as a duration such as ``30D`` or
        ``1Y``. A dimension ``latitude`` may be named ``lat``. A period of None or ``none`` is a
        line; ``auto`` is the circle that the coordinates close, if they do.
    noise
        ``level``: a ridge per level, the paper's. ``joint``: one ridge over the whole grid.
        ``auto``: level on complete grids, joint where cells are missing.
    missing
        ``model``: fit through missing cells. ``error``: refuse them.
    mean
        The number that answers fall back to far from data; ``auto`` is the mean of the data.
    compact, dtype
        See :func:`dkrls_cli.cascade.fit.fit_cascade`.
    folds
        Number of blocks of neighbours to leave out when choosing, instead of single slices.
    bounds
        The least and the largest value of an answer: a pair with None for an open end, or a text
        such as ``0,1`` or ``0,``. None or ``none``: no bounds. ``auto``: those that the attributes
        of the variable tell, see :func:`dkrls_cli.model.answering.bounds.choose_bounds`.
    tolerance
        How far the answers of the smallest model may be from those of the full one: a share of the
        standard deviation, or a text with the units of the data such as ``0.05 K``. It takes the
        place of ``compact`` and ``dtype``. See :mod:`dkrls_cli.cascade.storage.compress`.
    group
        Dimensions with one distance where cells are missing, see :mod:`dkrls_cli.gaps.field`: names
        of two or more, or a text such as ``lat,lon``. ``none``: no such dimensions. ``auto``:
        latitude and longitude, or the axes of a map projection, where hidden cells are predicted
        clearly better with them.
    accept_inexact
        Whether to take missing cells that could not be solved for exactly, with a warning.
    poles
        Whether a field on latitudes that reach a pole, and longitudes all round, goes on behind it
        on the other side of the globe: as a ``scalar``, with the same sign; as a component of a
        ``vector``, with the opposite one; or not (``none``). ``auto``: as latitudes next to the
        poles are predicted best; data with missing cells does not. See
        :mod:`dkrls_cli.cascade.poles.continuation`.
    cell_means
        Dimensions along which the data are means over cells: names, or a text such as ``lat,lon``.
        True: those that ``cell_methods`` tells, or else latitude and longitude, or else all.
    robust
        Whether cells that the others speak against are not shown to the fit, see
        :mod:`dkrls_cli.model.quality.robust`.

    Raises
    ------
    SettingError
        If a value is not one that its setting can have.

    Examples
    --------
    >>> Settings(sigma={"time": 30.0}, noise="joint").given
    {'sigma': {'time': 30.0}, 'noise': 'joint'}
    """

    levels: Sequence[Level | str] | None = None
    kernel: PerLevel[str] = "auto"
    sigma: PerLevel[float | str] = "auto"
    ridge: PerLevel[float | str] = "auto"
    period: PerLevel[float | str | None] = "auto"
    noise: Noise = "auto"
    missing: Missing = "model"
    mean: float | str = "auto"
    compact: bool = False
    dtype: Storage = "float64"
    folds: int | None = None
    bounds: BoundsLike = "auto"
    tolerance: ToleranceLike = None
    group: str | Sequence[str] = "auto"
    accept_inexact: bool = False
    poles: Poles = "auto"
    cell_means: bool | str | Sequence[str] = False
    robust: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.cell_means, bool | str):
            object.__setattr__(self, "cell_means", tuple(self.cell_means))
        _check_choice("kind of noise", self.noise, get_args(Noise))
        _check_choice("way with missing cells", self.missing, get_args(Missing))
        _check_choice("storage type", self.dtype, get_args(Storage))
        _check_choice("way across the poles", self.poles, get_args(Poles))
        for family in _values(self.kernel):
            _family(family)
        for name, check in (("sigma", _check_length), ("ridge", _number)):
            for value in _values(getattr(self, name)):
                check(value, name)
        for length in _values(self.period):
            if length is not None and length != "none":
                _check_length(length, "period")
        mean = _number(self.mean, "mean")
        if mean is not None and not math.isfinite(mean):
            raise SettingError(f"Invalid mean {self.mean}. It must be a finite number, or auto.")
        if self.folds is not None and self.folds < _FEWEST_FOLDS:
            raise SettingError(f"Invalid number of folds {self.folds}. It must be 2 or above.")
        if isinstance(self.bounds, list | np.ndarray):
            object.__setattr__(self, "bounds", tuple(self.bounds))
        if self.bounds != "auto":
            read_bounds(self.bounds)
        _ = self.allowed
        if not isinstance(self.group, str):
            object.__setattr__(self, "group", tuple(self.group))
        if self.group_names is not None and len(set(self.group_names)) < _FEWEST_IN_GROUP:
            raise SettingError(
                f"Invalid group '{','.join(self.group_names)}'. Name two or more dimensions, such "
                "as lat,lon; or give none or auto."
            )

    @property
    def group_names(self) -> tuple[str, ...] | None:
        """Names of the dimensions of the group, or None if none are given."""
        if self.group in ("auto", "none"):
            return None
        names = self.group.split(",") if isinstance(self.group, str) else self.group
        return tuple(name.strip() for name in names)

    @property
    def given(self) -> dict[str, Any]:
        """The settings that differ from the defaults, by name."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }

    @property
    def level_names(self) -> list[str] | None:
        """Names of the dimensions from level 0 to the last, or None if they are not given."""
        if self.levels is None:
            return None
        return [level.name if isinstance(level, Level) else level for level in self.levels]

    @property
    def allowed(self) -> Tolerance | None:
        """The tolerance as a value, or None if the model is stored as it is."""
        return None if self.tolerance is None else read_tolerance(self.tolerance)

    @property
    def centre(self) -> float | None:
        """The mean as a number, or None if it is that of the data."""
        return _number(self.mean, "mean")


DEFAULTS = Settings()
"""The settings of a fit to which none is given."""


@dataclass(frozen=True)
class LevelRequest:
    """The settings that were given for one level; None is to be chosen.

    Attributes
    ----------
    name
        Name of the dimension.
    family, sigma, ridge
        Of the kernel and the level; the family with the warp of the coordinate, such as
        ``log-cubic``.
    period
        Length of the circle that the coordinates lie on. Here None is not to be chosen: it is a
        line.
    cycles
        Lengths of the cycles that the data may repeat with, and that may be chosen.

    Raises
    ------
    SettingError
        If a level cannot have one of these settings.
    """

    name: str
    family: str | None = None
    sigma: float | None = None
    ridge: float | None = None
    period: float | None = None
    cycles: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        kernel = self.example.kernel
        if kernel.is_spline and self.sigma is not None:
            raise SettingError(
                f"Invalid sigma {self.sigma:g} of '{self.name}'. A {kernel.family} spline has no "
                "length scale: give none, or another kernel.",
                setting="sigma",
            )

    @property
    def example(self) -> Level:
        """A level with these settings, and arbitrary ones in place of those to be chosen."""
        sigma = 1.0 if self.sigma is None else self.sigma
        kernel = kernel_named(self.family or "gaussian", sigma, self.period)
        return Level(self.name, kernel, self.ridge or 0.0)


@dataclass(frozen=True)
class FitPlan:
    """The plan of a fit: its settings, resolved for the axes of a grid.

    Attributes
    ----------
    hierarchy
        Names of the dimensions from level 0 to the last.
    levels
        Per axis of the data, a level that was given whole or the settings given for it.
    joint
        Whether one ridge serves the whole grid.
    joint_ridge
        That ridge, or None if it is to be chosen.
    group
        Axes that may share one distance where cells are missing, by their places in the data.
    group_given
        Whether they are to share it whatever the data says.
    sphere
        Whether these axes are latitude and longitude, and the distance that on the sphere.
    poles
        The latitude and longitude that may go on across the poles, or None if none do.
    """

    hierarchy: tuple[str, ...]
    levels: tuple[Level | LevelRequest, ...]
    joint: bool = False
    joint_ridge: float | None = None
    group: tuple[int, ...] = ()
    group_given: bool = False
    sphere: bool = False
    poles: PolePlan | None = None


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
        _refuse_with_errors(settings, axes)
    if complete is False:
        _refuse_with_gaps(settings)
    joint_ridge = _joint_ridge(settings) if joint else None
    whole = {level.name: level for level in settings.levels or () if isinstance(level, Level)}
    _check_levels(settings, [axis.name for axis in axes], whole, joint)
    hierarchy = hierarchy_of(axes, settings.level_names)
    levels = tuple(whole.get(axis.name) or _request(axis, settings, joint) for axis in axes)
    examples = [level if isinstance(level, Level) else level.example for level in levels]
    if joint:
        check_ridges(list(whole.values()), joint_ridge or 0.0)
        for level in examples:
            check_joint_kernel(level.name, level.kernel)
    shape = tuple(axis.size for axis in axes)
    checked_coordinates([axis.numbers for axis in axes], examples, shape)
    group = _group(axes, settings, levels)
    given = settings.group_names is not None
    if given and complete and not errors:
        raise SettingError(
            f"A group ({','.join(settings.group_names or ())}) is for grids with missing cells, "
            "and no cell is missing here. Leave it out."
        )
    sphere = _is_sphere(axes, group, levels)
    poles = None
    if errors or (given and complete is False):
        _refuse_poles(settings)
    elif settings.cell_means:
        _refuse_poles_of_means(settings)
    else:
        poles = plan_poles(axes, [level.kernel.period for level in examples], settings.poles)
    return FitPlan(hierarchy, levels, joint, joint_ridge, group, given, sphere, poles)


def _group(
    axes: Sequence[Axis], settings: Settings, levels: Sequence[Level | LevelRequest]
) -> tuple[int, ...]:
    """Return the places of the axes that may share one distance; none if there are none."""
    if settings.group == "none" or (settings.poles in SIGNS and settings.group == "auto"):
        return ()
    names = settings.group_names
    if names is None:
        return _natural_group(axes, levels)
    found = [find_axis(name, axes, purpose=" to group") for name in names]
    for axis in found:
        if axis.labels is not None or not 1 < axis.size <= _GROUP_SIZES[1]:
            raise SettingError(
                f"'{axis.name}' cannot be in a group: it has {axis.size} coordinates"
                f"{' of text' if axis.labels is not None else ''}. Expected 2 to "
                f"{_GROUP_SIZES[1]} numbers."
            )
    longest = max(axes, key=lambda axis: axis.size)
    if longest.size > _GROUP_SIZES[1]:
        raise SettingError(
            f"'{longest.name}' has {longest.size} coordinates. Beside a group every dimension has "
            f"{_GROUP_SIZES[1]} at most. Leave the group out, or fit a part."
        )
    places = tuple(sorted({list(axes).index(axis) for axis in found}))
    if len(places) < len(names):
        raise SettingError(f"The group '{','.join(names)}' names a dimension twice. Name it once.")
    _check_group(places, levels)
    return places


def _check_group(places: Sequence[int], levels: Sequence[Level | LevelRequest]) -> None:
    """Raise SettingError if levels of a group are given different kernels, or cycles."""
    own = [level for level in (levels[p] for p in places) if isinstance(level, LevelRequest)]
    if len(own) < len(places) or len({level.family for level in own}) > 1:
        raise SettingError(
            "The dimensions of a group have one kernel. Give none, or the same for all of them."
        )


def _natural_group(axes: Sequence[Axis], levels: Sequence[Level | LevelRequest]) -> tuple[int, ...]:
    """Return the places of latitude and longitude, or of the axes of a map; none without both.

    Beside a group, every other dimension has a matrix of its square as well.
    """
    if any(axis.size > _GROUP_SIZES[1] for axis in axes):
        return ()
    kinds = [place_of(axis) for axis in axes]
    for wanted in (("latitude", "longitude"), ("projection", "projection")):
        found = [place for place, kind in enumerate(kinds) if kind in wanted]
        fits = all(_GROUP_SIZES[0] <= axes[p].size <= _GROUP_SIZES[1] for p in found)
        open_ones = all(_is_open(levels[place]) for place in found)
        if sorted(str(kinds[p]) for p in found) == sorted(wanted) and fits and open_ones:
            return tuple(found)
    return ()


def _is_sphere(
    axes: Sequence[Axis], group: Sequence[int], levels: Sequence[Level | LevelRequest]
) -> bool:
    """Return whether a group has distances on the sphere.

    Its axes are then latitude and longitude, which goes round. Where latitudes are few and near the
    equator a plane serves as well, and so it does for a grid that is too fine for the matrices of a
    sphere, or where the user has given two sigmas.
    """
    by_kind = {place_of(axes[place]): (axes[place], levels[place]) for place in group}
    if len(group) != _FEWEST_IN_GROUP or by_kind.keys() != {"latitude", "longitude"}:
        return False
    (latitude, own), (longitude, other) = by_kind["latitude"], by_kind["longitude"]
    if not (isinstance(own, LevelRequest) and isinstance(other, LevelRequest)):
        return False
    farthest = float(np.abs(latitude.numbers).max())
    wide = np.ptp(latitude.numbers) >= _SPHERE_SPAN or farthest >= _SPHERE_REACH
    return bool(
        own.period is None
        and other.period is not None
        and other.period == longitude.turn
        and own.sigma == other.sigma
        and farthest <= _POLE
        and wide
        and latitude.size <= LONG  # a search sees longer ones through windows that it moves
        and sphere_memory(latitude.numbers, longitude.numbers) <= _SPHERE_MEMORY
    )


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


def _is_open(level: Level | LevelRequest) -> bool:
    """Return whether kernel and sigma of a level are to be chosen."""
    return isinstance(level, LevelRequest) and level.family is None and level.sigma is None


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


def _request(axis: Axis, settings: Settings, joint: bool) -> LevelRequest:
    """Return the settings given for one axis."""
    circle = _pick(settings.period, axis.name)
    return LevelRequest(
        axis.name,
        _family(_pick(settings.kernel, axis.name)),
        _length(axis, _pick(settings.sigma, axis.name), "sigma"),
        None if joint else _number(_pick(settings.ridge, axis.name), "ridge"),
        natural_period(axis) if circle == "auto" else _period(axis, circle),
        natural_cycles(axis) if circle == "auto" else (),
    )


def _period(axis: Axis, value: float | str | None) -> float | None:
    """Return the length of a circle in units of an axis, or None for a line."""
    return None if value is None or value == "none" else _length(axis, value, "period")


def _joint_ridge(settings: Settings) -> float | None:
    """Return the one ridge of the whole grid, or None if it is to be chosen."""
    if isinstance(settings.ridge, Mapping):
        raise SettingError(
            "A joint ridge is one number for the whole grid. Give the ridge without a dimension."
        )
    return _number(settings.ridge, "ridge")


def _refuse_with_gaps(settings: Settings) -> None:
    """Raise SettingError for a setting that a grid with missing cells does not allow."""
    if settings.folds is not None:
        raise SettingError(
            "Folds are for complete grids, and cells are missing here: settings are then chosen "
            "by hiding cells as the gaps do. Leave the folds out, or fill the gaps first."
        )
    if settings.noise == "level":
        raise SettingError(
            "A ridge per level needs a complete grid, and cells are missing here: through gaps "
            "there is one joint ridge only. Leave the noise auto, or fill the gaps first."
        )


def _refuse_poles_of_means(settings: Settings) -> None:
    """Raise SettingError if means over cells are to go on across the poles."""
    if settings.poles in SIGNS:
        raise SettingError(
            "Data that are means over cells end at the poles: rows behind them have no cells. Take "
            "the data as values at coordinates, or leave the way across the poles open.",
            setting="poles",
        )


def _refuse_poles(settings: Settings) -> None:
    """Raise SettingError if data with errors or a group is to go on across the poles."""
    if settings.poles in SIGNS:
        raise SettingError(
            f"The data cannot go on across the poles as a {settings.poles}: observations with "
            "errors end there, and a group has distances of its own. Leave one of them out.",
            setting="poles",
        )


def _refuse_with_errors(settings: Settings, axes: Sequence[Axis]) -> None:
    """Raise SettingError for what observations with errors do not allow."""
    if settings.noise == "level" or isinstance(settings.ridge, Mapping):
        raise SettingError(
            "Errors of the observations need one joint ridge, and ridges per level are asked for. "
            "Leave the noise auto and give one ridge or none, or leave the errors out."
        )
    if settings.folds is not None:
        raise SettingError(
            "Folds do not go with errors of the observations: settings are then chosen by hiding "
            "single cells. Leave the folds out."
        )
    longest = max(axes, key=lambda axis: axis.size)
    if longest.size > _GROUP_SIZES[1]:
        raise SettingError(
            f"'{longest.name}' has {longest.size} coordinates. With errors of the observations "
            f"every dimension has {_GROUP_SIZES[1]} at most. Leave the errors out, or fit a part."
        )


def _check_levels(
    settings: Settings, dims: Sequence[str], whole: Mapping[str, Level], joint: bool
) -> None:
    """Raise SettingError if a setting is given beside a level that was given whole."""
    for name in ("kernel", "sigma", "ridge", "period"):
        value = getattr(settings, name)
        if isinstance(value, Mapping):
            twice = [dim for dim in value if dim in whole]
        else:
            none_open = len(whole) == len(dims) and value not in ("auto", None)
            twice = list(whole) if none_open and not (name == "ridge" and joint) else []
        if twice:
            raise SettingError(
                f"Level '{twice[0]}' was given whole, and {name} beside it. Give one of them."
            )
