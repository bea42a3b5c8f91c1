"""Which format an input has, told from its content and never from its name.

`FORMATS` lists every format that is recognised, in the order of the questions. Not every one of them has a reader:
saying "this is a Chakra trace, which is not read" beats "unknown format".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TypeAlias

from dtir.importers.read import problem
from dtir.schema.diagnostics import DiagnosticSet

HEAD_BYTES = 64 * 1024
"""How much of the beginning is looked at; of the end, as much as an envelope needs (`TAIL_BYTES`)."""

TAIL_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """What the recognisers look at.

    Args:
        head: the first bytes.
        text: the same as text without leading white space and comments; empty when the head is no text.
        keys: keys of the outermost JSON object seen in the head, with their value when it is a short string.
        tail: the last bytes.
    """

    head: bytes = field(repr=False)
    text: str = field(repr=False)
    keys: dict[str, str | None]
    tail: bytes = field(repr=False, default=b"")

    def has_keys(self, *names: str) -> bool:
        return all(name in self.keys for name in names)


Recogniser: TypeAlias = Callable[[Sample], bool]


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Args:
        name: short stable name, as the command line prints it.
        what: what a person calls it, with an article.
        recognise: whether a sample is of this format.
        binary: its bytes are not text.
        hint: of a format that is no program, what to do with it instead.
    """

    name: str
    what: str
    recognise: Recogniser
    binary: bool = False
    hint: str = ""


# --------------------------------------------------------------------------------------------------- binary formats


def _begins(*magics: bytes) -> Recogniser:
    return lambda sample: sample.head.startswith(magics)


_CHAKRA = re.compile(
    rb"[\x80-\xff]{0,4}[\x00-\x7f](?:\x0a(?:\x00|[\x01-\x10][0-9][0-9.]*)(?:[\x80-\xff]{0,4}[\x00-\x7f]|$)|\x12[\x00-\x7f]\x0a[\x01-\x40][A-Za-z_]+\xea)"
)


# Where the metadata are empty or missing: a node with its number (0 is left out), name and type.
_CHAKRA_NODE = re.compile(
    rb"\x00?[\x80-\xff]{0,4}[\x04-\x7f](?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?\x12[\x80-\xff]?[\x01-\x7f][ -~]{1,300}\x18[\x01-\x07]"
)


def _chakra(sample: Sample) -> bool:
    # The first message is GlobalMetadata, behind its length: a version like 0.0.4 (tag 0x0a), or an attribute (0x12) whose
    # name (0x0a) is followed by a string value (tag 29: 0xea 0x01).
    return _CHAKRA.match(sample.head) is not None or _CHAKRA_NODE.match(sample.head) is not None


# ----------------------------------------------------------------------------------------------------- JSON formats


def _envelope(tag: str) -> Recogniser:
    # The two keys of an upstream envelope may come in either order, with a payload of any size between them.
    at_end = re.compile(rb'"\$type"\s*:\s*"' + re.escape(tag).encode() + rb'[\w.-]*"\s*\}\s*$')

    def recognise(sample: Sample) -> bool:
        named = sample.keys.get("$type")
        if named is not None:
            return named.startswith(tag)
        return bool(sample.keys) and at_end.search(sample.tail) is not None

    return recognise


def _native(sample: Sample) -> bool:
    # Keys are written in order, so that the schema stands behind a payload of any size.
    return (sample.keys.get("schema") or "").startswith("dtir.") or sample.has_keys("digest", "payload")


def _schema(name: str) -> Recogniser:
    return lambda sample: sample.keys.get("schema") == name


# ----------------------------------------------------------------------------------------------------- text formats

