"""Everything that can go wrong, as one small tree.

DkrlsError                  the root: catch this to catch all of them
├── InputError              the data cannot be used as it is (also a ValueError)
├── SettingError            a setting or query is wrong (also a ValueError)
├── ModelFileError          a file is not a model that this version reads
└── OutputError             an output cannot be written where it was asked for

Messages say what is wrong, the value found, what was expected and what to try.
"""


class DkrlsError(Exception):
    """Root of all errors raised on purpose by this package.

    Parameters
    ----------
    message
        What is wrong, the value found, what was expected and what to try.
    setting
        Python name of the setting that would allow what was refused, such as ``overwrite``. The
        message names no option; the command line adds the option of this setting to it.
    """

    def __init__(self, message: str = "", *, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class InputError(DkrlsError, ValueError):
    """The data cannot be used as it is."""


class SettingError(DkrlsError, ValueError):
    """A level setting, an option or a query is wrong."""


class ModelFileError(DkrlsError):
    """A file is not a model, or not one that this version reads."""


class OutputError(DkrlsError):
    """An output cannot be written: it exists already, its folder does not, or there is no room."""
