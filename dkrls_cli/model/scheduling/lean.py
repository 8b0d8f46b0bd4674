"""Imported before all else where workers are forked from: xarray leaves the arrays of dask alone.

It would import them with its first array, to know them from others, which takes as long as the rest
of dask. No task here has any.
"""

import sys
from types import ModuleType
from typing import cast

sys.modules.setdefault("dask.array", cast(ModuleType, None))
