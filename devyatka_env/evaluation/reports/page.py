"""What a page of text, tables and pictures is made of; `writers` write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What pictures draw text and frames in. In the HTML it becomes the colour of the text around them, light or dark.
INK = "#1f2328"


@dataclass(frozen=True)
class Code:
    """A name, a command or a value, set as code in a line of text."""

    text: str


# A line of text: a piece, or pieces behind one another.
Line = str | Code | tuple[str | Code, ...]


@dataclass(frozen=True)
class Paragraph:
    """A line of text by itself."""

    line: Line


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        head: its column heads; all empty for none.
        rows: lines by row and column; the first column names the row.
        caption: what is to be said under it.
        words: whether the cells hold words, set to the left, not figures, set to the right.
    """

    head: Sequence[Line]
    rows: Sequence[Sequence[Line]]
    caption: Line = ""
    words: bool = False


@dataclass(frozen=True)
class Picture:
    """A picture.

    Attributes:
        name: name of its file without ending, where it has one.
        alt: what it shows, for those who cannot see it.
        figure: drawn by matplotlib, in `INK` where it is text or frame.
    """

    name: str
    alt: str
    figure: Figure


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side where there is room."""

    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Listing:
    """Lines of code.

    Attributes:
        text: the lines.
        language: ``bash``, ``yaml`` or ``json``.
        title: where it is long: what the HTML shows of it until it is opened.
    """

    text: str
    language: str
    title: str = ""


Block = Paragraph | Table | Pictures | Listing


@dataclass(frozen=True)
class Section:
    """A part of the page under a title."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Tile:
    """A figure that stands out at the top."""

    label: str
    figure: str
    note: str


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        title: what it is about.
        verdict: what it says, in a line.
        notices: what a reader must know before the figures: what is missing, who cheats.
        tiles: figures that stand out.
        sections: the contents.
        footer: when and with what it was made.
    """

    title: Line
    verdict: Line
    notices: Sequence[Line]
    tiles: Sequence[Tile]
    sections: Sequence[Section]
    footer: Line


def pieces(line: Line) -> tuple[str | Code, ...]:
    """The pieces of a line."""
    return line if isinstance(line, tuple) else (line,)


def plain(line: Line) -> str:
    """A line without its form."""
    return "".join(piece.text if isinstance(piece, Code) else piece for piece in pieces(line))
