"""References: full models whose data stays in the files it came from.

Such a model holds levels, axes and error bars, but no values: its core is one number for all cells.
The data is read part by part when it is asked for, if it is still what the model was made of.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.errors import InputError
from dkrls_cli.files.stored.fingerprint import changes, fingerprint
from dkrls_cli.model.filing.checks import list_of, number, record, text, whole

VERSION = 4
"""Version of model files that refer to data: programs that do not know of them refuse these."""

_LATEST = 2**63
"""Nanoseconds since 1970 at most, before or after: what file systems count with."""

REFERENCE = record(
    {
        "variable": text,
        "files": list_of(
            record(
                {"path": text, "name": text, "size": whole(), "mtime_ns": whole(-_LATEST, _LATEST)},
                {"sha256": text, "sample": text},
            ),
            1,
        ),
        "shape": list_of(whole(1), 1),
        "mean": number(),
    }
)
"""Check of what a header says of the data that a model refers to."""


@dataclass(frozen=True)
class Reference:
    """Data that a model refers to.

    Attributes
    ----------
    variable
        Name of the variable.
    paths
        Its files, one after the other along the last level.
    marks
        Fingerprint of each: see :func:`dkrls_cli.files.stored.fingerprint.fingerprint`.
    """

    variable: str
    paths: tuple[str, ...]
    marks: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, variable: str, paths: tuple[str, ...], *, contents: bool = False) -> Reference:
        """Return a reference to a variable of some files as they are now.

        With `contents` their contents are read as well, so that a copy counts as the same file.
        """
        own = tuple(os.path.abspath(path) for path in paths)
        return cls(variable, own, tuple(fingerprint(own, contents=contents)))

    @property
    def changed(self) -> list[str]:
        """How the files differ from what they were; empty if they do not."""
        missing = [path for path in self.paths if not os.path.exists(path)]
        if missing:
            return [f"there is no file '{path}'" for path in missing]
        return changes(self.marks, self.paths)

    def check(self) -> None:
        """Raise InputError if the data is not what the model was made of."""
        found = self.changed
        if found:
            raise InputError(
                f"The model refers to data of '{self.variable}' that has changed: "
                f"{'; '.join(found)}. Fit the model again, or put the data back where it was."
            )

    def __str__(self) -> str:
        first, more = self.paths[0], len(self.paths) - 1
        return f"{self.variable} in {first}{f' and {more} more' if more else ''}"


def reference_record(
    reference: Reference, shape: tuple[int, ...], mean: float, folder: str | None
) -> dict[str, Any]:
    """Return a reference for the header of a model file in some folder.

    Paths are relative to the folder where that is possible: a model may be moved with its data.
    """
    pairs = zip(reference.paths, reference.marks, strict=True)
    files = [{"path": _relative(path, folder), **mark} for path, mark in pairs]
    return {
        "variable": reference.variable,
        "files": files,
        "shape": list(shape),
        "mean": mean,
    }


def _relative(path: str, folder: str | None) -> str:
    try:
        return path if folder is None else os.path.relpath(path, folder)
    except ValueError:  # another drive
        return path


def reference_from(known: Mapping[str, Any], folder: str) -> Reference:
    """Return the reference that was recorded in a model file in some folder."""
    paths = [os.path.normpath(os.path.join(folder, one["path"])) for one in known["files"]]
    marks = [{key: one[key] for key in one if key != "path"} for one in known["files"]]
    return Reference(known["variable"], tuple(paths), tuple(marks))


def stand_in_core(known: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return the core of a model that refers to its data: one number, which takes no memory."""
    return np.broadcast_to(np.float32(known["mean"]), tuple(known["shape"]))
