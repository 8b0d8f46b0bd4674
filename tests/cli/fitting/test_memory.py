"""What fits need of memory, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import chunked_grids
import numpy as np
import pytest
import xarray as xr
from shell import dkrls, peak_of, refusal


def memory_commands(source: Path, folder: Path) -> list[list[object]]:
    """Return all commands that have a limit on their memory."""
    return [
        ["fit", source, "-o", folder / "m.npz"],
        ["fit", source, "--dry-run"],
        ["fill", source, "-o", folder / "f.nc"],
        ["regrid", source, "-o", folder / "r.nc", "--at", "lat=0,1.5"],
        ["validate", source, "--holdout", "0.2"],
    ]


def test_memory_is_refused_before_the_data_is_read(
    globe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dkrls_cli.files.source.Source.grid", None)
    for words in memory_commands(globe, tmp_path):
        line = refusal(*words, "--max-memory", "2kB")
        assert re.search(
            r"needs about [\d.e+]+ [MG]B of memory, more than the 2 kB of --max-memory\. "
            r"Try a part of the grid, or a larger --max-memory\.$"
            r"|takes about \d+ MB, and \d+ MB are allowed\. Allow more memory"
            r"|needs about \d+ MB beside the process, and .* \d+ MB are left for it\. Allow more",
            line,
        )
        assert "'lots' is not a size" in refusal(*words, "--max-memory", "lots", code=2)
    assert list(tmp_path.iterdir()) == []


def test_without_a_limit_given_the_free_memory_is_one(
    globe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dkrls_cli.memory.available_bytes", lambda: 1e6)
    for words in memory_commands(globe, tmp_path):
        line = refusal(*words)
        assert "more than the 800 kB of --max-memory" in line or "Allow more memory" in line
    for words in memory_commands(globe, tmp_path):
        dkrls(*words, "--max-memory", "none")


def test_a_joint_ridge_that_needs_too_much_gets_the_advice_to_do_without(globe: Path) -> None:
    line = refusal("fit", globe, "--dry-run", "--noise", "joint", "--max-memory", "2kB", code=2)
    assert "One joint ridge needs the whole grid in memory. Leave it out" in line


@pytest.fixture
def half_missing(tmp_path: Path) -> Path:
    """A table with missing cells, and a dimension long enough for their search to take 66 MB."""
    rows = (f"{x},{y},{x * y if (x * y) % 2 else 'NA'}" for x in range(12) for y in range(400))
    (path := tmp_path / "gaps.csv").write_text("\n".join(["x,y,v", *rows]) + "\n")
    return path


@pytest.mark.parametrize("command", ["fit", "regrid", "validate"])
def test_missing_cells_are_counted_once_they_are_known(
    half_missing: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit between the needs of a complete grid and those of one with missing cells."""
    monkeypatch.setattr("dkrls_cli.memory.held_bytes", lambda: 1e8)
    monkeypatch.setattr("dkrls_cli.memory.peak_bytes", lambda: 1e8)
    plan = json.loads(dkrls("fit", half_missing, "--dry-run", "--json").stdout)
    assert plan["memory_bytes"] < 140e6 < plan["memory_bytes_with_gaps"]
    words = {
        "fit": ["-o", tmp_path / "m.npz"],
        "regrid": ["-o", tmp_path / "r.nc", "--at", "x=1.5"],
        "validate": ["--holdout", "x=0.1"],
    }[command]
    line = refusal(command, half_missing, *words, "--max-memory", "140MB")
    assert "through its missing cells needs about" in line
    other = refusal(command, half_missing, *words, "--max-memory", "140MB", "--missing", "error")
    assert "memory" not in other