_COMMENTS = re.compile(r"(?:\s+|//[^\n]*(?:\n|$)|/\*.*?\*/)+", re.DOTALL)
_MLIR = re.compile(
    r'(?:module\s*(?:@|\{|attributes\b)|"?builtin\.module|func\.func\b|(?:sdy|mpmd|stablehlo|mhlo)\.\w|[#!][\w.]+\s*=|ml_program\.)'
)
_HLO_MODULE = re.compile(r"^HloModule\b", re.MULTILINE)
_HLO_COMPUTATION = re.compile(
    r"(?:ENTRY\s+)?%?[\w.\-]+\s*(?:\([^\n]*\)\s*->\s*[^\n]*)?\{[^\n]*\n\s*(?:ROOT\s+)?%?[\w.\-]+\s*=\s"
)
_YAML_PROGRAM = re.compile(r"^\{?\s*[\"']?schema[\"']?\s*:\s*[\"']?dtir-", re.MULTILINE)


def _mlir(sample: Sample) -> bool:
    return _MLIR.match(sample.text) is not None


def _hlo(sample: Sample) -> bool:
    return _HLO_MODULE.search(sample.text) is not None or _HLO_COMPUTATION.match(sample.text) is not None


def _keys(*names: str) -> Recogniser:
    return lambda sample: sample.has_keys(*names)


def _kineto(sample: Sample) -> bool:
    # The events may stand behind a description of the job that is longer than what is looked at.
    if sample.has_keys("traceEvents") or sample.has_keys("schemaVersion", "distributedInfo"):
        return True
    return _EVENT_LIST.match(sample.text) is not None


_EVENT_LIST = re.compile(r'\[\s*\{[^{}]*"ph"\s*:\s*"')


_RECORDER_KEYS = frozenset(
    {"version", "pg_config", "pg_status", "comm_lib_version", "nccl_comm_state", "nccl_version", "rank", "host_name"}
)


def _flight_recorder(sample: Sample) -> bool:
    # Keys are sorted, so that the version may stand behind any number of entries; without entries there is nothing else.
    if sample.has_keys("entries"):
        return sample.has_keys("pg_config") or ('"profiling_name"' in sample.text and '"process_group"' in sample.text)
    return sample.has_keys("pg_config", "version") and _RECORDER_KEYS.issuperset(sample.keys)


_GROUP_TABLE = re.compile(r'\{\s*"\d+"\s*:\s*\[\s*(?:\d|\])')


def _group_table(sample: Sample) -> bool:
    return _GROUP_TABLE.match(sample.text) is not None and all(key.isdecimal() for key in sample.keys)


def _sharding_table(sample: Sample) -> bool:
    named = '"partition_spec"' in sample.text and '"shape"' in sample.text
    return bool(sample.keys) and (named or ('"PartitionSpec"' in sample.text and '"logic_axes"' in sample.text))


