"""Commands that are suggested as the next step."""

from __future__ import annotations

from pathlib import Path

from sample_files import LAT, LON
from shell import dkrls

from dkrls_cli import load_model


def test_commands_that_are_suggested_can_be_run(globe: Path, tmp_path: Path) -> None:
    from dkrls_cli.cli.fitting.suggestions import fit_words, last_slice

    assert fit_words("data/run-*.nc", "b.nc") == ["fit", "data/run-*.nc", "b.nc", "-o", "run-.npz"]
    assert fit_words("a.zarr/")[-1] == "a.npz"
    dkrls("fit", globe, "-o", tmp_path / "m.npz")
    words = last_slice(load_model(tmp_path / "m.npz"), tmp_path / "m.npz")
    assert words[-2:] == ["time=2020-02-25", "--std"]
    rows = dkrls(*words).stdout.splitlines()
    assert len(rows) == 1 + LAT.size * LON.size
