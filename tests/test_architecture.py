"""Which room may look into which, and which doors lead outside."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dkrls_cli

PACKAGE = Path(dkrls_cli.__file__).parent

# From the ground up: a room imports only rooms above it in this list.
ROOMS = [
    "",
    "errors",
    "kernels",
    "spectral",
    "tensors",
    "chebyshev",
    "splits",
    "metrics",
    "levels",
    "checks",
    "tuning",
    "jointridge",
    "factors",
    "cascade",
    "growing",
    "errorbars",
    "preconditioner",
    "gaps",
    "slicegaps",
    "forecasting",
    "filling",
    "holdout",
    "gapfit",
    "gapbars",
    "calendars",
    "axes",
    "settings",
    "choosing",
    "grid",
    "training",
    "alignment",
    "updating",
    "text",
    "points",
    "rows",
    "tables",
    "modelfile",
    "locking",
    "records",
    "model",
    "fitting",
    "streaming",
    "feeds",
    "sources",
    "datasets",
    "reading",
    "writing",
    "patching",
    "placement",
    "plots",
    "baselines",
    "benchmark",
    "cli",
    "__main__",
]
FOLDERS = {"baselines", "benchmark", "cli"}  # rooms of several files, which see each other
RACING = {"rivals.py", "fillers.py", "field.py", "speed.py"}  # where benchmark meets them
OTHERS = {"scipy", "xarray", "sklearn", "torch", "gpytorch", "linear_operator"}
DOORS = {
    "xarray": {
        "grid",
        "datasets",
        "writing",
        "patching",
        "model",
        "fitting",
        "benchmark",
    },  # model and fitting only name its types
    "cftime": {"calendars"},
    "netCDF4": {"patching"},  # else through xarray
    "zarr": {"patching"},
    "csv": {"text"},
    "zipfile": {"modelfile"},
    "typer": {"cli"},
    "rich": {"cli"},
    "threadpoolctl": {"spectral", "benchmark"},
    "matplotlib": {"plots"},
    "scipy": {"baselines", "benchmark"},
    "sklearn": {"benchmark"},
    "torch": {"benchmark"},
    "gpytorch": {"benchmark"},
    "linear_operator": {"benchmark"},
}


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        yield pytest.param(path, "" if room == "__init__" else room, id=str(path.name))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [alias.name for alias in node.names]
            whole = node.module == "dkrls_cli" and [f"dkrls_cli.{n}" for n in names]
            yield from whole or [node.module]


def rooms_of(path):
    ours = [name.split(".")[1:] for name in imported(path) if name.split(".")[0] == "dkrls_cli"]
    return {parts[0] if parts and parts[0] in ROOMS else "" for parts in ours}


@pytest.mark.parametrize(("path", "room"), list(modules()))
def test_a_room_imports_only_rooms_above_it(path, room):
    assert room in ROOMS, f"'{room}' has no place in the list"
    if room == "":
        return  # the package's front names the rooms it opens lazily
    above = ROOMS[: ROOMS.index(room) + (room in FOLDERS)]
    assert rooms_of(path) <= set(above)


def test_rivals_are_met_where_they_race():
    for path in sorted((PACKAGE / "benchmark").glob("*.py")):
        met = {name.split(".")[0] for name in imported(path)} & OTHERS
        assert not met or path.name in RACING, path.name


def test_help_needs_nothing_heavy():
    code = "import sys; from dkrls_cli.cli import app; print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"'numpy'", "'scipy'", "'xarray'", "'multiprocessing'", "'threadpoolctl'"}
    heavy |= {"'matplotlib'", "'sklearn'", "'torch'"}
    assert not heavy & set(re.findall(r"'\w+'", out.stdout))


@pytest.mark.parametrize(("path", "room"), list(modules()))
def test_a_library_has_one_door(path, room):
    for library, doors in DOORS.items():
        if any(name.split(".")[0] == library for name in imported(path)):
            assert room in doors, f"{library} is not to be met in {room}"


def test_the_front_imports_nothing_heavy():
    loaded = "import sys, dkrls_cli; print(sorted(m.split('.')[0] for m in sys.modules))"
    out = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert not {"'numpy'", "'xarray'", "'typer'"} & set(re.findall(r"'\w+'", out.stdout))


def test_the_front_opens_every_public_name():
    for name in dkrls_cli.__all__:
        assert getattr(dkrls_cli, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dkrls_cli.nothing


def test_fit_and_predict_need_numpy_only(tmp_path):
    code = (
        "import sys, numpy as np; from dkrls_cli import fit, load_model\n"
        "x = np.linspace(0, 1, 9)\n"
        f"fit(np.sin(x), [x]).save(r'{tmp_path / 'm.npz'}')\n"
        f"load_model(r'{tmp_path / 'm.npz'}').predict_points(dim_0=[0.3])\n"
        "print([m for m in ('xarray', 'scipy', 'pandas', 'netCDF4') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_top_level_holds_what_belongs_there():
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        pytest.skip("not a checkout")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split()
    top = {name.split("/")[0] for name in tracked}
    known = {"pyproject.toml", "dkrls_cli", "tests", "sample_data", "README.md", "CHANGELOG.md"}
    assert {name for name in top if not name.startswith(".")} <= known | {"LICENSE"}


def test_the_version_stands_in_one_place():
    pyproject = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert "version" in pyproject["project"]["dynamic"]
    changelog = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
    assert f"[{dkrls_cli.__version__}]" in changelog or "[Unreleased]" in changelog
