"""Whatever a text holds, it stays text in HTML."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reader import PageReader

from dkrls_cli.plots.reports.html import Html, document, element, escape, pairs, picture, table


@given(st.text())
def test_any_text_is_one_text_again(text: str) -> None:
    page = PageReader(element("p", text, title=text))
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    assert [tag for tag, _ in page.elements] == ["p"]
    assert page.elements[0][1]["title"] == shown
    assert "".join(page.texts) == shown


@pytest.mark.parametrize("text", ["\ud800", "a\x00b\x1b[31m", "\u202eabc"])
def test_characters_that_no_page_may_hold_are_left_out(text: str) -> None:
    assert escape(text).encode("utf-8").decode().isprintable()


def test_html_is_not_escaped_twice() -> None:
    inner = element("b", "<")
    assert isinstance(inner, Html)
    assert element("p", inner, "<") == "<p><b>&lt;</b>&lt;</p>"


def test_a_table_has_the_heading_of_its_column_in_every_cell() -> None:
    page = PageReader(table([{"a<": "1", "b": "2"}, {"a<": "3", "b": "<4>"}]))
    assert [cell["data-label"] for cell in page.named("td")] == ["a<", "b", "a<", "b"]
    assert len(page.named("th")) == 2
    assert page.texts == ["a<", "b", "1", "2", "3", "<4>"]


def test_a_table_of_two_columns_stays_one_on_a_narrow_page() -> None:
    assert PageReader(table([{"a": "1", "b": "2"}])).named("table") == [{}]
    assert PageReader(table([{"a": "1", "b": "2", "c": "3"}])).named("table") == [
        {"class": "stack"}
    ]


def test_pairs_are_names_and_values() -> None:
    assert pairs({"a&": "<b>"}) == "<dl><dt>a&amp;</dt><dd>&lt;b&gt;</dd></dl>"


def test_a_picture_is_part_of_the_page() -> None:
    page = PageReader(picture(b"\x00\xff", "png", 'text "', "caption"))
    (image,) = page.named("img")
    kind, data = str(image["src"]).split(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == b"\x00\xff"
    assert image["alt"] == 'text "'
    assert (
        PageReader(picture(b"<svg/>", "svg", "", ""))
        .named("img")[0]["src"]
        .startswith("data:image/svg+xml;base64,")
    )


def test_a_document_allows_nothing_from_outside() -> None:
    page = PageReader(document("a </title><script>", element("p", "b")))
    assert not page.named("script")
    policy = [one["content"] for one in page.named("meta") if "http-equiv" in one]
    assert policy == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.named(
        "meta"
    )
    assert page.named("html") == [{"lang": "en"}]
