"""What may import what, and how large a folder may be."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dkrls_cli

PACKAGE = Path(dkrls_cli.__file__).parent

FILES_IN_A_FOLDER = 12  # modules besides __init__.py
DOORS = {  # library: folders or modules that may import it
    "xarray": {"grid/grid", "files", "model", "bench"},  # model: types only
    "cftime": {"grid/calendars"},
    "netCDF4": {"files/patching"},  # else through xarray
    "zarr": {"files/patching"},
    "csv": {"files/csv"},
    "zipfile": {"files/npz"},
    "typer": {"cli"},
    "rich": {"cli"},
    "threadpoolctl": {"threads", "bench"},
    "matplotlib": {"bench/plots"},
    "scipy": {"cascade/spectrum", "baselines", "bench"},
    "sklearn": {"bench/field", "bench/speed", "bench/rivals"},
    "torch": {"bench/field"},
    "gpytorch": {"bench/field"},
    "linear_operator": {"bench/field"},
}


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).with_suffix("").as_posix()
        yield pytest.param(path, name, id=name)


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [alias.name for alias in node.names]
            whole = node.module == "dkrls_cli" and [f"dkrls_cli.{n}" for n in names]
            yield from whole or [node.module]


def test_folders_see_only_what_is_below_them():
    """The contracts stand in pyproject.toml."""
    from importlinter.cli import lint_imports

    configuration = str(Path(__file__).parents[1] / "pyproject.toml")
    assert lint_imports(config_filename=configuration, no_cache=True) == 0


def test_a_folder_is_small_enough_to_know():
    for folder in [PACKAGE, *filter(Path.is_dir, PACKAGE.rglob("*"))]:
        files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= FILES_IN_A_FOLDER, folder


def test_help_needs_nothing_heavy():
    code = "import sys; from dkrls_cli.cli import app; print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"'numpy'", "'scipy'", "'xarray'", "'multiprocessing'", "'threadpoolctl'"}
    heavy |= {"'matplotlib'", "'sklearn'", "'torch'"}
    assert not heavy & set(re.findall(r"'\w+'", out.stdout))


@pytest.mark.parametrize(("path", "name"), list(modules()))
def test_a_library_has_one_door(path, name):
    found = {module.split(".")[0] for module in imported(path)}
    for library in found & set(DOORS):
        doors = DOORS[library]
        assert any(f"{name}/".startswith(f"{door}/") for door in doors), f"{library} in {name}"


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
