"""Writes a page as one self-contained HTML file or as Markdown with its pictures beside it.

Both say the same. The HTML loads nothing: style and pictures are in it, there is no script, and its content security
policy forbids the rest. All text is escaped here.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from devyatka_env._files import write_whole
from devyatka_env.evaluation.reports.page import (
    INK,
    Block,
    Code,
    Line,
    Listing,
    Page,
    Paragraph,
    Picture,
    Pictures,
    Table,
    Tile,
    pieces,
    plain,
)

ENDINGS = (".html", ".md")
_PNG_DPI = 150


def write_page(page: Page, path: Path) -> list[Path]:
    """Write a page by the ending of the file; Markdown keeps its pictures in ``NAME_files`` beside it.

    Returns:
        The files written. What stood there stays whole until the new one is.

    Raises:
        ValueError: another ending than `ENDINGS`.
        OSError: it cannot be written.
    """
    check_ending(path)
    if path.suffix == ".html":
        return [_write(path, to_html(page).encode())]
    folder = pictures_folder(path)
    text, pictures = to_markdown(page, folder.name)
    if pictures:
        folder.mkdir(exist_ok=True)
    return [*(_write(folder / name, data) for name, data in pictures.items()), _write(path, text.encode())]


def check_ending(path: Path) -> None:
    """Refuse a file that is neither HTML nor Markdown.

    Raises:
        ValueError: it is not.
    """
    if path.suffix not in ENDINGS:
        raise ValueError(f"a report is written as {' or '.join(ENDINGS)}, not as {path.name!r}")


def pictures_folder(path: Path) -> Path:
    """Where the pictures of a Markdown page stand."""
    return path.with_name(path.stem + "_files")


def _write(path: Path, data: bytes) -> Path:
    write_whole(path, data)
    return path


# --- HTML ------------------------------------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark; --back: #ffffff; --card: #f6f8fa; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0;
  --accent: #2f6fb5; --warn: #fff8e5; --warn-line: #d4a72c; }
@media screen and (prefers-color-scheme: dark) { :root { --back: #12161c; --card: #1b2129; --ink: #e6eaef;
  --soft: #9aa5b1; --line: #333c47; --accent: #79b0ee; --warn: #2d2713; --warn-line: #8f742a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h1 code { font-size: 1em; background: none; padding: 0; }
p { margin: .6rem 0; max-width: 46rem; overflow-wrap: break-word; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
.verdict { font-size: 1.15rem; margin: 0 0 1rem; }
.notice { background: var(--warn); border-left: 4px solid var(--warn-line); padding: .5rem .8rem; border-radius: 4px; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 1rem 0; font-size: .9rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem; }
.tile b { display: block; font-size: 1.5rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tile span { display: block; color: var(--soft); font-size: .82rem; line-height: 1.35; }
code, pre { font: .86em/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
pre code { font-size: 1em; background: none; padding: 0; overflow-wrap: normal; }
code { background: var(--card); padding: .1em .3em; border-radius: 4px; overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .75rem .9rem;
  overflow-x: auto; }
.scroll { overflow-x: auto; margin: 1rem 0 .25rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap;
  vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; white-space: normal; vertical-align: bottom; min-width: 4.5rem; }
th:first-child { text-align: left; font-weight: 600; }
th:first-child, td:first-child { padding-left: 0; }
table.words td, table.words th { text-align: left; white-space: normal; }
table.words tbody th { white-space: nowrap; }
.caption { color: var(--soft); font-size: .85rem; margin-top: .25rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem;
  margin: 1.25rem 0; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 8px; padding: .5rem; break-inside: avoid; }
svg { display: block; width: 100%; height: auto; color: var(--ink); }
svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif !important; }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--accent); }
footer { margin-top: 3rem; padding-top: .75rem; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .85rem; }
@media (max-width: 40rem) { main { padding: 1.25rem .9rem 2rem; } h1 { font-size: 1.4rem; }
  .tiles { grid-template-columns: repeat(2, 1fr); } table.words tbody th { white-space: normal; } }
@media print { main { max-width: none; padding: 0; } nav { display: none; } h2 { break-after: avoid; }
  .tile, tr, pre { break-inside: avoid; } .scroll { overflow: visible; } table { font-size: .75rem; }
  pre { white-space: pre-wrap; } .pictures { grid-template-columns: 1fr 1fr; } }
""".strip()

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def to_html(page: Page) -> str:
    """The page as one HTML file."""
    anchors = [f"part-{number}" for number in range(1, len(page.sections) + 1)]
    numbers = iter(range(1, 1000))  # of the pictures, whose ids must differ
    body = [f"<h1>{_rich(page.title)}</h1>", f'<p class="verdict">{_rich(page.verdict)}</p>']
    body += [f'<p class="notice">{_rich(notice)}</p>' for notice in page.notices]
    if page.tiles:
        body += ['<div class="tiles">', *map(_tile, page.tiles), "</div>"]
    links = [f'<a href="#{to}">{_text(part.title)}</a>' for to, part in zip(anchors, page.sections, strict=True)]
    body.append(f"<nav>{' '.join(links)}</nav>")
    for to, part in zip(anchors, page.sections, strict=True):
        body += ["<section>", f'<h2 id="{to}">{_text(part.title)}</h2>']
        body += [text for block in part.blocks for text in _block(block, numbers)]
        body.append("</section>")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_text(_POLICY)}">',
            f"<title>{_text(plain(page.title))}</title>",
            f"<style>\n{_STYLE}\n</style>",
            "</head>",
            "<body>",
            "<main>",
            *body,
            f"<footer>{_rich(page.footer)}</footer>",
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _text(text: str) -> str:
    return html.escape(_printable(text))


