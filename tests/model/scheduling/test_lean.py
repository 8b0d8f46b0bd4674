"""What is kept out of the process that workers are forked from."""

import subprocess
import sys

import pytest


def test_arrays_of_dask_stay_out_unless_they_are_there_already():
    pytest.importorskip("dask")
    code = (
        "import sys, importlib; name = 'dkrls_cli.model.scheduling.lean'; {first}\n"
        "importlib.import_module(name)\n"
        "print(sys.modules['dask.array'] is None)"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code.format(first=first)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for first in ("pass", "import dask.array")
    ]
    assert told == ["True\n", "False\n"]
