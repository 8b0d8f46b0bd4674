"""The rules of the house: what may import what, how large a folder may be, what is public."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import dkrls_cli

PACKAGE = Path(dkrls_cli.__file__).parent
TESTS = Path(__file__).parent
ROOT = TESTS.parent

FILES_IN_A_FOLDER = 12  # modules besides __init__.py
DOORS = {  # library: folders or modules that may import it
    "xarray": {"grid/grid", "files", "model", "bench", "interfaces"},  # model: types only
    "cftime": {"grid/calendars"},
    "netCDF4": {"files/patching", "files/stored", "files/regions", "files/listing"},
    "zarr": {"files/patching", "files/stored", "files/regions"},
    "csv": {"files/text/csv"},
    "pandas": {"files/text/csv/splitting"},
    "pyarrow": {"files/foreign/parquet"},
    "zipfile": {"files/npz"},
    "dask": {"model/scheduling/cluster", "model/streaming/lazy"},
    "distributed": {"model/scheduling/cluster"},
    "typer": {"cli"},
    "rich": {"cli"},
    "threadpoolctl": {"threads", "bench"},
    "matplotlib": {"plots", "bench/plots"},
    "scipy": {
        "cascade/spectrum",
        "checking/scales",
        "cascade/factors",
        "gaps/coarse",
        "gaps/holes",
        "gaps/lasting/sequential",
        "gaps/pattern",
        "tuning/forecasts",
        "tuning/trials/neighbours",
        "tuning/weights",
        "model/answering/bounds",
        "model/validation/metrics",
    }
    | {"baselines", "bench"},
    "sklearn": {"bench/rivals/regressors", "interfaces/estimator"},
    "torch": {"bench/rivals/grid_process"},
    "gpytorch": {"bench/rivals/grid_process"},
    "linear_operator": {"bench/rivals/grid_process"},
}
PLAIN_ARRAYS = {
    "cascade",
    "gaps",
    "tuning",
    "checking",
    "baselines",
}  # folders without labels, files or output


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, path.relative_to(PACKAGE).with_suffix("").as_posix()


def imports_of(path):
    """Yield the dotted name of every module that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def libraries_of(path):
    return {module.split(".")[0] for module in imports_of(path)}


def modules_loaded_by(code):
    """Return the names of all modules that are loaded once a fresh process has run some code."""
    code += "\nimport sys; print('\\nloaded', *sys.modules)"
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    return set(out.stdout.splitlines()[-1].split())


# ----------------------------------------------------------- folders and what they may import


def test_folders_import_only_from_folders_below_them():
    """The contracts stand in pyproject.toml."""
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_every_folder_is_part_of_a_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [layer for one in contracts["contracts"] for layer in one.get("layers", [])]
    named = {name.strip() for layer in layers for name in layer.split("|")}
    top = {path for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    top = {path.stem for path in top if not path.name.startswith("__")}
    assert {f"dkrls_cli.{name}" for name in top} == named


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "name"), [pytest.param(path, name, id=name) for path, name in modules()]
)
def test_a_library_has_one_door(path, name):
    for library in libraries_of(path) & set(DOORS):
        doors = DOORS[library]
        assert any(f"{name}/".startswith(f"{door}/") for door in doors), f"{library} in {name}"


def test_every_door_exists():
    for library, doors in DOORS.items():
        for door in doors:
            found = (PACKAGE / f"{door}.py").exists() or (PACKAGE / door).is_dir()
            assert found, f"{library} in {door}"


@pytest.mark.parametrize("folder", sorted(PLAIN_ARRAYS))
def test_mathematics_works_on_plain_arrays(folder):
    files = list((PACKAGE / folder).rglob("*.py"))
    assert files
    for path in files:
        assert not {"xarray", "pandas", "netCDF4", "zarr", "typer", "rich"} & libraries_of(path), (
            path
        )


def test_no_command_imports_another():
    """What two of them share stands in the folders beside them."""
    for path in (PACKAGE / "cli" / "commands").glob("*.py"):
        found = [module for module in imports_of(path) if ".cli.commands" in module]
        assert not found, path


def test_a_folder_has_twelve_modules_at_most():
    for folder in [PACKAGE, *filter(Path.is_dir, PACKAGE.rglob("*"))]:
        files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= FILES_IN_A_FOLDER, folder


# ------------------------------------------------------------------------------ tests mirror code


def test_every_module_has_its_test_file():
    missing = {
        name
        for path, name in modules()
        if path.stem not in ("__init__", "__main__")
        and not (TESTS / path.relative_to(PACKAGE)).with_name(f"test_{path.name}").exists()
    }
    assert not missing


