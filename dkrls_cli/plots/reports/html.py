"""HTML from plain values: every text is escaped unless it is HTML already."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence

from dkrls_cli.plots.style import Kind

_TYPES = {"png": "image/png", "svg": "image/svg+xml"}

_VOID = ("meta", "img", "br")
"""Elements that have no content and no end."""


class Html(str):
    """Text that is HTML: it is not escaped again."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: str) -> Html:
    """Return an element with its content; attributes may end in an underscore, as ``class_``.

    Examples
    --------
    >>> element("p", "a < b ", element("b", "&"), class_="x")
    '<p class="x">a &lt; b <b>&amp;</b></p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{join(content)}</{name}>")


def join(parts: Sequence[str]) -> Html:
    """Return texts and HTML one after the other, the texts escaped."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def escape(text: str) -> str:
    r"""Return a text as HTML shows it, without characters that a page must not hold.

    >>> escape("<script>\x00'")
    '&lt;script&gt; &#x27;'
    """
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return html.escape(shown.encode("utf-8", "replace").decode(), quote=True)


def table(rows: Sequence[Mapping[str, str]]) -> Html:
    """Return rows with the same keys as a table.

    On a narrow page every row of more than two cells becomes a block, in which each cell has the
    heading of its column.
    """
    names = list(rows[0])
    kind = {"class_": "stack"} if len(names) > 2 else {}
    head = element("tr", *(element("th", name, scope="col") for name in names))
    lines = [
        element("tr", *(element("td", row[name], data_label=name) for name in names))
        for row in rows
    ]
    whole = element("table", element("thead", head), element("tbody", *lines), **kind)
    return element("div", whole, class_="table")


def pairs(facts: Mapping[str, str]) -> Html:
    """Return names and values as a list."""
    each = [join([element("dt", name), element("dd", value)]) for name, value in facts.items()]
    return element("dl", *each)


def picture(content: bytes, kind: Kind, text: str, caption: str) -> Html:
    """Return a picture that is part of the page, with a text for those who do not see it."""
    data = base64.b64encode(content).decode("ascii")
    image = element("img", src=f"data:{_TYPES[kind]};base64,{data}", alt=text)
    return element("figure", image, element("figcaption", caption))


def document(title: str, *content: str) -> str:
    """Return a whole page that loads nothing: its policy allows pictures of its own only.

    It is legible on a phone, on paper, and in light and dark.
    """
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(_STYLE)),
    )
    page = element("html", head, element("body", element("main", *content)), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


# Pictures are drawn on white, also in the dark.
_STYLE = """
:root { --ink: #1c1e21; --paper: #fff; --soft: #5b6168; --line: #d9dce0; --card: #f6f7f8;
  --note: #8a3b00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ea; --paper: #16181b; --soft: #a3a9b0; --line: #3a3f45; --card: #1f2226;
    --note: #ffb27a; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.5rem 0 0; }
h2 { font-size: 1.3rem; border-top: 1px solid var(--line); padding-top: 1rem; margin: 2rem 0 0; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 0.5rem; }
.by { color: var(--soft); margin: 0.2rem 0 0; }
.lead { font-size: 1.1rem; }
.note { color: var(--note); }
p { max-width: 46rem; margin: 0.6rem 0; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0.5rem 0;
  overflow-wrap: break-word; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 1rem 0.25rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
.figures { display: grid; gap: 1rem; margin: 0.8rem 0;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
figure { margin: 0; max-width: 40rem; }
img { display: block; width: 100%; height: auto; background: #fff; border-radius: 6px;
  padding: 6px; border: 1px solid var(--line); }
figcaption { color: var(--soft); font-size: 0.9rem; margin-top: 0.25rem; }
dl { display: grid; grid-template-columns: minmax(5rem, max-content) minmax(0, 1fr);
  gap: 0.2rem 1rem; }
dt { color: var(--soft); }
dd { margin: 0; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem;
  white-space: pre-wrap; }
@media (max-width: 42rem) {
  .stack thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  .stack, .stack tbody, .stack tr, .stack td { display: block; width: 100%; }
  .stack tr { border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  .stack td { border: 0; padding: 0; display: flex; justify-content: space-between; gap: 1rem;
    overflow-wrap: anywhere; }
  .stack td::before { content: attr(data-label); color: var(--soft); flex: none; }
  .stack td:first-child { font-weight: 600; }
  .stack td:first-child::before { content: none; }
}
@media print {
  :root { --ink: #000; --paper: #fff; --soft: #444; --line: #bbb; --card: #fff; --note: #000; }
  html { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  .figures { grid-template-columns: repeat(2, 1fr); }
  figure, tr, pre { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  img { border: 0; padding: 0; }
}
"""
