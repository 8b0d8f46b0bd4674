"""Kernel models of gridded data: Deep Kernel Recursive Least-Squares (D-KRLS).

The method is that of H. Mohamadipanah, M. Heydari and G. Chowdhary, "Deep Kernel Recursive
Least-Squares Algorithm", arXiv:1704.04522, 2017. "The paper" in this package is that one.

>>> from dkrls_cli import fit
>>> import numpy as np
>>> x, d = np.linspace(0.1, 6, 40), np.linspace(0.1, 9, 50)
>>> model = fit(np.outer(np.sin(x), np.cos(d / 2)), {"x": x, "d": d}, kernel="gaussian")
>>> round(float(model.predict(x=1.234, d=5.678)), 3)
-0.901
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is slow to import, and nobody but a type checker needs it here
if TYPE_CHECKING:
    from typing import Any

    from dkrls_cli.cascade.kernels import Kernel
    from dkrls_cli.cascade.level import Level
    from dkrls_cli.errors import DkrlsError
    from dkrls_cli.files.reading import open_grid
    from dkrls_cli.interfaces.estimator import GridRegressor as GridRegressor
    from dkrls_cli.model.fill import fill
    from dkrls_cli.model.fit import fit
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.quality.check import check
    from dkrls_cli.model.regrid import regrid
    from dkrls_cli.model.saving import load_model, load_models, save_models
    from dkrls_cli.model.stream import Stream
    from dkrls_cli.model.validation.validate import validate

__version__ = "0.1.0"
__all__ = [
    "DkrlsError",
    "Kernel",
    "Level",
    "Model",
    "Stream",
    "check",
    "fill",
    "fit",
    "load_model",
    "load_models",
    "open_grid",
    "regrid",
    "save_models",
    "validate",
]

# Public name: the module that defines it. A name is imported when it is first used, so that
# `import dkrls_cli` and `dkrls --help` load none of the libraries behind them. GridRegressor needs
# scikit-learn, which is not required: `from dkrls_cli import *` goes without it.
_MODULES = {
    "DkrlsError": "errors",
    "GridRegressor": "interfaces.estimator",
    "Kernel": "cascade.kernels",
    "Level": "cascade.level",
    "Model": "model.model",
    "Stream": "model.stream",
    "check": "model.quality.check",
    "fill": "model.fill",
    "fit": "model.fit",
    "load_model": "model.saving",
    "load_models": "model.saving",
    "open_grid": "files.reading",
    "regrid": "model.regrid",
    "save_models": "model.saving",
    "validate": "model.validation.validate",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'dkrls_cli' has no attribute '{name}'")
    from importlib import import_module

    _register_accessor()
    return getattr(import_module(f"dkrls_cli.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet."""
    return sorted([*_MODULES, "__version__"])


def _register_accessor() -> None:
    """Give DataArrays their methods ``data.dkrls`` if xarray is there; it is not imported here."""
    if hasattr(sys.modules.get("xarray"), "register_dataarray_accessor"):
        from importlib import import_module

        import_module("dkrls_cli.interfaces.accessor")


_register_accessor()
