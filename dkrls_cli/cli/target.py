"""Where a command writes to, and in which form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dkrls_cli.errors import SettingError

_ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".zarr": "zarr"}
_ENDINGS |= dict.fromkeys((".nc", ".nc4", ".cdf"), "nc")


@dataclass(frozen=True)
class Target:
    """Where answers go (None: stdout), and in which form: csv, jsonl, json, nc or zarr."""

    path: str | None
    form: str
    overwrite: bool

    def refuse_unwritable(self) -> None:
        """Refuse an output that cannot be written, before any work."""
        from dkrls_cli.files.output import check_writable

        if self.path is not None:
            check_writable(Path(self.path), overwrite=self.overwrite)


def chosen_target(output: str | None, form: str | None, json: bool, overwrite: bool) -> Target:
    """Where answers go, in the form that was asked for, else in what the name ends in."""
    if form not in (None, "csv", "jsonl", "nc"):
        raise SettingError(f"Unknown format '{form}'. Choose csv, jsonl or nc.")
    if output in (None, "-"):
        if json and form is not None:
            raise SettingError(f"--json and --format {form} both print. Give one, or -o OUT.")
        return Target(None, "json" if json else form or "csv", overwrite)
    path = str(output).rstrip("/")
    by_name = _ENDINGS.get(Path(path).suffix.lower())
    if form is None and by_name is None:
        raise SettingError(
            f"'{output}' does not say what to write. End it in {', '.join(_ENDINGS)}, "
            "or give --format."
        )
    if form is not None and by_name not in (None, form):
        raise SettingError(f"--format {form} and '{output}' do not go together.")
    return Target(path, form or str(by_name), overwrite)


def grid_target(output: str, overwrite: bool) -> Target:
    """A file for whole grids, known to be free."""
    target = chosen_target(output, None, False, overwrite)
    if target.path is None or target.form not in ("nc", "zarr"):
        raise SettingError(f"'{output}' cannot be written as a grid. End it in .nc or .zarr.")
    target.refuse_unwritable()
    return target
