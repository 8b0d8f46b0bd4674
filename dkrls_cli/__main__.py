"""``python -m dkrls_cli`` is ``dkrls``. Nothing is imported before a signal would be understood."""

_ALLOCATED = 100_000
"""Objects between two searches for those that refer to each other only: importing libraries makes
many, all of which stay, and searching them takes a tenth of the time to start."""


def main() -> None:
    """Run the command line of this process; from here on it can be stopped at any moment."""
    import atexit
    import gc
    import signal
    import sys

    # xarray imports all of dask if it can, a third of the time to start; a cluster lets it in again
    sys.modules.setdefault("dask", None)  # type: ignore[arg-type]
    gc.set_threshold(_ALLOCATED, 20, 20)
    atexit.register(gc.freeze)  # the process ends: nothing is worth a search
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends without a word, until the next line

    from dkrls_cli.signals import stop_on_signals

    stop_on_signals()
    from dkrls_cli.cli import main as run

    run()


if __name__ == "__main__":
    main()
