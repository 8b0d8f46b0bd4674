"""A model in words: one line for a prompt, and the pieces that other displays use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.grid.axes import Axis

if TYPE_CHECKING:
    from dkrls_cli.model.model import Model

# Characters of a name or of units that a line shows at most: what a file says may be long.
_LONGEST = 40


def model_line(model: Model) -> str:
    """Return one line on a model: variable, sizes, kernels and errors.

    Error bars that have not been calibrated yet are not: a prompt does not wait.

    Examples
    --------
    >>> import numpy as np
    >>> from dkrls_cli import fit
    >>> x = np.linspace(0, 3, 20)
    >>> fit(np.sin(x), {"x": x}, kernel="cubic")
    <dkrls_cli.Model values: x 20; x cubic; cv error 3.52e-05>
    """
    sizes = " x ".join(f"{clip(axis.name)} {axis.size}" for axis in model.axes)
    kernels = ", ".join(f"{clip(one.name)} {kernel_text(one.kernel)}" for one in model.levels)
    units = units_of(model)
    name = f"{clip(model.name)} [{units}]" if units else clip(model.name)
    errors = known_errors(model)
    skill = f"; cv error {', '.join(f'{error:.3g}' for error in errors)}" if errors else ""
    return f"<dkrls_cli.Model {name}: {sizes}; {kernels}{skill}>"


def known_errors(model: Model) -> list[float]:
    """Return the errors on data left out, from level 0 to the last, or one if all are equal.

    There are none if they have not been computed yet, and none of a dimension of one coordinate.
    """
    if model.known_bars is None and "_calibrated" not in vars(model):
        return []
    errors = dict(zip(model.dims, model.errors, strict=True))
    ordered = [errors[dim] for dim in model.hierarchy if model.axis_of(dim).size > 1]
    return ordered[:1] if len(set(ordered)) == 1 else ordered


def units_of(model: Model) -> str:
    """Return the units of the variable, empty if it has none."""
    return clip(str(model.attrs.get("units", "")))


def kernel_text(kernel: Kernel) -> str:
    """Return the name of a kernel, with its length scale if it has one."""
    return kernel.name if kernel.is_spline else f"{kernel.name}({kernel.sigma:.3g})"


def range_text(axis: Axis) -> str:
    """Return the least and the largest coordinate of an axis."""
    low, high = axis.take([axis.numbers.argmin(), axis.numbers.argmax()]).texts
    return clip(low) if axis.size == 1 else f"{clip(low)} to {clip(high)}"


def clip(text: str) -> str:
    r"""Return a text on one line, shortened if it is long.

    >>> clip("sea surface\ntemperature")
    'sea surface temperature'
    """
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
