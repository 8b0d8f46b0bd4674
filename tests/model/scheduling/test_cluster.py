"""Tasks on a dask cluster: real processes on this machine."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr
from chunked_grids import globe
from threadpoolctl import threadpool_info

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.model.scheduling import cluster
from dkrls_cli.model.scheduling.cluster import open_cluster

GIVEN = ["--kernel", "matern52", "--sigma", "lat=40,lon=50,time=3", "--ridge", "1e-2"]
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}


def dkrls(*words, **how):
    command = [sys.executable, "-m", "dkrls_cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=ENV, check=False, **how)


@pytest.mark.parametrize("where", ["local:0", "local:x", "local:-1", "local:99999"])
def test_a_local_cluster_has_a_number_of_processes(where):
    with pytest.raises(SettingError, match="no local scheduler"), open_cluster(where):
        pass


def test_without_dask_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"dkrls-cli\[dask\]"), open_cluster("local:1"):
        pass


def test_a_worker_keeps_its_memory_and_takes_one_thread(monkeypatch):
    kept = []
    monkeypatch.setattr("dkrls_cli.memory.reuse_freed", lambda: kept.append(True))

    def threads(item):
        pools = threadpool_info()
        return item, {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}

    for count in (1, 2):
        assert cluster._call(threads, 7) == (7, {1})
        assert len(kept) == count


class FakeFuture:
    def __init__(self, run, failures):
        self.run, self.failures = run, failures

    def result(self):
        if self.failures:
            raise self.failures.pop()
        return self.run()


class FakeClient:
    """A client whose workers are lost now and then."""

    def __init__(self, failures=(), workers=2):
        self.failures, self.workers = list(failures), workers
        self.under_way = self.most = self.sent = 0
        self.cancelled = []

    def wait_for_workers(self, count, timeout):
        if self.workers < count:
            raise TimeoutError

    def submit(self, call, task, *items, **how):
        if not items:  # the task itself, packed
            self.sent += 1
            return call(task)
        return FakeFuture(lambda: call(task, *items), self.failures)

    def cancel(self, futures, **how):
        self.cancelled += futures


def test_results_come_in_order_and_few_tasks_wait():
    client = FakeClient()
    found = list(cluster.Cluster(client, 2).run(abs, range(9)))
    assert found == [(place, place) for place in range(9)]
    assert client.sent == 1
    results = cluster.Cluster(client, 2).run(abs, range(99))
    next(results)
    results.close()
    assert len(client.cancelled) == 3


def test_workers_that_do_not_start_are_one_line():
    with pytest.raises(InputError, match="at 'local' has no worker"):
        next(cluster.Cluster(FakeClient(workers=0), 2).run(abs, range(9)))


def test_a_task_that_is_lost_with_its_worker_is_sent_again():
    lost = pytest.importorskip("distributed").KilledWorker
    failures = [lost("task", None, 0), lost("task", None, 0)]
    client = FakeClient(failures)
    assert [r for _, r in cluster.Cluster(client, 1).run(abs, range(3))] == [0, 1, 2]
    assert client.sent == 3  # once, and again for each loss
    always = FakeClient([lost("task", None, 0)] * 99)
    with pytest.raises(lost):
        list(cluster.Cluster(always, 1).run(abs, range(3)))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A grid of many chunks, and its answers in memory."""
    folder = tmp_path_factory.mktemp("cluster")
    data = globe(times=120)
    data.to_netcdf(folder / "grid.nc", encoding={"f": {"chunksizes": (2, 13, 12)}})
    words = ["regrid", folder / "grid.nc", "--at", "lat=-80:80:2", "--at", "lon=0:350:2", *GIVEN]
    done = dkrls(*words, "-o", folder / "here.nc")
    assert done.returncode == 0, done.stderr
    return words, folder


def on_two_processes(source, name):
    """Answer on a local cluster, into a file of this name."""
    pytest.importorskip("distributed")
    words, folder = source
    done = dkrls(*words, "-o", folder / name, "--scheduler", "local:2", "--json")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["parts"] > 4
    return folder / name


@pytest.fixture(scope="module")
def there(source):
    """The answers of a local cluster, in a store."""
    return on_two_processes(source, "there.zarr")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["there.zarr", "there.nc"])
def test_a_local_cluster_answers_as_this_process(source, there, name):
    _, folder = source
    if name != there.name:
        on_two_processes(source, name)
    engine = "zarr" if name.endswith("zarr") else "netcdf4"
    here, found = xr.load_dataset(folder / "here.nc"), xr.load_dataset(folder / name, engine=engine)
    np.testing.assert_allclose(found.f, here.f, atol=1e-6)  # the mean is that of a part


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_costs_no_answer(source, there):
    words, folder = source
    file = folder / "scheduler.json"
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    scheduler = subprocess.Popen(
        [*run, "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", file]
    worker += ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", folder]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, "env": ENV}
    workers = []
    try:
        while not file.exists():
            assert scheduler.poll() is None
            time.sleep(0.05)
        workers = [subprocess.Popen(worker, **quiet) for _ in range(2)]
        output = folder / "killed.zarr"
        asked = [*words, "-o", output, "--scheduler-file", file]
        command = [sys.executable, "-m", "dkrls_cli", *map(str, asked)]
        client = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENV)
        part = None
        while client.poll() is None and part is None:  # until some regions have been written
            part = next(folder.glob(".killed.zarr*/f/*.*"), None)
            part = part or next(folder.glob(".killed.zarr*/f/c/*"), None)
            time.sleep(0.005)
        workers[0].send_signal(signal.SIGKILL)
        _, told = client.communicate(timeout=120)
        assert client.returncode == 0, told
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
    whole, killed = (xr.load_dataset(path, engine="zarr") for path in (there, output))
    np.testing.assert_array_equal(killed.f, whole.f)


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_one_line(source, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "_TIMEOUT", 1)
    with pytest.raises(InputError, match="no dask scheduler at"), open_cluster("tcp://127.0.0.1:9"):
        pass
