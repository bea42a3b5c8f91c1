"""A picture as data: marks with places, tones and texts, drawn by ``js/picture.js`` as SVG.

Lengths are CSS pixels at full size; y grows downwards. A tone is a word of the palette (see `TONES`), never a colour: the page
has a light and a dark theme. Text stays text on its way into the page. A mark with a `key` can be clicked and reached by
keyboard: it selects what the key names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

TONES = frozenset(
    {
        "plain", "raised", "good", "bad", "warn", "muted", "accent", "text", "none",
        *(f"axis-{number}" for number in range(6)),
        *(f"on-axis-{number}" for number in range(6)),
        *(f"family-{number}" for number in range(6)),
    }
)  # fmt: skip
"""What a mark may be filled or stroked with: the page's tokens, the colours of mesh axes and of kinds of task."""

CHAR_PX = 6.7
"""Width of a character of the pictures' text at the usual size, for leaving room."""

Mark = dict[str, object]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the text beside a picture, which says the same.

    Args:
        label: what it is about.
        text: what is so.
        key: a selection that a click goes to; empty for none.
        tone: ``bad``, ``good``, or empty.
    """

    label: str
    text: str
    key: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """A switch above a picture: values with labels, one of them chosen."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    chosen: str


@dataclass(frozen=True, slots=True)
class Button:
    """Something that can be done from a picture.

    Args:
        name: what is sent back.
        label: in words.
        state: empty, ``busy``, ``good`` or ``bad`` once it was tried.
        note: what came of it.
    """

    name: str
    label: str
    state: str = ""
    note: str = ""


