"""The online kernel methods that D-KRLS is compared with, one file each.

Each method is a class with two verbs: ``update(x, y)`` learns one sample, and ``predict(X)``
answers at any number of points. Loops, timing and scoring are left to the caller. All methods are
exact: where one learns in blocks, or delays work until an answer is needed, its docstring says so
and the answers equal those of the sample-by-sample algorithm.

>>> from dkrls_cli.baselines import BASELINES
>>> model = BASELINES["swkrls"](sigma=0.5, window=100)
>>> model.update([0.1, 0.2], 1.5)
>>> model.predict([[0.1, 0.2]]).round(4)
array([1.4851])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from dkrls_cli.baselines.contract import Baseline
from dkrls_cli.baselines.gradient.klmp import KLMP
from dkrls_cli.baselines.gradient.klms import KLMS
from dkrls_cli.baselines.gradient.knlms import KNLMS
from dkrls_cli.baselines.gradient.norma import NORMA
from dkrls_cli.baselines.gradient.qklms import QKLMS
from dkrls_cli.baselines.least_squares.fbkrls import FBKRLS
from dkrls_cli.baselines.least_squares.kkf import KKF
from dkrls_cli.baselines.least_squares.krls import KRLS
from dkrls_cli.baselines.least_squares.krlst import KRLST
from dkrls_cli.baselines.least_squares.nonstill import NonstillKRLS
from dkrls_cli.baselines.least_squares.recursive import RecursiveDKRLS
from dkrls_cli.baselines.least_squares.skrls import SKRLS
from dkrls_cli.baselines.least_squares.swkrls import SWKRLS

__all__ = ["BASELINES", "OTHER_SPELLINGS", "Baseline", "canonical_name"]

OTHER_SPELLINGS: Mapping[str, str] = MappingProxyType({"aldkrls": "skrls"})
"""Accepted spellings of method names: ALD-KRLS is what KAFBOX calls the paper's S-KRLS."""


def canonical_name(name: str) -> str:
    """Return the name under which a method is listed.

    >>> canonical_name("aldkrls"), canonical_name("krls")
    ('skrls', 'krls')
    """
    return OTHER_SPELLINGS.get(name, name)


class _Registry(Mapping[str, type[Baseline]]):
    """A read-only mapping of method names to classes; lookups accept other spellings."""

    def __init__(self, classes: Mapping[str, type[Baseline]]) -> None:
        self._classes = dict(classes)

    def __getitem__(self, name: str) -> type[Baseline]:
        return self._classes[canonical_name(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


BASELINES: Mapping[str, type[Baseline]] = _Registry(
    {
        "klms": KLMS,
        "klmp": KLMP,
        "knlms": KNLMS,
        "qklms": QKLMS,
        "norma": NORMA,
        "krls": KRLS,
        "skrls": SKRLS,
        "swkrls": SWKRLS,
        "fbkrls": FBKRLS,
        "krlst": KRLST,
        "nonstill": NonstillKRLS,
        "kkf": KKF,
        "recursive": RecursiveDKRLS,
    }
)
"""Every baseline by name. Each class has a ``paper_name`` and a one-line ``summary``."""
