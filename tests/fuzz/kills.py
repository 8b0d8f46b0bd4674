"""Kill commands at random moments, and check that every output is whole: the old one or the new.

    python tests/fuzz/kills.py --count 200 --seed 1

Commands run in forked processes, in which all libraries are loaded: a kill then hits the work of
the command and not its imports. Prints what was found as one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import xarray as xr
from fuzz.cases import Case, Place, make_place
from fuzz.run import _become, warm_up

from dkrls_cli import load_model

ENDINGS = ("npz", "nc", "zarr", "csv")


def commands(place: Place) -> dict[str, Case]:
    """Return one command for every command and kind of output that can be torn."""
    out = {ending: ["-o", place.path(f"out.{ending}"), "--overwrite", "-q"] for ending in ENDINGS}
    model, grid, gaps = place.path("whole.npz"), place.path("whole.nc"), place.path("gaps.nc")
    slices = Path(place.path("whole.csv")).read_bytes().replace(b"2000-01", b"2000-02")
    Path(place.path("later.csv")).write_bytes(slices)
    at = ["--at", "x=0:4:0.05"]
    found = {
        "fit": Case(["fit", grid, *out["npz"]]),
        "update": Case(["update", model, place.path("later.csv"), *out["npz"]]),
        "stream": Case(["stream", model, *out["npz"], "--save-every", "2"], slices),
        "info": Case(["info", model, "--weights", *out["nc"][1:]]),
    }
    for ending in ("nc", "zarr", "csv"):
        found[f"predict {ending}"] = Case(["predict", model, *at, *out[ending]])
        found[f"regrid {ending}"] = Case(["regrid", grid, *at, *out[ending], "--sigma", "2"])
        found[f"fill {ending}"] = Case(["fill", gaps, *out[ending], "--sigma", "2"])
    return found


def run(case: Case, folder: Path, delay: float | None) -> int:
    """Run a command, kill it after a delay if there is one, and return how it ended."""
    streams = [folder / name for name in ("stdin", "stdout", "stderr")]
    streams[0].write_bytes(case.stdin)
    child = os.fork()
    if child == 0:
        _become(case, streams)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def output_of(case: Case) -> Path:
    """Return the file or store that a command writes."""
    (path,) = (Path(word) for word in case.words if Path(word).stem == "out")
    return path


def is_whole(path: Path, old: Path) -> bool:
    """Return whether an output can be read to its end, and is old or not."""
    if path.suffix == ".npz":
        return np.isfinite(load_model(path).predict()).all()
    if path.suffix == ".csv":
        text, before = path.read_text(), old.read_text()
        return text == before or (text.endswith("\n") and text.count(",") % text.count("\n") == 0)
    options: Any = {"engine": "zarr", "consolidated": True} if path.suffix == ".zarr" else {}
    with xr.open_dataset(path, **options) as found:
        found.load()
        return bool(found.sizes) and all(array.size for array in found.data_vars.values())


def kill_many(count: int, seed: int, place: Place, chosen: list[str]) -> dict[str, Any]:
    """Kill commands, and return how many there were, and what was torn, lost or left behind.

    Without a choice, all commands are killed.
    """
    found = {name: case for name, case in commands(place).items() if name in (chosen or [name])}
    rng, faults = random.Random(seed), []
    took = dict.fromkeys(found, 60.0)
    for name, case in [*found.items(), *found.items()]:
        started = time.monotonic()
        if run(case, place.folder, None):
            faults.append(f"{name} failed: {(place.folder / 'stderr').read_text()}")
        took[name] = min(took[name], time.monotonic() - started)
    kept = place.folder / "kept"
    kept.mkdir()
    written = {name: output_of(case) for name, case in found.items()}
    for path in set(written.values()):
        copy = shutil.copytree if path.suffix == ".zarr" else shutil.copyfile
        copy(path, kept / path.name)
    names, killed, runs = list(found), 0, 0
    while killed < count and runs < 10 * count:
        name, runs = names[runs % len(names)], runs + 1
        killed += run(found[name], place.folder, rng.random() * took[name]) < 0
        faults += check(written[name], kept / written[name].name, name)
    for path in set(written.values()):
        faults += check(path, kept / path.name, "all kills")
    for case in found.values():
        run(case, place.folder, None)
    left = [p.name for p in place.folder.iterdir() if p.name.endswith((".part", ".old", ".lock"))]
    return {"kills": killed, "runs": runs, "faults": faults, "left": left}


def check(path: Path, old: Path, name: str) -> list[str]:
    """Return what is wrong with an output after a kill."""
    if not path.exists():
        return [f"{path.name} is lost after {name}"]
    try:
        return [] if is_whole(path, old) else [f"{path.name} is torn after {name}"]
    except Exception as error:
        return [f"{path.name} is torn after {name}: {error}"]


def main() -> None:
    """Read the options, run, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="*", default=[])
    given = parser.parse_args()
    memory = Path("/dev/shm")  # where waiting for the disk takes no time
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        place = make_place(Path(folder))
        warm_up(place)
        print(json.dumps(kill_many(given.count, given.seed, place, given.commands)))


if __name__ == "__main__":
    main()
