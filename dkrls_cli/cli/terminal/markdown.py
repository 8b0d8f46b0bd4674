"""Pages of Markdown, drawn by rich on a terminal."""

from __future__ import annotations

import sys

_WIDEST = 100  # columns: longer lines are hard to read


def draw_markdown(text: str) -> None:
    """Draw a page of Markdown on the terminal, at most 100 columns wide."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=sys.stdout)
    # Commands and code in the colours of the terminal, which suit its background.
    page = Markdown(text, code_theme="ansi_dark", hyperlinks=False)
    console.print(page, width=min(console.width, _WIDEST))
