"""Folders into which files are written: what is in them, and stores that are there already."""

from __future__ import annotations

from pathlib import Path


def names_in(folder: Path) -> set[str]:
    """Return the names of everything in a folder, hidden or not."""
    return {path.name for path in folder.iterdir()}


def make_store(path: Path, mark: str = "") -> Path:
    """Make a folder that looks like a Zarr store."""
    path.mkdir(exist_ok=True)
    (path / ".zgroup").touch()
    if mark:
        (path / "mark").write_text(mark)
    return path
