"""The exceptions that this package raises on purpose, as one small tree.

DkrlsError                  the root: catch this to catch all of them
├── InputError              the data cannot be used as it is (also a ValueError)
│   └── ScatteredGapsError  cells beyond memory are missing at some times only (also a ValueError)
├── SettingError            a setting, an option or a query is wrong (also a ValueError)
├── ConvergenceError        missing cells could not be solved for
├── ModelFileError          a file is not a model that this version can read
└── OutputError             an output cannot be written to the place that was asked for

Every message says what is wrong, the value found, what was expected and what to try.
"""


class DkrlsError(Exception):
    """Root of all exceptions that this package raises on purpose.

    Parameters
    ----------
    message
        What is wrong, the value found, what was expected and what to try.
    setting
        Python name of the setting that would allow what was refused, such as ``overwrite``; several
        names are separated by spaces. The message names no option; the command line adds the
        options of these settings to it.
    """

    def __init__(self, message: str = "", *, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class InputError(DkrlsError, ValueError):
    """The data cannot be used as it is."""


class ScatteredGapsError(InputError):
    """Cells of a grid beyond memory are missing at some times only."""


class SettingError(DkrlsError, ValueError):
    """A setting of a level, an option of a command or a query is wrong."""


class ConvergenceError(DkrlsError):
    """Missing cells could not be solved for as exactly as they should be."""


class ModelFileError(DkrlsError):
    """A file is not a model file, or has a version that this program cannot read."""


class OutputError(DkrlsError):
    """An output cannot be written: it exists already, its folder does not, or the disk is full."""
