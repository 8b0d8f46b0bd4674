"""The process that workers of this machine are forked from."""

import os
import subprocess
import sys
from textwrap import indent

import pytest

from dkrls_cli.model.scheduling import forking

ASK = """
import os
from dkrls_cli.model.scheduling.cluster import open_cluster
asked = [
    "__import__('sys').modules['dask.array']",
    "'dkrls_cli.model.streaming.stages' in __import__('sys').modules",
    "'distributed.worker' in __import__('sys').modules",
    "__import__('os').getppid()",
]
with open_cluster("local:1") as workers:
    *found, parent = [value for _, value in workers.run(eval, asked)]
print(*found, parent == os.getpid())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_workers_have_imported_what_they_need_but_no_arrays_of_dask():
    pytest.importorskip("distributed")
    # in a process of its own: here workers may have been forked before, by other means
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "True", "True", "False"]


def test_a_process_is_started_with_one_thread_of_each_kind(monkeypatch):
    names, seen = [f"{of}_NUM_THREADS" for of in ("OMP", "OPENBLAS", "MKL")], []
    names += ["ZARR_ASYNC__CONCURRENCY", "ZARR_THREADING__MAX_WORKERS"]
    monkeypatch.setattr(forking.sys, "platform", "linux")
    monkeypatch.setattr(
        "multiprocessing.forkserver.ensure_running", lambda: seen.append([*map(os.getenv, names)])
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    assert forking.fork_ahead()
    assert seen == [["1"] * 5]
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in os.environ


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_files_of_the_working_folder_are_no_libraries_of_workers(tmp_path):
    pytest.importorskip("distributed")
    work, ask = tmp_path / "work", tmp_path / "ask.py"
    work.mkdir()
    (work / "netCDF4.py").write_text("open('imported', 'w')")
    ask.write_text("if __name__ == '__main__':" + indent(ASK, "    "))
    subprocess.run([sys.executable, ask], cwd=work, capture_output=True, check=True)
    assert [path.name for path in work.iterdir()] == ["netCDF4.py"]


def test_elsewhere_workers_are_processes_of_their_own(monkeypatch):
    monkeypatch.setattr(forking.sys, "platform", "darwin")
    monkeypatch.setattr("multiprocessing.forkserver.ensure_running", pytest.fail)
    assert not forking.fork_ahead()
