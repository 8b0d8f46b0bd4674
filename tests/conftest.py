"""Settings of all tests."""

import gc
import os
import signal

# One BLAS thread, also in processes that tests start: more of them make small products slow on a
# busy machine. It is set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import given, settings
from hypothesis import strategies as st

# Hypothesis draws the same examples in every run: a test that fails, fails for everybody.
settings.register_profile("dkrls", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("dkrls")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell's script
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # until all tests are collected: next to nothing of that is garbage


@given(st.none())
def _draw_once(_: None) -> None:
    """Make Hypothesis find numpy's random numbers: its oldest version cannot when frozen."""


def pytest_collection_finish() -> None:
    """Leave the half million objects of collected tests out of every later garbage collection."""
    _draw_once()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter) -> None:
    """Print the processor time of the run."""
    used = sum(os.times()[:4])  # user and system time of this process and of its children
    terminalreporter.write_line(f"processor time: {used // 60:.0f} min {used % 60:.0f} s")
