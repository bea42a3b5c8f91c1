"""Where an instruction came from: the `metadata` attribute and the stack frame tables.

Older files say `source_file="a.py" source_line=3` in every op; newer ones say `stack_frame_id=7` and hold the frames once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dtir.importers.hlo.attributes import Raw
from dtir.importers.hlo.lexing import unescape
from dtir.importers.hlo.syntax import Instruction, SourceTables

_FIELD = re.compile(
    r'(op_name|source_file)=("[^"\\]*+(?:\\.[^"\\]*+)*+")|(source_line|stack_frame_id)=(\d{1,9})', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Origin:
    """The framework's name of the op, and `file:line`; empty where the text does not say."""

    op_name: str = ""
    source: str = ""


NO_ORIGIN = Origin()


def origin(instruction: Instruction, tables: SourceTables) -> Origin:
    """Name and place of one instruction.

    >>> from dtir.importers.hlo.reader import read_text
    >>> text = 'e { a = f32[] parameter(0), metadata={op_name="f/x" source_file="a.py" source_line=3} }'
    >>> origin(read_text(text).modules[0].entry.root, SourceTables())
    Origin(op_name='f/x', source='a.py:3')
    """
    metadata = instruction.attributes.get("metadata")
    if not isinstance(metadata, Raw):
        return NO_ORIGIN
    op_name = file = ""
    line = frame = 0
    for text_key, quoted, number_key, digits in _FIELD.findall(metadata.text):
        if text_key == "op_name":
            op_name = unescape(quoted)
        elif text_key:
            file = unescape(quoted)
        elif number_key == "source_line":
            line = int(digits)
        else:
            frame = int(digits)
    if not file and frame in tables.frames:
        file, line = tables.frames[frame]
    source = f"{file}:{line}" if file and line else file
    return Origin(op_name, source)
