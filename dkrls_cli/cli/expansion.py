"""Groups of options: a command takes a dataclass, and Typer the fields of it as options.

On a help page, an option stands in the panel that its `rich_help_panel` names, or its parameter in
`NAMED_PANELS`, or the class variable `panel` of its dataclass; otherwise under "What".
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_args, get_type_hints

import typer

from dkrls_cli.cli.config import Config
from dkrls_cli.cli.options import Overwrite
from dkrls_cli.cli.saveconfig import SaveConfig, saved_options
from dkrls_cli.cli.terminal.pages import OUTPUT, RESOURCES, WHAT

NAMED_PANELS = {
    "compress": OUTPUT,
    "csv": OUTPUT,
    "dry_run": OUTPUT,
    "form": OUTPUT,
    "mask_out": OUTPUT,
    "output": OUTPUT,
    "overwrite": OUTPUT,
    "plot": OUTPUT,
    "resume": RESOURCES,
    "scheduler": RESOURCES,
    "threads": RESOURCES,
    "time_limit": RESOURCES,
    "wait": RESOURCES,
    "weights": OUTPUT,
}
"""Panels of parameters by name: options that mean the same in every command."""

_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with its dataclass parameters expanded into their fields, for Typer.

    Defaults stand in the dataclasses. The command itself receives one instance of each. It also
    gets --config and --save-config, unless it has nothing to set.
    """
    from dkrls_cli.cli import UNCONFIGURED

    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _field_parameters(groups[name])
        else:
            hint = _in_panel(hints[name], name, WHAT)
            parameters.append(parameter.replace(annotation=hint, kind=_KEYWORD))
    own = [parameter.name for parameter in parameters]
    has_settings = command.__name__ not in UNCONFIGURED
    added = [one for one in _file_parameters() if has_settings and one.name not in own]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        saving: Any = given.get("context"), given.get("save_config"), given.get("overwrite", False)
        for parameter in added:
            del given[parameter.name]
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        with saved_options(*saving):
            command(**given)

    parameters += added
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _file_parameters() -> list[inspect.Parameter]:
    """Return the parameters of commands whose options may come from a file and go to one."""
    hints = {"context": typer.Context, "config": Config, "save_config": SaveConfig}
    made = [
        inspect.Parameter(name, _KEYWORD, default=None, annotation=hint)
        for name, hint in hints.items()
    ]
    made[0] = made[0].replace(default=inspect.Parameter.empty)
    overwrite = _in_panel(Overwrite, "overwrite", OUTPUT)
    return [*made, inspect.Parameter("overwrite", _KEYWORD, default=False, annotation=overwrite)]


def _field_parameters(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters with their annotations and defaults."""
    hints = get_type_hints(group, include_extras=True)
    empty, panel = inspect.Parameter.empty, getattr(group, "panel", WHAT)
    return [
        inspect.Parameter(
            field.name,
            _KEYWORD,
            default=empty if field.default is MISSING else field.default,
            annotation=_in_panel(hints[field.name], field.name, panel),
        )
        for field in fields(group)
    ]


def _in_panel(hint: Any, name: str, usual: str) -> Any:
    """Return the annotation of an option with the panel of help pages that it stands in."""
    kind, *notes = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    if not notes:
        return hint
    info = copy.copy(notes[0])
    info.rich_help_panel = info.rich_help_panel or NAMED_PANELS.get(name, usual)
    return Annotated[kind, info]
