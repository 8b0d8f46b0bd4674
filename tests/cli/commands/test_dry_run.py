"""``dkrls fit --dry-run`` refuses what the fit itself refuses, in the same words."""

from pathlib import Path

import numpy as np
import pytest
from sample_files import grid
from shell import dkrls, refusal


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    axes = {"x": (np.arange(6.0), {}), "y": (np.arange(5.0), {})}
    return grid(tmp_path_factory.mktemp("dry") / "a.nc", axes)


@pytest.mark.parametrize(
    "options",
    [
        ["--missing", "nonsense"],
        ["--noise", "pink"],
        ["--folds", "1"],
        ["--kernel", "square"],
        ["--kernel", "x=square"],
        ["--sigma", "wide"],
        ["--sigma", "-3"],
        ["--sigma", "z=3"],
        ["--ridge", "y=-1"],
        ["--ridge", "-1", "--noise", "joint"],
        ["--ridge", "x=1", "--noise", "joint"],
        ["--period", "0"],
        ["--period", "x=2"],
        ["--levels", "x"],
        ["--levels", "x,x"],
        ["--poles", "tensor"],
        ["--poles", "scalar"],
    ],
)
def test_a_dry_run_refuses_what_a_fit_refuses(
    source: Path, tmp_path: Path, options: list[str]
) -> None:
    code = 1 if options == ["--period", "x=2"] else 2
    told = dkrls("fit", source, *options, "--dry-run", code=code)
    assert told.stdout == ""
    real = dkrls("fit", source, *options, "-o", tmp_path / "m.npz", code=code)
    assert told.stderr == real.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_refuses_coordinates_as_a_fit_does(tmp_path: Path) -> None:
    axes = {"x": (np.array([0.0, 1, 2, 1]), {}), "y": (np.arange(5.0), {})}
    path = grid(tmp_path / "a.nc", axes)
    line = refusal("fit", path, "--dry-run")
    assert line == refusal("fit", path, "-o", tmp_path / "m.npz")
    assert "1.0" in line
