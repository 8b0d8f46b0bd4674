"""Texts of options, read: settings of dimensions, names, sizes, and inputs with an engine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.cli.options import KernelOptions


def read_setting(values: Sequence[str] | None, option: str) -> Any:
    """Return one value for all dimensions, or a value for each dimension that was named.

    ``VALUE`` is for all dimensions, ``DIM=VALUE`` for one and ``DIM=VALUE,DIM=VALUE`` for several;
    without any value it is ``auto``.
    """
    if not values:
        return "auto"
    values = [pair for value in values for pair in _split_pairs(value)]
    split = [value.partition("=") for value in values]
    bare = [first for first, equals, _ in split if not equals]
    if bare and len(values) > 1:
        raise SettingError(
            f"{option} {bare[0]} is for all dimensions and cannot stand beside another {option}. "
            f"Name the dimension: {option} DIM={bare[0]}."
        )
    if bare:
        return bare[0]
    named = {dim.strip(): value.strip() for dim, _, value in split}
    if len(named) < len(values):
        dims = [dim.strip() for dim, _, _ in split]
        twice = next(dim for dim in dims if dims.count(dim) > 1)
        raise SettingError(f"{option} was given twice for the same dimension, {twice}.")
    return named


LEVEL_SETTINGS = ("kernel", "sigma", "ridge", "period")
"""Options with a value per level."""


def read_level_settings(options: KernelOptions, noise: str = "auto") -> dict[str, Any]:
    """Return the settings of levels that options give, by the names of a fit.

    A level is given whole by a kernel with parts, such as ``gaussian+constant:1``, as ``dkrls info
    --config`` prints it.
    """
    given = {name: read_setting(getattr(options, name), f"--{name}") for name in LEVEL_SETTINGS}
    order, kernel = split_names(options.levels), given["kernel"]
    texts = kernel if isinstance(kernel, Mapping) else dict.fromkeys(order or ["DIM"], kernel)
    whole = [dim for dim, text in texts.items() if "+" in text]
    if not whole:
        return {"levels": order, **given}
    joint = noise == "joint"
    made = {dim: _whole_level(dim, texts[dim], order or (), given, joint) for dim in whole}
    rest = {
        name: value if joint and name == "ridge" else _without(value, whole)
        for name, value in given.items()
    }
    return {"levels": [made.get(dim, dim) for dim in order or ()], **rest}


def _whole_level(
    dim: str, kernel: str, order: Sequence[str], given: Mapping[str, Any], joint: bool
) -> Any:
    """Return a level that is given whole; under a joint ridge it has none of its own."""
    from dkrls_cli.cascade.kernels import read_kernel
    from dkrls_cli.cascade.level import Level

    needed = [name for name in ("sigma", "ridge", "period") if not (joint and name == "ridge")]
    own = {name: given[name].get(dim) for name in needed if isinstance(given[name], Mapping)}
    lacking = [name for name in needed if own.get(name) in (None, "auto")]
    lacking += [] if dim in order else ["levels"]
    if lacking:
        raise SettingError(
            f"--kernel {dim}={kernel} gives a whole level. Give --{lacking[0]} of it as well, or "
            "the kernel without parts."
        )
    line = own["period"] == "none"
    numbers = {n: 0.0 if n == "period" and line else _number(own[n], n) for n in needed}
    period = None if line else numbers["period"]
    return Level(dim, read_kernel(kernel, numbers["sigma"], period), numbers.get("ridge", 0.0))


def _without(given: Any, dims: Sequence[str]) -> Any:
    """Return a setting for the dimensions that are not named; ``auto`` if none is left."""
    if not isinstance(given, Mapping):
        return given
    return {dim: value for dim, value in given.items() if dim not in dims} or "auto"


def _number(text: Any, option: str) -> float:
    """Return the number of an option, or raise SettingError."""
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"--{option} {text} is not a number, as a whole level needs.") from None


def _split_pairs(text: str) -> list[str]:
    """Return the ``DIM=VALUE`` pairs of a text; a comma separates only if a pair follows it.

    >>> _split_pairs("lat=10,lon=20"), _split_pairs("lat=10,20"), _split_pairs("b, c=3")
    (['lat=10', 'lon=20'], ['lat=10,20'], ['b, c=3'])
    """
    pairs: list[str] = []
    for part in text.split(","):
        if pairs and not ("=" in part and "=" in pairs[-1]):
            pairs[-1] = f"{pairs[-1]},{part}"
        else:
            pairs.append(part)
    return pairs


def read_by(inputs: list[str], engine: str | None) -> list[str]:
    """Return the inputs of a command, to be read by an engine if one is given."""
    if engine is None:
        return inputs
    from dkrls_cli.files.foreign.engines import with_engine

    return with_engine(inputs, engine)


def split_names(text: str | None) -> list[str] | None:
    """Return the names in a text, which commas separate; None without a text."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def byte_count(text: str) -> int:
    """Return the bytes of a size such as 500MB, 4GB, 4GiB or 1e9."""
    match = re.fullmatch(r"\s*([\d.]+(?:e\d+)?)\s*([KMGT]?)(i?)B?\s*", text, re.IGNORECASE)
    try:
        if not match or float(match[1]) <= 0:
            raise ValueError
        power = ["", "K", "M", "G", "T"].index(match[2].upper())
        return int(float(match[1]) * (1024 if match[3] else 1000) ** power)
    except (ValueError, OverflowError):
        raise SettingError(
            f"'{text}' is not a size. Expected a number above 0 and a unit, like 4GB, or none."
        ) from None
