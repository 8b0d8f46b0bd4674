"""Kernel models of gridded data: Deep Kernel Recursive Least-Squares (D-KRLS).

>>> from dkrls_cli import fit
>>> import numpy as np
>>> x, d = np.linspace(0.1, 6, 40), np.linspace(0.1, 9, 50)
>>> model = fit(np.outer(np.sin(x), np.cos(d / 2)), {"x": x, "d": d}, kernel="gaussian")
>>> round(float(model.predict(x=1.234, d=5.678)), 3)
-0.901
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dkrls_cli.cascade.kernels import Kernel
    from dkrls_cli.cascade.level import Level
    from dkrls_cli.errors import DkrlsError
    from dkrls_cli.model.fit import fit
    from dkrls_cli.model.model import Model, load_model

__version__ = "0.1.0"
__all__ = ["DkrlsError", "Kernel", "Level", "Model", "fit", "load_model"]

_ROOMS = {
    "DkrlsError": "errors",
    "Kernel": "cascade.kernels",
    "Level": "cascade.level",
    "Model": "model.model",
    "fit": "model.fit",
    "load_model": "model.model",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: ``dkrls --help`` needs none of them."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'dkrls_cli' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"dkrls_cli.{_ROOMS[name]}"), name)
