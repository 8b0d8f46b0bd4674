"""What a notebook shows of a model: its levels, its errors and a small map.

The page is one fragment that stands alone: no script, no file beside it, and all that comes from a
file escaped. Its colours are those of the page around it, light or dark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from dkrls_cli.model.notebook.map import COLOURS, Thumbnail, draw, thin_values
from dkrls_cli.model.notebook.text import (
    clip,
    kernel_text,
    known_errors,
    range_text,
    units_of,
)

if TYPE_CHECKING:
    from dkrls_cli.model.model import Model

# Levels that a table shows at most; a grid has two to five dimensions as a rule.
_MOST_LEVELS = 12

_STYLE = """<style>
.dkrls{color:var(--jp-content-font-color0,inherit);font-size:13px;line-height:1.4}
.dkrls table{border-collapse:collapse;margin:6px 0;font-size:inherit;color:inherit}
.dkrls th,.dkrls td{padding:2px 10px 2px 0;text-align:left;background:none;border:0;
border-bottom:1px solid rgba(128,128,128,.35)}
.dkrls .dkrls-map{border:1px solid rgba(128,128,128,.5);background:rgba(128,128,128,.15);
max-width:100%}
.dkrls .dkrls-bar span{display:inline-block;width:14px;height:8px}
.dkrls figure{margin:6px 0}
</style>"""


def model_html(model: Model) -> str:
    """Return a model as HTML. A part of the page that cannot be made is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from dkrls_cli import fit
    >>> page = model_html(fit(np.outer(np.arange(9.0), np.arange(8.0))))
    >>> page.count("<tr>"), "<svg" in page
    (3, True)
    """
    parts = "".join(_attempt(part, model) for part in (_head, _levels, _figure))
    return f'<div class="dkrls">{_STYLE}{parts or "a model"}</div>'


def _attempt(part: Callable[[Model], str], model: Model) -> str:
    """Return a part of the page; nothing if it fails, since a display must not stop a notebook."""
    try:
        return part(model)
    except Exception:
        return ""


def _head(model: Model) -> str:
    """Return the variable, its grid and its error."""
    units = units_of(model)
    errors = known_errors(model)
    skill = ", ".join(f"{error:.3g}" for error in errors)
    each = ", by level" if errors[1:] else ""
    facts = [
        f"<b>{_text(model.name)}</b>" + (f" ({escape(units)})" if units else ""),
        _text(str(model.attrs.get("long_name", ""))),
        escape(f"error on data left out{each}: {skill} {units}".rstrip()) if skill else "",
        _gaps(model),
    ]
    return f"<div>D-KRLS model of {'<br>'.join(fact for fact in facts if fact)}</div>"


def _gaps(model: Model) -> str:
    """Return the share of the cells that were missing; empty if none was."""
    missing = model.unobserved
    return "" if missing is None else f"{100 * missing.mean():.3g} % of the cells were missing"


def _levels(model: Model) -> str:
    """Return the levels as a table, level 0 first."""
    head = _row(("level", "dimension", "size", "range", "kernel", "ridge"), "th")
    rows = [
        _row(
            (
                str(depth),
                clip(level.name),
                str(axis.size),
                range_text(axis),
                kernel_text(level.kernel),
                f"{level.ridge:.3g}" if model.joint_ridge is None else "joint",
            )
        )
        for depth, level in enumerate(model.levels[:_MOST_LEVELS])
        for axis in [model.axis_of(level.name)]
    ]
    return f"<table>{head}{''.join(rows)}</table>"


def _row(cells: Iterable[str], tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _figure(model: Model) -> str:
    """Return the map with its caption."""
    thumbnail = thin_values(model)
    return (
        f"<figure>{draw(thumbnail)}<figcaption>{_caption(model, thumbnail)}</figcaption></figure>"
    )


def _caption(model: Model, thumbnail: Thumbnail) -> str:
    """Return what a map shows: its axes, where the others are held, and its scale."""
    import numpy as np

    along = _names([axis.name for axis in thumbnail.axes[::-1]])
    held = ", ".join(f"{clip(axis.name)} {clip(axis.texts[0])}" for axis in thumbnail.fixed)
    text = escape(f"{clip(model.name)} along {along}" + (f" at {held}" if held else ""))
    finite = thumbnail.values[np.isfinite(thumbnail.values)]
    if not finite.size:
        return f"{text}: no value"
    ends = [escape(f"{end:.4g}") for end in (finite.min(), finite.max())]
    if thumbnail.values.shape[0] == 1:
        return f"{text}, {ends[0]} to {ends[1]}"
    scale = "".join(f'<span style="background:{colour}"></span>' for colour in COLOURS)
    return f'{text}<br>{ends[0]} <span class="dkrls-bar">{scale}</span> {ends[1]}'


def _names(names: Sequence[str]) -> str:
    return " and ".join(clip(name) for name in names)


def _text(text: str) -> str:
    return escape(clip(text))