def test_every_folder_of_tests_mirrors_a_folder_of_the_package():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {Path("fuzz")}
    assert len(folders) > 5
    for folder in folders:
        assert (PACKAGE / folder / "__init__.py").exists(), folder


@pytest.mark.parametrize("path", sorted((PACKAGE / "cli").rglob("*.py")), ids=lambda p: p.stem)
def test_commands_do_not_reach_into_the_mathematics(path):
    reached = [
        f"line {node.lineno}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "cascade"
    ]
    assert reached == []


# -------------------------------------------------------------- what is imported, and what is not

HEAVY = {"numpy", "scipy", "xarray", "pandas", "netCDF4", "threadpoolctl", "multiprocessing"}
HEAVY |= {"matplotlib", "sklearn", "torch", "zarr", "dask", "distributed"}


def test_the_package_imports_nothing_heavy():
    assert not (HEAVY | {"typer", "rich"}) & modules_loaded_by("import dkrls_cli")


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_help_imports_nothing_heavy():
    assert not HEAVY & modules_loaded_by("from dkrls_cli.cli import app")


def test_fit_and_predict_of_plain_arrays_import_no_labels(tmp_path):
    loaded = modules_loaded_by(
        "import numpy as np; from dkrls_cli import fit, load_model\n"
        "x = np.linspace(0, 1, 9)\n"
        f"fit(np.sin(x), [x]).save(r'{tmp_path / 'm.npz'}')\n"
        f"load_model(r'{tmp_path / 'm.npz'}').predict_points(dim_0=[0.3])\n"
    )
    assert "numpy" in loaded
    assert not {"xarray", "scipy", "pandas", "netCDF4", "dask", "distributed"} & loaded


# ------------------------------------------------------------------------------- the public names


OPTIONAL = {"GridRegressor"}  # names that need a library of an extra


def blocked(*libraries):
    """Return code after which libraries cannot be imported, as if they were not installed."""
    names = ", ".join(f"{library!r}: None" for library in libraries)
    return f"import sys; sys.modules.update({{{names}}})\n"


WITHOUT_COMMANDS = """
import numpy as np, xarray as xr
from dkrls_cli import *
x, t = np.linspace(0, 3, 12), np.arange(10.0)
data = xr.DataArray(np.outer(np.sin(x), np.cos(t / 3)), {'x': x, 't': t}, ('x', 't'), 'v')
gaps = data.where(data != data[3, 4])
model = fit(data, kernel='gaussian', sigma=2.0, ridge=1e-9)
assert not np.isnan(fill(gaps, kernel='gaussian', sigma=2.0, ridge=1e-6)).any()
assert regrid(data, {'x': [0.5]}, kernel='gaussian', sigma=2.0, ridge=1e-9).shape == (1, 10)
model.save('m.npz')
assert load_model('m.npz').predict(x=0.5, t=1.0).equals(model.predict(x=0.5, t=1.0))
assert data.dkrls.fit(kernel='gaussian', sigma=2.0, ridge=1e-9).dims == ('x', 't')
data.to_netcdf('v.nc')
assert open_grid('v.nc').equals(data)
"""


def test_the_library_works_without_what_only_commands_and_extras_need(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE.parent))
    code = blocked("typer", "rich", "sklearn", "matplotlib", "zarr", "pyarrow")
    modules_loaded_by(code + WITHOUT_COMMANDS)


def test_every_public_name_can_be_imported():
    for name in {*dir(dkrls_cli)} - {"__version__"}:
        found = getattr(dkrls_cli, name)
        assert found.__name__ == name
        assert found.__doc__
    assert dkrls_cli.__all__ == sorted(dkrls_cli.__all__)
    assert set(dir(dkrls_cli)) == {*dkrls_cli.__all__, *OPTIONAL, "__version__"}


def test_a_name_that_is_not_public_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dkrls_cli.nothing


# -------------------------------------------------------------------------------- the repository


def test_the_top_level_holds_only_known_files():
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    top = {name.split("/")[0] for name in tracked}
    known = {"pyproject.toml", "dkrls_cli", "tests", "sample_data", "README.md", "CHANGELOG.md"}
    assert {name for name in top if not name.startswith(".")} <= known | {"LICENSE"}


def test_the_version_is_written_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "dkrls_cli/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", dkrls_cli.__version__)


def test_every_dependency_has_a_lower_bound():
    """.ci/run tests with the lowest versions, so each must be named."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    assert [one for one in listed if not re.match(r"[\w-]+>=\d[\d.]*(,<[\d.]+)?$", one)] == []