@pytest.mark.slow
def test_a_fit_of_single_precision_holds_at_most_2_2_times_the_data(tmp_path: Path) -> None:
    """Reading with a fill value, the fit and the file; and answers from that no more."""
    shape = (120, 400, 500)
    axes = {f"d{place}": np.arange(float(size)) for place, size in enumerate(shape)}
    values = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    grid = xr.DataArray(values, axes, list(axes), "v")
    grid.to_netcdf(source := tmp_path / "v.nc", encoding={"v": {"_FillValue": -9e9}})
    grid[:9, :9, :9].to_netcdf(few := tmp_path / "few.nc")

    # freed memory goes back at once: how much of it a heap keeps differs from machine to machine
    at_once = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    given = ["--sigma", "2", "--kernel", "matern32", "--ridge", "0.1"]
    model = tmp_path / "m.npz"
    _, process = peak_of(["fit", few, *given, "-o", tmp_path / "few.npz"], **at_once)
    _, fitted = peak_of(["fit", source, *given, "-o", model], **at_once)
    assert fitted - process < 2.2 * values.nbytes
    asked = [word for dim in axes for word in ("--at", f"{dim}=3.5")]
    _, answered = peak_of(["predict", model, *asked], **at_once)
    assert answered - process < 2.2 * values.nbytes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "dtype", "missing", "words"),
    [
        ((250, 200, 200), "float32", 0.0, ["fit", "--ridge", "0.1"]),
        ((200, 200, 60), "float32", 0.0, ["fit", "--noise", "joint", "--ridge", "0.1"]),
        ((100, 100, 60), "float32", 0.3, ["fill", "--ridge", "0.1"]),
        ((120, 120, 120), "float64", 0.0, ["regrid", "--std", "--at", "d0=0:119:0.5"]),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else None,
)
def test_the_estimate_is_near_the_peak_of_the_process(
    shape: tuple[int, ...], dtype: str, missing: float, words: list[str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    values = 0.1 * rng.standard_normal(shape) + np.sin(np.arange(shape[-1]) / 9)
    values[rng.random(shape) < missing] = np.nan
    axes = {f"d{place}": np.arange(float(size)) for place, size in enumerate(shape)}
    grid = xr.DataArray(values.astype(dtype), axes, list(axes), "v")
    grid.to_netcdf(source := tmp_path / "v.nc")
    given = ["--sigma", "4", "--kernel", "gaussian"]
    command, *others = words
    target = tmp_path / ("m.npz" if command == "fit" else "out.nc")
    run = [command, source, "-o", target, *given, *others]
    done, peak = peak_of([*run, "--dry-run", "--json"], [*run, "-q"])
    estimate = json.loads(done.stdout)["memory_bytes"]
    assert peak / 1.5 < estimate < 1.5 * peak


def test_land_that_is_too_large_for_memory_goes_part_by_part(tmp_path, monkeypatch):
    from dkrls_cli.cli.fitting.memory import estimates, exceeds, has_large_land
    from dkrls_cli.files.reading import open_source
    from dkrls_cli.memory import held_bytes
    from dkrls_cli.model.settings import DEFAULTS, Settings

    monkeypatch.setattr("dkrls_cli.memory.peak_bytes", held_bytes)  # whatever other tests took
    whole, data = chunked_grids.globe(), chunked_grids.globe()
    data[:, 4:8, 3:7] = np.nan
    form = {"f": {"chunksizes": (1, 13, 12)}}
    whole.to_netcdf(tmp_path / "whole.nc", encoding=form)
    data.to_netcdf(tmp_path / "land.nc", encoding=form)
    full, land = (open_source([str(tmp_path / f"{one}.nc")]) for one in ("whole", "land"))
    (needs,) = estimates([land], DEFAULTS, gaps=True)
    limit = 0.999 * needs.memory
    assert not exceeds([land], DEFAULTS, limit)
    assert has_large_land([land], DEFAULTS, limit)
    assert has_large_land([full, land], DEFAULTS, limit)
    assert not has_large_land([full], DEFAULTS, limit)
    assert not has_large_land([land], Settings(missing="error"), limit)
    monkeypatch.setattr(
        "dkrls_cli.model.lasting.land.find_land", lambda source: pytest.fail("looked at")
    )
    assert not has_large_land([land], DEFAULTS, 2 * needs.memory)
