"""Where a command writes to, and in which format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dkrls_cli.cli.report import Report, refuse_closed_stdout
from dkrls_cli.errors import SettingError
from dkrls_cli.plots.style import SUFFIXES as PICTURES

_ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".zarr": "zarr"}
_ENDINGS |= dict.fromkeys((".nc", ".nc4", ".cdf"), "nc")
_ENDINGS |= dict.fromkeys((".parquet", ".pq"), "parquet")
_MODEL_ENDING = ".npz"


@dataclass(frozen=True)
class Target:
    """A path to write to (None: stdout) and a format: csv, jsonl, json, parquet, nc or zarr.

    A grid is compressed at a level from 0 to 9; None leaves the level to the writer.
    """

    path: str | None
    form: str
    overwrite: bool
    compress: int | None = None

    def __post_init__(self) -> None:
        if self.compress is not None and self.form not in ("nc", "zarr"):
            raise SettingError(
                f"--compress {self.compress} is for NetCDF and Zarr, and the output is "
                f"{self.form}. Leave it out, or compress the text: | gzip."
            )

    def refuse_unwritable(self, report: Report, *inputs: str | Path | None) -> None:
        """Raise OutputError if the output cannot be written, before any work is done.

        None of the inputs may be the output. What a killed command has left of it is removed, and
        reported.
        """
        if self.path is None:
            refuse_closed_stdout()
        else:
            folder = self.form == "zarr"
            if self.form == "parquet":
                from dkrls_cli.files.foreign.parquet import require_pyarrow

                require_pyarrow(self.path, "written")
            check_file(Path(self.path), self.overwrite, report, *inputs, folder=folder)


def chosen_target(
    output: str | None,
    form: str | None,
    json: bool,
    overwrite: bool,
    compress: int | None = None,
) -> Target:
    """Return where to write, in the format asked for or else the one the name ends in."""
    if output in (None, "-"):
        if json and form is not None:
            raise SettingError(
                f"--json and --format {form} both write to stdout. Give one of them, or -o OUT."
            )
        return Target(None, "json" if json else form or "csv", overwrite, compress)
    path = str(output).rstrip("/")
    by_name = _ENDINGS.get(Path(path).suffix.lower())
    if form is None and Path(path).suffix.lower() in PICTURES:
        raise SettingError(
            f"'{output}' is the name of a picture, and this command writes values. Draw them by "
            f"dkrls plot ... -o {output}."
        )
    if form is None and by_name is None:
        raise SettingError(
            f"The format of '{output}' is not known. End the name in one of "
            f"{', '.join(_ENDINGS)}, or give --format."
        )
    if form is not None and by_name not in (None, form):
        raise SettingError(f"--format {form} and '{output}' do not go together. Give one of them.")
    return Target(path, form or str(by_name), overwrite, compress)


def check_file(
    path: Path,
    overwrite: bool,
    report: Report,
    *inputs: str | Path | None,
    folder: bool = False,
) -> None:
    """Raise OutputError if a file or folder cannot be written, or is one of the inputs.

    Inputs may be patterns. What a killed command has left of the file is removed, and reported.
    """
    from glob import glob

    from dkrls_cli.files.output.checks import check_writable
    from dkrls_cli.files.output.leftovers import clear_stale

    given = [str(one).rstrip("/") for one in inputs if one is not None]
    paths = [path for one in given for path in (one, *glob(one))]
    check_writable(path, overwrite=overwrite, folder=folder, inputs=paths)
    clear_stale(path, report.note)


def refuse_other_ending(path: Path) -> None:
    """Raise SettingError if the name of a new model file does not end in .npz."""
    if path.suffix.lower() != _MODEL_ENDING and not path.is_dir():  # a folder has its own message
        raise SettingError(
            f"'{path}' does not end in {_MODEL_ENDING}, as a model file does. "
            f"Write -o {path.with_name(path.stem + _MODEL_ENDING)}."
        )


def grid_target(
    output: str, overwrite: bool, compress: int | None, report: Report, *inputs: str | Path
) -> Target:
    """Return a file to write a whole grid to; raise an error if it cannot be written."""
    target = chosen_target(output, None, False, overwrite)
    if target.path is None or target.form not in ("nc", "zarr"):
        raise SettingError(f"'{output}' cannot be written as a grid. End it in .nc or .zarr.")
    target.refuse_unwritable(report, *inputs)
    return replace(target, compress=compress)


@dataclass(frozen=True)
class ChangedTarget:
    """Where a changed model goes, and whether it may replace what is there."""

    path: Path
    overwrite: bool

    def refuse_unwritable(self) -> None:
        """Raise OutputError if another command has written a new file while this one waited."""
        from dkrls_cli.files.output.checks import check_writable

        check_writable(self.path, overwrite=self.overwrite)


def changed_target(
    model: Path, output: Path | None, overwrite: bool, report: Report, *inputs: str
) -> ChangedTarget:
    """Return where a changed model goes; raise OutputError if another file cannot be written."""
    from dkrls_cli.files.output.checks import is_same

    if output is None or output == model or is_same(output, model):
        check_file(model, True, report, *inputs)
        return ChangedTarget(model, True)
    refuse_other_ending(output)
    check_file(output, overwrite, report, *inputs)
    return ChangedTarget(output, overwrite)
