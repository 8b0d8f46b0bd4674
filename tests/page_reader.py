"""Reads HTML pages, for the tests of what writes them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

VOID = ("meta", "img")


class PageReader(HTMLParser):
    """Keeps the elements of a page, its texts without its style, and the rows of its tables.

    Every element must be closed where it should be.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside != "style":
            self.texts.append(data)
        if inside in ("td", "th"):
            self.rows[-1].append(data)

    @property
    def text(self) -> str:
        """All texts."""
        return " ".join(self.texts)

    @property
    def facts(self) -> dict[str, list[str]]:
        """Rows of all tables by their first cell."""
        return {row[0]: row[1:] for row in self.rows if row}

    def named(self, name: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a name."""
        return [attributes for tag, attributes in self.elements if tag == name]
