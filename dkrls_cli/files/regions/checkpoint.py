"""Checkpoints: what a long run has done, kept in a hidden folder beside its output.

A run that was killed, at any moment, goes on with what is there and gives the same output. The
folder has the key of the run (inputs, options, layout), a log with a line for each region that is
done, and the regions: a Zarr store that is moved into place at the end, or, as an HDF5 file that is
killed while it is written may be torn, one ``.npy`` file for each region of a NetCDF file. The
state of a fit is one file, written anew each time. A lock keeps two runs from the same folder.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli import __version__
from dkrls_cli.arrays import Slices
from dkrls_cli.errors import InputError, OutputError
from dkrls_cli.files import npz
from dkrls_cli.files.output.atomic import atomic_write, explain_failure, move_into_place
from dkrls_cli.files.output.checks import check_writable
from dkrls_cli.files.output.locks import lock_file
from dkrls_cli.files.output.names import hidden_beside
from dkrls_cli.files.output.placing import flush
from dkrls_cli.files.regions.creating import Plan, create_file, finish_file, plan_file
from dkrls_cli.files.regions.slots import Blank, Slot, Tally
from dkrls_cli.files.regions.writer import (
    NetcdfWriter,
    RemoteWriter,
    Writer,
    ZarrRemote,
    opened_writer,
)
from dkrls_cli.files.stored.fingerprint import changes, fingerprint

# Ending of the name of the folder.
_ENDING = ".dkrls-resume"
# What is in the folder.
_KEY, _LOG, _STATE, _STORE, _PARTS = "key.json", "log", "state.npz", "store.zarr", "parts"


@dataclass(frozen=True, eq=False)
class PartsRemote:
    """Keeps regions of variables as files, from any process."""

    folder: str
    slots: Mapping[str, Slot]

    def write(self, name: str, part: Slices, values: NDArray[Any]) -> Tally:
        """Keep a region of a variable, whole or not at all, and return what is known of it."""
        slot, number = self.slots[name], list(self.slots).index(name)
        words = "_".join(f"{own.start}-{own.stop}" for own in slot.region(part, values))
        stored, tally = slot.store(values)
        path = Path(self.folder, f"{number}_{words}.npy")
        with atomic_write(path, overwrite=True) as temporary, open(temporary, "wb") as file:
            np.save(file, stored)
        return tally

    def parts(self) -> Iterator[tuple[str, Slices, Path]]:
        """Yield the variable, the region and the file of all regions that are kept."""
        names = list(self.slots)
        for path in sorted(Path(self.folder).glob("[!.]*.npy")):
            number, *words = path.stem.split("_")
            ends = [word.split("-") for word in words]
            yield names[int(number)], tuple(slice(int(a), int(b)) for a, b in ends), path


class Checkpoint:
    """What a run has done.

    Parameters
    ----------
    output
        The file or store that the run makes.
    folder
        The folder beside it, which exists.

    Attributes
    ----------
    done
        Numbers of the regions that are done.
    """

    def __init__(self, output: str, folder: Path) -> None:
        self.output, self.folder = output, folder
        self.done: set[int] = set()
        self._tallies: dict[str, Tally] = {}
        self._finishing: Mapping[str, Any] | None = None
        self._writer: Writer | None = None
        for line in _whole_lines(folder / _LOG):
            self._take(line)

    def _take(self, line: Mapping[str, Any]) -> None:
        if "done" in line:
            self.done.add(line["done"])
        for name, numbers in line.get("tallies", {}).items():
            self._tallies[name] = self._tallies.get(name, Tally()) + Tally.from_dict(numbers)
        self._finishing = line if "store" in line else None

    def mark(self, number: int, tallies: Mapping[str, Tally] | None = None) -> None:
        """Note that a region is done: all of its variables are written.

        Parameters
        ----------
        number
            Number of the region.
        tallies
            What other processes have returned for it, by variable; None if this one has written it.
        """
        own: Mapping[str, Tally] = tallies or {}
        if self._writer is not None and tallies is None:
            own = self._writer.take_fresh()
        elif self._writer is not None:
            for name, tally in own.items():
                self._writer.add(name, tally)
            self._writer.take_fresh()
        self._log({"done": number, "tallies": {name: one.as_dict() for name, one in own.items()}})
        self.done.add(number)

    def _log(self, line: Mapping[str, Any]) -> None:
        path = self.folder / _LOG
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")
        flush(path)

    def save_state(self, arrays: Mapping[str, NDArray[Any]], done: Collection[int]) -> None:
        """Keep arrays, and the numbers of the regions that have gone into them, at once."""
        npz.write(self.folder / _STATE, {"done": sorted(done)}, arrays)
        self.done = set(done)

    def load_state(self) -> dict[str, NDArray[Any]] | None:
        """Return the arrays that were kept last and set `done`; None if there are none."""
        if not (self.folder / _STATE).exists():
            return None
        header, arrays = npz.read(self.folder / _STATE)
        self.done = set(header["done"])
        return arrays

    @contextmanager
    def writer(
        self,
        blanks: Sequence[Blank],
        command: Sequence[str],
        *,
        overwrite: bool,
        compress: int | None = None,
        regions: Mapping[str, int],
    ) -> Iterator[Writer]:
        """Yield what writes regions that outlast the process, and make the output of them.

        Parameters are those of :func:`dkrls_cli.files.regions.writer.grid_writer`. A region that is
        not in `done` is written as a whole, whether or not it has been written before, and then
        marked. Other processes may write regions of NetCDF files, too.

        Raises
        ------
        OutputError
            As for :func:`dkrls_cli.files.regions.writer.grid_writer`.
        """
        target = self.output.rstrip("/")
        zarr = target.endswith(".zarr")
        made = self._is_made()
        overwrite = overwrite or made
        check_writable(Path(target), overwrite=overwrite, folder=zarr)
        plan = plan_file(blanks, command, zarr=zarr, compress=compress, regions=regions)
        remote = self._open_store(plan, made) if zarr else self._open_parts(plan)
        self._writer = writer = RemoteWriter(plan, remote)
        for name, tally in self._tallies.items():
            writer.add(name, tally)
        writer.take_fresh()
        try:
            with explain_failure(self.output):
                yield writer
        finally:
            self._writer = None
        if isinstance(remote, PartsRemote):
            self._log({"store": None})
            self._assemble(plan, remote, writer.tallies, overwrite)
        elif not made:
            store = self.folder / _STORE
            finish_file(store, plan, writer.tallies)
            self._log({"store": store.stat().st_ino})
            move_into_place(store, target, overwrite=overwrite, folder=True)

    def _is_made(self) -> bool:
        """Return whether the output is there already: the run was killed right after that.

        A store is known by its number in the file system, a file by being newer than the log.
        """
        if self._finishing is None or not os.path.exists(self.output):
            return False
        found, store = os.stat(self.output), self._finishing["store"]
        if store is not None:
            return bool(found.st_ino == store)
        return found.st_mtime_ns >= (self.folder / _LOG).stat().st_mtime_ns

    def _open_store(self, plan: Plan, made: bool) -> ZarrRemote:
        store = self.folder / _STORE
        if not store.exists() and not made:
            self._begin_anew()
            new = store.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            create_file(new, plan, self.output)
            new.rename(store)
        return ZarrRemote(str(store), plan.slots)

    def _open_parts(self, plan: Plan) -> PartsRemote:
        folder = self.folder / _PARTS
        if not folder.exists():
            self._begin_anew()
            folder.mkdir()
        return PartsRemote(str(folder), plan.slots)

    def _begin_anew(self) -> None:
        """Forget regions that are no longer there."""
        (self.folder / _LOG).unlink(missing_ok=True)
        self.done, self._tallies, self._finishing = set(), {}, None

    def _assemble(
        self, plan: Plan, remote: PartsRemote, tallies: Mapping[str, Tally], overwrite: bool
    ) -> None:
        """Make a NetCDF file of regions that were kept."""
        missing = {name: plan.dataset[name].size for name in plan.slots}
        with atomic_write(self.output, overwrite=overwrite) as temporary:
            create_file(temporary, plan, self.output)
            with opened_writer(temporary, plan) as writer:
                assert isinstance(writer, NetcdfWriter)
                for name, part, path in remote.parts():
                    stored = np.load(path)
                    writer.put_stored(name, part, stored)
                    missing[name] -= stored.size
            if any(missing.values()):
                raise OutputError(f"'{self.output}' is not whole: regions are missing, or overlap.")
            finish_file(temporary, plan, tallies)


@contextmanager
def open_checkpoint(
    output: str,
    key: Mapping[str, Any],
    inputs: Sequence[str],
    *,
    resume: bool,
    contents: bool = False,
) -> Iterator[Checkpoint]:
    """Yield the checkpoint of a run; its folder is removed if the block ends without an error.

    Parameters
    ----------
    output
        The file or store that the run makes.
    key
        What has to be the same for a run to be resumed, such as options and the layout of regions;
        as JSON can hold it. The version of the program belongs to it anyway.
    inputs
        The files that are read: see :func:`dkrls_cli.files.stored.fingerprint.fingerprint`.
    resume
        Whether to go on with what an earlier run has left. If not, that is removed.
    contents
        Whether to know inputs by their contents, if they are written again: takes as long as
        reading them.

    Raises
    ------
    InputError
        If the run that is to be resumed was another one: inputs or the key differ.
    OutputError
        If another run has the same output, or the folder cannot be written.
    """
    target = Path(output.rstrip("/")).resolve()
    folder = hidden_beside(target, _ENDING)
    with _locked(folder, output):
        if not resume or not (folder / _KEY).exists():
            _create(folder, key, fingerprint(inputs, contents=contents), output)
        else:
            _refuse_other(folder / _KEY, key, inputs, output)
        yield Checkpoint(output, folder)
        shutil.rmtree(folder)


def has_checkpoint(output: str) -> bool:
    """Return whether a run that was to make an output has left something to go on with."""
    return bool(checkpoint_key(output))


def checkpoint_key(output: str) -> Mapping[str, Any]:
    """Return the key of a run that was to make an output and can be resumed; empty without one."""
    path = hidden_beside(Path(output.rstrip("/")).resolve(), _ENDING) / _KEY
    known: Mapping[str, Any] = json.loads(path.read_text())["key"] if path.exists() else {}
    return known


@contextmanager
def _locked(folder: Path, output: str) -> Iterator[None]:
    """Keep other runs from a folder, or raise OutputError if one has it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_file(folder, 0.0, lambda _: None))
        except OutputError as error:
            if error.setting != "wait":
                raise
            raise OutputError(
                f"'{output}' is being made by another run. Wait until that has ended, or choose "
                "another name for the output."
            ) from None
        yield