@dataclass(slots=True)
class Picture:
    """A picture under construction.

    Args:
        cue: which kind of picture it is.
        says: one sentence: what is to be seen.
        fix: one sentence: what would put it right, or that nothing is wrong.
        marks, facts, legend, choices, buttons: what is drawn, said and offered.
        busy: what the picture waits for; empty when it is whole.
        wants: verdicts that it waits for, each named by the repairs that are made before.
        width, height: of all marks.
    """

    cue: str
    says: str = ""
    fix: str = ""
    marks: list[Mark] = field(default_factory=list[Mark])
    facts: list[Fact] = field(default_factory=list[Fact])
    legend: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    choices: list[Choice] = field(default_factory=list[Choice])
    buttons: list[Button] = field(default_factory=list[Button])
    busy: str = ""
    wants: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    width: float = 0.0
    height: float = 0.0

    # -- marks ---------------------------------------------------------------------------------------------------------

    def _add(self, kind: str, right: float, bottom: float, **more: object) -> None:
        self.width, self.height = max(self.width, right), max(self.height, bottom)
        self.marks.append({"t": kind} | {name: _rounded(item) for name, item in more.items() if not _is_default(item)})

    def rect(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        *,
        fill: str = "none",
        stroke: str = "",
        hatch: str = "",
        turn: int = 0,
        thick: float = 1,
        dashed: bool = False,
        faded: bool = False,
        round: float = 0,
        says: str = "",
        key: str = "",
    ) -> None:
        """A box; `hatch` is the tone of lines across it, `turn` their direction (0 to 3)."""
        self._add(
            "rect", x + w, y + h, x=x, y=y, w=w, h=h, fill=fill, stroke=stroke, hatch=hatch, turn=turn, thick=thick,
            dashed=dashed, faded=faded, round=round, says=says, key=key,
        )  # fmt: skip

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        tone: str = "text",
        size: float = 12,
        bold: bool = False,
        mono: bool = False,
        most: float = 0,
        faded: bool = False,
    ) -> None:
        """A line of text, y in its middle; cut with dots at `most` pixels, the whole of it then in a tooltip."""
        if not text:
            return
        wide = min(most or 1e9, len(text) * CHAR_PX * size / 12)
        right = x + (wide if anchor == "start" else wide / 2 if anchor == "middle" else 0)
        self._add(
            "text", right, y + size, x=x, y=y, text=text, anchor=anchor, tone=tone, size=size, bold=bold, mono=mono,
            most=most, faded=faded,
        )  # fmt: skip

    def line(
        self,
        points: Sequence[Point],
        *,
        tone: str = "muted",
        thick: float = 1.4,
        dashed: bool = False,
        arrow: bool = False,
        curve: bool = False,
        says: str = "",
        faded: bool = False,
    ) -> None:
        """A line through points; a smooth one when it is a curve (4 points: a Bézier curve); with an arrow at its end."""
        self._add(
            "line", max(x for x, _ in points), max(y for _, y in points),
            points=[[round(x, 1), round(y, 1)] for x, y in points], tone=tone, thick=thick, dashed=dashed, arrow=arrow,
            curve=curve, says=says, faded=faded,
        )  # fmt: skip

    def badge(
        self, x: float, y: float, text: str, *, tone: str = "raised", says: str = "", strong: bool = False
    ) -> None:
        """A small label in a box, centred at a place."""
        wide = max(16.0, len(text) * 6.3 + 8)
        self._add("badge", x + wide / 2, y + 9, x=x, y=y, w=wide, text=text, tone=tone, says=says, strong=strong)

    def node(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        *,
        family: int,
        code: str = "",
        text: str = "",
        key: str = "",
        ghost: bool = False,
        faded: bool = False,
        tone: str = "",
        note: str = "",
    ) -> None:
        """A task in the outline of its family; a ghost is one that is proposed."""
        self._add(
            "node", x + w, y + h, x=x, y=y, w=w, h=h, family=family, code=code, text=text, key=key, ghost=ghost,
            faded=faded, tone=tone, note=note,
        )  # fmt: skip

    def dot(self, x: float, y: float, r: float, *, fill: str = "none", stroke: str = "text", says: str = "") -> None:
        """A circle."""
        self._add("dot", x + r, y + r, x=x, y=y, r=r, fill=fill, stroke=stroke, says=says)

    def crown(self, x: float, y: float, *, tone: str = "warn", says: str = "") -> None:
        """The sign of a root."""
        self._add("crown", x + 8, y + 8, x=x, y=y, tone=tone, says=says)

    # -- words ---------------------------------------------------------------------------------------------------------

    def fact(self, label: str, text: str, key: str = "", tone: str = "") -> None:
        """A line of the text beside the picture."""
        self.facts.append(Fact(label, text, key, tone))

    def explain(self, sample: str, tone: str, text: str) -> None:
        """A line of the legend: what a mark means. `sample` is box, hatch, line, dashed or badge."""
        if (sample, tone, text) not in self.legend:
            self.legend.append((sample, tone, text))

    def payload(self) -> dict[str, object]:
        """What the page draws."""
        return {
            "cue": self.cue,
            "says": self.says,
            "fix": self.fix,
            "width": round(self.width + 12, 1),
            "height": round(self.height + 10, 1),
            "marks": self.marks,
            "facts": [{"label": x.label, "text": x.text, "key": x.key, "tone": x.tone} for x in self.facts],
            "legend": [list(item) for item in self.legend],
            "choices": [
                {"name": x.name, "label": x.label, "options": [list(item) for item in x.options], "chosen": x.chosen}
                for x in self.choices
            ],
            "buttons": [{"name": x.name, "label": x.label, "state": x.state, "note": x.note} for x in self.buttons],
            "busy": self.busy,
        }


def _is_default(item: object) -> bool:
    return item is None or item is False or item == ""


def _rounded(item: object) -> object:
    return round(item, 1) if isinstance(item, float) else item


def listed(items: Iterable[object], most: int = 8) -> str:
    """A list in words, cut with the number of what is left out."""
    found = [str(item) for item in items]
    return ", ".join(found[:most]) + (f", … {len(found) - most} more" if len(found) > most else "")


def kept(options: Mapping[str, object], name: str, allowed: Sequence[str]) -> str:
    """The option that was chosen, when it is one of those allowed; else the first of them."""
    chosen = options.get(name)
    return chosen if isinstance(chosen, str) and chosen in allowed else allowed[0]
