"""Settings of all tests."""

import os

# One BLAS thread, also in processes that tests start: more of them make small products slow on a
# busy machine. It is set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

# Hypothesis draws the same examples in every run: a test that fails, fails for everybody.
settings.register_profile("dkrls", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("dkrls")


def pytest_terminal_summary(terminalreporter) -> None:
    """Print the processor time of the run."""
    used = sum(os.times()[:4])  # user and system time of this process and of its children
    terminalreporter.write_line(f"processor time: {used // 60:.0f} min {used % 60:.0f} s")