def _create(
    folder: Path, key: Mapping[str, Any], inputs: list[dict[str, Any]], output: str
) -> None:
    """Make the folder of a new run; it counts as one when it has its key."""
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(mode=0o700)
        known = {"version": __version__, "key": dict(key), "inputs": inputs}
        with atomic_write(folder / _KEY, overwrite=True) as temporary:
            temporary.write_text(json.dumps(known))
    except OSError as error:
        raise OutputError(
            f"A checkpoint of '{output}' cannot be written ({error.strerror})."
        ) from None


def _refuse_other(path: Path, key: Mapping[str, Any], inputs: Sequence[str], output: str) -> None:
    """Raise InputError if a run is not the one that a checkpoint was made by."""
    known = json.loads(path.read_text())
    differ = changes(known["inputs"], inputs)
    anew = f"Begin '{output}' anew, or choose another name for the output."
    if differ:
        raise InputError(
            f"The input has changed since the run that is to be resumed: {'; '.join(differ)}. "
            f"{anew}"
        )
    old = {"version of dkrls": known["version"], **known["key"]}
    new = {"version of dkrls": __version__, **json.loads(json.dumps(key))}
    others = [
        f"{name} was {old.get(name, 'not there')}, is {new.get(name, 'not there')}"
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]
    if others:
        raise InputError(
            f"The run that is to be resumed was another one: {'; '.join(others)}. {anew}"
        )


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log; the last one is dropped if it was cut off by a kill."""
    if not path.exists():
        return
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if whole != raw:
        os.truncate(path, len(whole))
    yield from map(json.loads, whole.splitlines())
