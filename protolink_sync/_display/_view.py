"""How a thing looks in a notebook: HTML in which nothing of a peer's is markup, and plain text."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Sequence

import attrs

__all__ = ["View", "bundle", "printable"]

# What a terminal would obey, and what would show a text in another order than it has.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

# A notebook keeps what it shows.
_LONGEST_TEXT = 20_000
_MOST_SECTIONS = 50

_WRAPPED = "white-space: pre-wrap; margin: 0.2em 0 0.6em 1em"
_LEFT = "text-align: left"
_WIDE = "width: 20em"

# Characters of a bar in plain text.
_BAR = 20


def printable(text: str) -> str:
    """Return a peer's text without what a terminal would obey.

    >>> printable("one" + chr(27) + "[2J" + chr(10) + "two")
    'one [2J\\ntwo'
    """
    return _UNPRINTABLE.sub(" ", text)


@attrs.frozen
class View:
    """What is shown of a thing.

    Args:
        title: What it is.
        facts: Names and values; those without a value are left out.
        sections: Labels and longer texts, the latest last.
        columns: Titles of a table; empty for none.
        rows: Its rows.
        share: How much of it is done, from 0 to 1, for a bar; None for no bar.
    """

    title: str
    facts: Sequence[tuple[str, object]] = ()
    sections: Sequence[tuple[str, str]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    share: float | None = None

    def plain(self) -> str:
        """Return it as plain text."""
        lines = [printable(self.title)]
        if self.share is not None:
            full = round(_BAR * self._filled())
            lines.append(f"  [{'#' * full}{' ' * (_BAR - full)}]")
        lines += [f"  {name}: {value}" for name, value in self._facts()]
        lines += ["  " + "  ".join(row) for row in self._rows()]
        for label, text in self._sections():
            lines += [f"{label}:", text]
        return "\n".join(lines)

    def html(self) -> str:
        """Return it as HTML."""
        out = [f"<div><p><b>{_escaped(printable(self.title))}</b></p>"]
        if self.share is not None:
            value = f"{self._filled():.3f}"
            out.append(f'<progress style="{_WIDE}" max="1" value="{value}"></progress>')
        if facts := self._facts():
            out.append("<table>")
            out += [
                f'<tr><th style="{_LEFT}">{_escaped(name)}</th>'
                f'<td style="{_LEFT}">{_escaped(value)}</td></tr>'
                for name, value in facts
            ]
            out.append("</table>")
        if self.columns:
            out.append(_table(self.columns, self._rows()))
        for label, text in self._sections():
            out.append(f"<div><i>{_escaped(label)}</i></div>")
            out.append(f'<pre style="{_WRAPPED}">{_escaped(text)}</pre>')
        return "\n".join([*out, "</div>"])

    def _filled(self) -> float:
        return min(max(self.share or 0.0, 0.0), 1.0)

    def _facts(self) -> list[tuple[str, str]]:
        return [(name, _words(value)) for name, value in self.facts if value not in (None, "", [])]

    def _rows(self) -> list[list[str]]:
        return [[_words(cell) for cell in row] for row in self.rows]

    def _sections(self) -> list[tuple[str, str]]:
        left_out = len(self.sections) - _MOST_SECTIONS
        shown = [(printable(label), _cut(text)) for label, text in self.sections[-_MOST_SECTIONS:]]
        return [(f"{left_out} earlier", "..."), *shown] if left_out > 0 else shown


def bundle(
    view: View, include: Collection[str] | None = None, exclude: Collection[str] | None = None
) -> dict[str, str]:
    """Return a view in the forms that a notebook chooses from.

    Args:
        view: The view.
        include: The forms that are wanted; None for all.
        exclude: The forms that are not; plain text always is.
    """
    forms = {"text/plain": view.plain(), "text/html": view.html()}
    return {
        form: text
        for form, text in forms.items()
        if form == "text/plain"
        or ((include is None or form in include) and form not in (exclude or ()))
    }


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_words, value))
    return _cut("" if value is None else str(value))


def _cut(text: str) -> str:
    if len(text) > _LONGEST_TEXT:
        text = f"{text[:_LONGEST_TEXT]} ... ({len(text) - _LONGEST_TEXT} more characters)"
    return printable(text)


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th style="{_LEFT}">{_escaped(title)}</th>' for title in columns)
    body = "\n".join(
        "<tr>" + "".join(f'<td style="{_LEFT}">{_escaped(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>\n{body}</table>"
