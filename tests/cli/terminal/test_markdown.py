"""Pages of Markdown on a terminal of some width."""

import pytest

from dkrls_cli.cli.terminal.markdown import draw_markdown
from dkrls_cli.guide.pages import read_page, topics

TEXT = """# Title

Some *words* that are long enough to be broken on a narrow terminal, and `--option`.

| key | meaning |
|---|---|
| one | first |

```sh
dkrls fit x.nc
```
"""


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_page_fits_the_terminal(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    draw_markdown(TEXT)
    lines = capsys.readouterr().out.splitlines()
    assert 50 < max(map(len, lines)) <= min(width, 100)
    for part in ("Title", "words", "--option", "meaning", "dkrls fit x.nc"):
        assert any(part in line for line in lines)
    assert not any("|---|" in line or "```" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("topic", topics())
def test_every_page_of_the_guide_fits_a_narrow_terminal(topic, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    draw_markdown(read_page(topic))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 10
    assert max(map(len, lines)) <= 60
