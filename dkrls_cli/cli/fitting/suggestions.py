"""Commands that are suggested as the next step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dkrls_cli.model.model import Model


def fit_words(*inputs: str) -> list[str]:
    """Return the words of a command that fits files, to a model with the name of the first."""
    model = Path(inputs[0].replace("*", "").rstrip("/")).with_suffix(".npz")
    return ["fit", *inputs, "-o", model.name]


def last_slice(model: Model, path: Path) -> list[str]:
    """Return the words of a command that answers at the last coordinate of the last level."""
    axis = model.axes[model.grows]
    last = axis.take([axis.numbers.argmax()]).texts[0]
    return ["predict", str(path), "--at", f"{axis.name}={last}", "--std"]