FORMATS: tuple[Format, ...] = (
    Format("mlir-bytecode", "MLIR bytecode", _begins(b"ML\xefR"), binary=True),
    Format("zip", "a zip archive (an .npz file is one)", _begins(b"PK\x03\x04", b"PK\x05\x06"), binary=True),
    Format("numpy", "a numpy array file", _begins(b"\x93NUMPY"), binary=True),
    Format(
        "pickle",
        "a Python pickle, which can run code and is never opened",
        _begins(b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
        binary=True,
    ),
    Format("gzip", "gzip data inside gzip data", _begins(b"\x1f\x8b"), binary=True),
    Format("chakra", "a Chakra execution trace", _chakra, binary=True),
    Format("upstream", "a DistributedTaskIR snapshot of the upstream project", _envelope("blueprinting.")),
    Format(
        "run-record",
        "a run record: it says how a program ran, and does not hold the program",
        _schema("dtir.run-record"),
        hint="dtir export RUN.json -o x.trace.json draws it; show and verify want the program that was run",
    ),
    Format(
        "machine-profile",
        "a machine profile: it describes a machine, and holds no program",
        _schema("dtir.machine-profile"),
        hint="dtir cost FILE --profile PROFILE.json, or dtir run FILE --profile PROFILE.json",
    ),
    Format(
        "binding",
        "a binding of ranks to processes, which holds no program",
        _schema("dtir.binding"),
        hint="dtir run FILE --binding BINDING.json",
    ),
    Format("dtir", "a dtir snapshot", _native),
    Format("kineto", "a Kineto or Chrome trace", _kineto),
    Format("flight-recorder", "a flight recorder dump", _flight_recorder),
    Format("pytorch-et", "a PyTorch execution trace", _keys("schema", "nodes")),
    Format("chakra-json", "a Chakra execution trace in JSON", _keys("workload_graph")),
    Format("comm-group", "a table of process groups of Chakra traces", _group_table),
    Format("comm-debug", "a CommDebugMode tree of PyTorch", _keys("fqn", "module_type", "children")),
    Format("sharding-table", "a sharding table of MaxText", _sharding_table),
    Format(
        "mlipspec",
        "a DistributionSpec or MLIPSpec",
        lambda sample: (
            sample.has_keys("core", "version") or sample.has_keys("policy", "custom_ops", "third_party_helpers")
        ),
    ),
    Format("hlo", "an HLO module", _hlo),
    Format("stablehlo", "an MLIR module (StableHLO or Shardy)", _mlir),
    Format("yaml", "a dtir program in YAML", lambda sample: _YAML_PROGRAM.search(sample.text) is not None),
)


def sample(data: bytes) -> Sample:
    """The sample of an input that was read in full, or of its first piece."""
    head = data[:HEAD_BYTES]
    # Text in a wrong encoding is still recognised: what is wrong is then said of the byte, not of the format.
    text = "" if b"\0" in head else head.decode("utf-8", "replace")
    leading = _COMMENTS.match(text)
    text = text[leading.end() :] if leading else text
    return Sample(head, text, _top_level_keys(text), data[-TAIL_BYTES:])


_JSON_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[\[\]{}]', re.DOTALL)


def _top_level_keys(text: str) -> dict[str, str | None]:
    """Keys of the outermost JSON object, as far as the text goes, each with its value when that is a string."""
    keys: dict[str, str | None] = {}
    if not text.startswith("{"):
        return keys
    depth, last = 0, ""
    for token in _JSON_TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
        elif depth == 1 and token[2]:
            last = token[1]
            keys[last] = None
        elif depth == 1 and keys.get(last, "") is None:
            keys[last] = token[1]
    return keys


def recognise(data: bytes) -> Format | None:
    """The format of an input; None when it is none of `FORMATS`."""
    seen = sample(data)
    return next((item for item in FORMATS if item.recognise(seen)), None)


_BOMS = ((b"\xef\xbb\xbf", "UTF-8"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


def refuse_head(head: bytes, readable: Collection[str]) -> DiagnosticSet | None:
    """Why an input that begins like this cannot be read, said before the rest of it is.

    Args:
        head: its first bytes.
        readable: names of the formats that have a reader.
    """
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return problem(
                "input.encoding",
                f"the input begins with a {encoding} byte order mark; plain UTF-8 text was expected",
                hint="save it as UTF-8 without a byte order mark",
            )
    known = recognise(head)
    if known is None:
        return unknown(head, readable) if b"\0" in head[:HEAD_BYTES] else None
    return unsupported(known, readable) if known.binary and known.name not in readable else None


def unsupported(known: Format, readable: Collection[str]) -> DiagnosticSet:
    """The finding about an input whose format is known and has no reader."""
    return problem(
        "input.unsupported_format",
        f"the input is {known.what}" + ("" if known.hint else "; that format is not read"),
        hint=known.hint or f"what is read: {describe(readable)}",
    )


def unknown(data: bytes, readable: Collection[str]) -> DiagnosticSet:
    """The finding about an input of no known format."""
    seen = sample(data)
    if seen.keys:
        names = ", ".join(list(seen.keys)[:6]) + (", ..." if len(seen.keys) > 6 else "")
        what = f"it is a JSON object with the keys {names}"
    elif not seen.text:
        what = "it is binary data"
    else:
        first = seen.text.split("\n", 1)[0]
        what = f"its first line reads {first[:60]!r}"
    return problem(
        "input.unknown_format",
        f"the input has no format that is known here: {what}",
        hint=f"what is read: {describe(readable)}",
    )


def describe(names: Collection[str]) -> str:
    """What the named formats are, for a sentence."""
    return ", ".join(item.what for item in FORMATS if item.name in names)