def _printable(text: str) -> str:
    """Without the control characters, which HTML does not allow; lines and tabs stay."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]", "\ufffd", text)


def _rich(line: Line) -> str:
    return "".join(
        f"<code>{_text(piece.text)}</code>" if isinstance(piece, Code) else _text(piece) for piece in pieces(line)
    )


def _tile(tile: Tile) -> str:
    label, note = _text(tile.label), _text(tile.note)
    return f'<div class="tile"><span>{label}</span><b>{_text(tile.figure)}</b><span>{note}</span></div>'


def _block(block: Block, numbers: Iterator[int]) -> list[str]:
    if isinstance(block, Paragraph):
        return [f"<p>{_rich(block.line)}</p>"]
    if isinstance(block, Listing):
        code = f"<pre><code>{_text(block.text)}</code></pre>"
        return [f"<details><summary>{_text(block.title)}</summary>{code}</details>" if block.title else code]
    if isinstance(block, Pictures):
        return ['<div class="pictures">', *(_figure(one, next(numbers)) for one in block.pictures), "</div>"]
    head = "".join(f'<th scope="col">{_rich(cell)}</th>' for cell in block.head)
    lines = ['<div class="scroll">', '<table class="words">' if block.words else "<table>"]
    lines += [f"<thead><tr>{head}</tr></thead>"] if any(block.head) else []
    lines.append("<tbody>")
    for first, *cells in block.rows:
        row = "".join(f"<td>{_rich(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{_rich(first)}</th>{row}</tr>')
    lines += ["</tbody>", "</table>", "</div>"]
    return [*lines, f'<p class="caption">{_rich(block.caption)}</p>'] if block.caption else lines


def _figure(picture: Picture, number: int) -> str:
    return f"<figure>\n{_svg(picture, number)}\n</figure>"


def _svg(picture: Picture, number: int) -> str:
    """The picture as an element of the page: no prolog, no namespaces, ids of its own, the ink that of the page."""
    import matplotlib as mpl

    file = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": picture.name}):  # text, not outlines of letters
        picture.figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    text = file.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    opening, rest = text.split(">", 1)
    (box,) = re.findall(r'viewBox="([^"]*)"', opening)
    rest = rest.replace("xlink:href", "href").replace(INK, "currentColor")
    rest = re.sub(r'\bid="', f'id="p{number}-', rest)
    rest = re.sub(r'(href="#|url\(#)', rf"\g<1>p{number}-", rest)
    return f'<svg viewBox="{box}" role="img" aria-label="{_text(picture.alt)}">{_printable(rest)}'


# --- Markdown --------------------------------------------------------------------------------------------------------


def to_markdown(page: Page, folder: str) -> tuple[str, dict[str, bytes]]:
    """The page as Markdown, and its pictures (PNG) by file name, to which it links in ``folder``."""
    pictures: dict[str, bytes] = {}
    parts = [f"# {_mark(page.title)}", f"**{_mark(page.verdict)}**"]
    parts += [f"> {_mark(notice)}" for notice in page.notices]
    if page.tiles:
        rows = [(tile.label, tile.figure, tile.note) for tile in page.tiles]
        parts.append(_markdown_table(Table(("", "", ""), rows, words=True)))
    for section in page.sections:
        parts.append(f"## {_mark(section.title)}")
        for block in section.blocks:
            if isinstance(block, Paragraph):
                parts.append(_mark(block.line))
            elif isinstance(block, Table):
                parts.append(_markdown_table(block))
                parts += [_mark(block.caption)] if block.caption else []
            elif isinstance(block, Listing):
                parts += [_mark(block.title) + ":"] if block.title else []
                fence = "`" * max(3, 1 + _longest_run(block.text))
                parts.append(f"{fence}{block.language}\n{_printable(block.text)}\n{fence}")
            else:
                for one in block.pictures:
                    pictures[f"{one.name}.png"] = _png(one)
                    parts.append(f"![{_mark(one.alt)}]({quote(f'{folder}/{one.name}.png')})")
    parts += ["---", _mark(page.footer)]
    return "\n\n".join(parts) + "\n", pictures


def _markdown_table(table: Table) -> str:
    rule = [":--", *([":--"] if table.words else ["--:"]) * (len(table.head) - 1)]
    cells = [[_mark(cell).replace("|", r"\|") for cell in row] for row in (table.head, *table.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:]))


def _mark(line: Line) -> str:
    """A line with everything escaped that Markdown would read; a bar is left to `_markdown_table`."""
    marked = []
    for piece in pieces(line):
        text = re.sub(r"[ \t\n]+", " ", _printable(piece.text if isinstance(piece, Code) else piece))
        if isinstance(piece, Code) and text:
            fence = "`" * (1 + _longest_run(text))
            gap = " " if "`" in (text[0], text[-1]) else ""
            marked.append(f"{fence}{gap}{text}{gap}{fence}")
        else:
            marked.append(re.sub(r"([\\`*_{}\[\]<>#~])", r"\\\1", text.replace("&", "&amp;")))
    return "".join(marked)


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _png(picture: Picture) -> bytes:
    file = io.BytesIO()
    picture.figure.savefig(file, format="png", dpi=_PNG_DPI, facecolor="white", metadata={"Software": None})
    return file.getvalue()
