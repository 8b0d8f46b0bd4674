"""The online kernel methods that D-KRLS is compared with, one file each.

Each is a class with two verbs, ``update(x, y)`` for one sample and ``predict(X)`` for any number
of points; loops, clocks and scores stay outside. All are exact: where one learns in blocks or
puts work off until an answer is asked for, its docstring says so and the answers are the same.

>>> from dkrls_cli.baselines import BASELINES
>>> model = BASELINES["swkrls"](sigma=0.5, window=100)
>>> model.update([0.1, 0.2], 1.5)
>>> model.predict([[0.1, 0.2]]).round(4)
array([1.4851])
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dkrls_cli.baselines.contract import Baseline
from dkrls_cli.baselines.gradient.klmp import KLMP
from dkrls_cli.baselines.gradient.klms import KLMS
from dkrls_cli.baselines.gradient.knlms import KNLMS
from dkrls_cli.baselines.gradient.norma import NORMA
from dkrls_cli.baselines.gradient.qklms import QKLMS
from dkrls_cli.baselines.least_squares.aldkrls import ALDKRLS
from dkrls_cli.baselines.least_squares.fbkrls import FBKRLS
from dkrls_cli.baselines.least_squares.kkf import KKF
from dkrls_cli.baselines.least_squares.krls import KRLS
from dkrls_cli.baselines.least_squares.krlst import KRLST
from dkrls_cli.baselines.least_squares.nonstill import NonstillKRLS
from dkrls_cli.baselines.least_squares.recursive import RecursiveDKRLS
from dkrls_cli.baselines.least_squares.swkrls import SWKRLS

__all__ = ["BASELINES", "Baseline"]

BASELINES: Mapping[str, type[Baseline]] = MappingProxyType(
    {
        "klms": KLMS,
        "klmp": KLMP,
        "knlms": KNLMS,
        "qklms": QKLMS,
        "norma": NORMA,
        "krls": KRLS,
        "aldkrls": ALDKRLS,
        "swkrls": SWKRLS,
        "fbkrls": FBKRLS,
        "krlst": KRLST,
        "nonstill": NonstillKRLS,
        "kkf": KKF,
        "recursive": RecursiveDKRLS,
    }
)
"""Every baseline by name; each tells its ``paper_name`` and a ``summary``."""
