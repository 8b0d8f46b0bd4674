"""Hostile inputs, made by rules from a seed: each is a command, its files and its standard input.

Every maker knows the structure of what it damages: a model file with a digest that holds again, a
table with cells that are no numbers, a NetCDF file with attributes that contradict each other.
"""

from __future__ import annotations

import gzip
import json
import random
import struct
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr

from dkrls_cli import fit
from dkrls_cli.files import npz

X, DAYS = np.linspace(0.0, 4.0, 7), np.datetime64("2000-01-01") + np.arange(6)

NUMBERS: tuple[Any, ...] = (0, -1, 2.5, 1e300, -1e308, 5e-324, 1e-300, float("nan"), float("inf"))
VALUES: tuple[Any, ...] = (
    *NUMBERS, 2**63, 10**400, True, None, "", "x", "\x1b[2J\nError: forged", "<U99999999", [], {},
    [[1]], {"a": 1}, {"dtype": "O", "values": 1}, {"dtype": "<i2", "values": [1e9]}, "é" * 300,
)  # fmt: skip
CELLS = (
    "", "NA", "nan", "inf", "-1e309", "1e300", "1e-320", "x", '"', '"a', "1_0", "0x1", "2000-02-30",
    "99999-01-01", "31/01/2000", "\x00", "\x1b[31m", "#", "1,5", " 7 ", "\uff19", "9" * 400, "é",
)  # fmt: skip
NUMBER_OPTIONS = ("--sigma", "--ridge", "--period", "--bounds", "--tolerance", "--folds", "--noise")
NUMBER_OPTIONS += ("--threads", "--max-memory", "--levels", "--group", "--kernel", "--var")
NUMBER_TEXTS = ("0", "-1", "nan", "inf", "1e308", "1e-308", "x", "", "x=1", "x=inf", "t=1D", "1,2")
NUMBER_TEXTS += ("x=1,x=2", "1e400", "auto", "none", "99999999999999999999", "\x1b[1m")
RANGES = (
    "x=0:4:0.5",
    "x=0:4:6e-8",
    "x=4:0:1",
    "x=0:1:0",
    "x=nan",
    "x=1e308",
    "x=-1e308:1e308:1e300",
)
RANGES += (
    "x=all",
    "x=",
    "x",
    "y=1",
    "x=1,,2",
    "t=2000-01-03",
    "t=2000-01-01:9999-01-01:1H",
    "t=1e9",
)
RANGES += ("t=2000-01-01:2000-01-03:0D", "t=2000-02-30", "t=2000-01-01:2000-01-05", "x=0:4:1:2")
TOML = ("1", "-1", "nan", "inf", "true", "[]", "[[[]]]", "{x = 1}", '"x"', "1979-05-27", "1e400")
TOML += ('"\\u001b[2J"', "9" * 5000, "{x = {y = 1}}", "[" * 5000)


@dataclass(frozen=True)
class Case:
    """A command to run: its words, and what it reads from standard input."""

    words: list[str]
    stdin: bytes = b""


@dataclass(frozen=True)
class Place:
    """A folder with whole files to damage; what is damaged is written there as well."""

    folder: Path

    def path(self, name: str) -> str:
        """Return the path of a file in the folder."""
        return str(self.folder / name)

    @property
    def new_model(self) -> list[str]:
        """Words that let a command write a new model file."""
        return ["-o", self.path("new.npz"), "--overwrite"]


def make_place(folder: Path) -> Place:
    """Write the whole files: a grid, the same with gaps, a table and models of them."""
    rng = np.random.default_rng(7)
    values = np.outer(np.sin(X), np.cos(np.arange(6.0))) + 0.1 * rng.standard_normal((7, 6))
    array = xr.DataArray(values, {"x": X, "t": DAYS}, ("x", "t"), "v", {"units": "K"})
    gaps = array.where(rng.random(values.shape) > 0.2)
    array.to_netcdf(folder / "whole.nc")
    gaps.to_netcdf(folder / "gaps.nc")
    array.to_netcdf(folder / "classic.nc", format="NETCDF3_CLASSIC")
    lines = [f"{x},{t},{float(values[i, j])}" for i, x in enumerate(X) for j, t in enumerate(DAYS)]
    (folder / "whole.csv").write_text("\n".join(["x,t,v", *lines]) + "\n")
    settings: dict[str, Any] = {"kernel": "matern32", "sigma": 2.0, "ridge": 0.1}
    fit(array, **settings).save(folder / "whole.npz")
    fit(gaps, **settings).save(folder / "gaps.npz")
    return Place(folder)


# --- model files ----------------------------------------------------------------------------------


def model_case(rng: random.Random, place: Place) -> Case:
    """Return a command on a model file with a changed header, changed arrays or changed bytes."""
    source = place.path(rng.choice(["whole.npz", "gaps.npz"]))
    target = place.path("hostile.npz")
    (_change_bytes if rng.random() < 0.3 else _change_members)(rng, source, target)
    return Case(
        rng.choice(
            [
                ["info", target],
                ["info", target, "--json"],
                ["predict", target, "--std"],
                ["predict", target, "-o", place.path("out.nc"), "--overwrite"],
                ["predict", target, "--at", rng.choice(RANGES)],
                ["update", target, place.path("whole.csv"), "--replace"],
                ["validate", place.path("whole.nc"), "--model", target],
            ]
        )
    )


