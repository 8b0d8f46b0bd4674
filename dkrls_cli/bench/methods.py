"""Names of methods: the default fit of this package, and a selection given by the user."""

from __future__ import annotations

from collections.abc import Sequence

from dkrls_cli.baselines import canonical_name
from dkrls_cli.errors import SettingError
from dkrls_cli.spelling import suggest

DKRLS = "dkrls"
"""The name of this package's own method in every race."""


def select_methods(wanted: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Return the wanted methods under their listed names, in the order of `known`.

    Parameters
    ----------
    wanted
        Names of methods in any accepted spelling; None selects all.
    known
        The methods to select from.

    Raises
    ------
    SettingError
        If no method is named, or one that is not known.

    Examples
    --------
    >>> select_methods(["swkrls", "aldkrls"], ["klms", "skrls", "swkrls"])
    ['skrls', 'swkrls']
    """
    if wanted is None:
        return list(known)
    names = [canonical_name(name) for name in wanted]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        name = unknown[0] if unknown else ""
        raise SettingError(
            f"Unknown method '{name}'. Choose from: {', '.join(known)}.{suggest(name, known)}"
        )
    return [name for name in known if name in names]