def _change_bytes(rng: random.Random, source: str, target: str) -> None:
    data = bytearray(Path(source).read_bytes())
    for _ in range(rng.choice([1, 1, 5, 50])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    cut = rng.randrange(len(data)) if rng.random() < 0.3 else len(data)
    Path(target).write_bytes(data[:cut])


def _change_members(rng: random.Random, source: str, target: str) -> None:
    """Change the header or an array, and write a file that is whole in itself."""
    header, arrays = npz.read(source)
    kept = {key: value for key, value in header.items() if key not in ("digest", "arrays")}
    for _ in range(rng.choice([1, 1, 2, 5])):
        change_value(rng, kept)
    if rng.random() < 0.3:
        name = rng.choice(list(arrays))
        arrays[name] = _changed_array(rng, arrays[name])
    listed = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    text = json.dumps({**kept, "digest": "sha256", "arrays": listed}).encode()
    if rng.random() < 0.05:
        text = text[:-1] + b', "deep": ' + b"[" * 10**5
    members: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    members["digest"] = npz._digest(members)
    save = np.savez_compressed if rng.random() < 0.1 else np.savez
    save(target, **members)


def _changed_array(rng: random.Random, array: Any) -> Any:
    """Return an array of another type, another shape, or with another number in it."""
    change = rng.randrange(4)
    if change == 0:
        return array.astype(rng.choice(["<f4", "<i8", "|u1", ">f8", "|S3"]), casting="unsafe")
    if change == 1:
        return array.reshape(-1)[1:]
    if change == 2 and array.ndim:
        return np.concatenate([array, array])
    flat = array.reshape(-1).copy()
    if flat.size:
        flat[rng.randrange(flat.size)] = rng.choice([0, 1]) if flat.dtype.kind != "f" else 1e300
    return flat.reshape(array.shape)


def change_value(rng: random.Random, value: Any) -> None:
    """Replace, remove or repeat a value somewhere inside objects and lists."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.85:
            value = inner
            continue
        change = rng.random()
        if change < 0.75:
            value[key] = deepcopy(rng.choice(VALUES))
        elif change < 0.9:
            del value[key]
        elif isinstance(value, list):
            value.append(inner)
        else:
            value["more"] = inner
        return


# --- text -----------------------------------------------------------------------------------------


def table_case(rng: random.Random, place: Place) -> Case:
    """Return a command on a table with cells, rows, columns or bytes that do not belong there."""
    rows = [line.split(",") for line in Path(place.path("whole.csv")).read_text().splitlines()]
    for _ in range(rng.choice([1, 1, 3, 20])):
        row = rng.choice(rows)
        change = rng.random()
        if change < 0.6 and row:
            row[rng.randrange(len(row))] = rng.choice(CELLS)
        elif change < 0.75:
            rows.append(list(row))
        elif change < 0.85:
            row.append(rng.choice(CELLS))
        elif len(rows) > 1:
            rows.remove(row)
    delimiter = rng.choice([",", ",", ",", ",", ";", "\t"])
    data = "\n".join(delimiter.join(row) for row in rows).encode() + b"\n"
    name = "hostile.csv"
    ending = rng.random()
    if ending < 0.05:
        data = data.replace(b"\n", b"\r")
    elif ending < 0.1:
        data = data[: len(data) // 2] + bytes([rng.randrange(256)]) + data[len(data) // 2 :]
    elif ending < 0.14:
        data = ",".join(f"c{i}" for i in range(20_000)).encode() + b"\n1,2\n"
    elif ending < 0.18:
        data, name = gzip.compress(data + b"0,0,0\n" * 3 * 10**4, 1), "hostile.csv.gz"
    path = place.folder / name
    path.write_bytes(data)
    stdin = data.replace(b"2000-01", b"2000-02")
    return rng.choice(
        [
            Case(["fit", str(path), *place.new_model]),
            Case(["fit", str(path), "--levels", "x,t", *place.new_model]),
            Case(["fill", str(path), "-o", place.path("out.csv"), "--overwrite"]),
            Case(["predict", place.path("whole.npz"), "--points", str(path)]),
            Case(["update", place.path("whole.npz"), str(path), *place.new_model]),
            Case(["stream", place.path("whole.npz"), *place.new_model], stdin),
        ]
    )


def lines_case(rng: random.Random, place: Place) -> Case:
    """Return a stream of JSON lines some of which are none, or hold what no row holds."""
    lines = []
    for day in range(7, 10):
        for x in X:
            row: Any = {"x": float(x), "t": f"2000-01-{day:02d}", "v": rng.random()}
            if rng.random() < 0.1:
                change_value(rng, row)
            line = json.dumps(row)
            if rng.random() < 0.04:
                line = rng.choice(["[]", line[:-4], '{"x":' * 10**4, "\x00", "null", "NaN", "{"])
            lines.append(line)
    extra = rng.choice([[], ["--std"], ["--json"], ["--window", "3"]])
    words = ["stream", place.path("whole.npz"), *place.new_model, *extra]
    return Case(words, "\n".join(lines).encode())


def toml_case(rng: random.Random, place: Place) -> Case:
    """Return a fit with options from a TOML file."""
    keys = [option.removeprefix("--") for option in NUMBER_OPTIONS] + ["json", "compact", "bogus"]
    lines = [f"{key} = {rng.choice(TOML)}" for key in rng.sample(keys, rng.choice([1, 2, 3]))]
    config = place.folder / "hostile.toml"
    config.write_text("\n".join(lines))
    return Case(["fit", place.path("whole.nc"), *place.new_model, "--config", str(config)])


def spec_case(rng: random.Random, place: Place) -> Case:
    """Return a command with ranges and settings that mean nothing, or too much."""
    if rng.random() < 0.5:
        at = [word for text in rng.sample(RANGES, rng.choice([1, 2])) for word in ("--at", text)]
        return Case(["predict", place.path("whole.npz"), *at])
    chosen = rng.sample(NUMBER_OPTIONS, rng.choice([1, 2, 3]))
    options = [word for option in chosen for word in (option, rng.choice(NUMBER_TEXTS))]
    source = place.path(rng.choice(["whole.nc", "gaps.nc"]))
    return Case(["fit", source, *place.new_model, *options])


# --- NetCDF ---------------------------------------------------------------------------------------


def netcdf_case(rng: random.Random, place: Place) -> Case:
    """Return a command on a NetCDF file with odd contents, or with changed bytes."""
    path = place.folder / "hostile.nc"
    if rng.random() < 0.4:
        _change_netcdf_bytes(rng, place, path)
    else:
        path.unlink(missing_ok=True)
        _write_odd_netcdf(rng, path)
    return Case(
        rng.choice(
            [
                ["fit", str(path), *place.new_model],
                ["fill", str(path), "-o", place.path("out.nc"), "--overwrite"],
                ["predict", place.path("whole.npz"), "--like", str(path)],
                ["update", place.path("whole.npz"), str(path), *place.new_model],
            ]
        )
    )


def _change_netcdf_bytes(rng: random.Random, place: Place, path: Path) -> None:
    name = rng.choice(["classic.nc", "classic.nc", "whole.nc"])
    data = bytearray(Path(place.path(name)).read_bytes())
    if rng.random() < 0.3:
        data = data[: rng.randrange(len(data))]
    elif rng.random() < 0.5:
        at = rng.randrange(0, min(400, len(data) - 4), 4)
        data[at : at + 4] = struct.pack(">I", rng.choice([0, 1, 2**31 - 1, 2**32 - 1, 10**6]))
    else:
        for _ in range(rng.choice([1, 4])):
            data[rng.randrange(min(600, len(data)))] = rng.randrange(256)
    path.write_bytes(data)


def _write_odd_netcdf(rng: random.Random, path: Path) -> None:
    draw = np.random.default_rng(rng.randrange(2**32))
    sizes = {"x": rng.choice([0, 1, 2, 5, 6]), "t": rng.choice([1, 4, 6])}
    units = rng.choice(
        ["days since 2000-01-01", "days since", "months since 2000-01-01", "\x1b[2J"]
    )
    with netCDF4.Dataset(path, "w") as dataset:
        for name, size in sizes.items():
            dataset.createDimension(name, size)
            coordinate = dataset.createVariable(name, "f8", (name,))
            scale = rng.choice([1.0, 1.0, 1.0, 2e307, 1e-320, 0.0])
            coordinate[:] = np.arange(size) * scale
        dataset["t"].units = units
        kind = rng.choice(["f8", "f8", "f4", "i2", "u1", "S1"])
        variable = dataset.createVariable("v", kind, ("x", "t"))
        variable.set_auto_maskandscale(False)
        shape = tuple(sizes.values())
        if kind[0] == "f":
            numbers = draw.standard_normal(shape) * rng.choice([1.0, 1.0, 1e300, 1e-300, 1e30])
            numbers[draw.random(shape) < rng.choice([0.0, 0.3, 1.0])] = np.nan
            variable[:] = numbers
        elif kind[0] in "iu":
            variable[:] = draw.integers(0, 100, shape)
        for attribute in ("scale_factor", "add_offset", "valid_range", "missing_value", "units"):
            if rng.random() < 0.2:
                odd = rng.choice([0.0, np.nan, np.inf, "K", "\x1b[31m\n", [1.0, 0.0], 1e-320])
                variable.setncattr(attribute, odd)


MAKERS: dict[str, Callable[[random.Random, Place], Case]] = {
    "model": model_case,
    "table": table_case,
    "lines": lines_case,
    "netcdf": netcdf_case,
    "spec": spec_case,
    "toml": toml_case,
}
"""Makers of cases, by what they damage."""


def make_case(kind: str, seed: int, place: Place) -> Case:
    """Return a case of a kind; the same seed gives the same case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that a type cannot hold
        return MAKERS[kind](random.Random(f"{kind} {seed}"), place)
