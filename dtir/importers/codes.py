"""The codes of reading an input, whatever its format."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "input.not_found",
        "There is no file of that name.",
        "dtir show mlp.hol",
        "dtir show mlp.hlo",
        "check the path; a similar name in the same folder is named in the message",
    ),
    CodeEntry(
        "input.directory",
        "The path is a folder. Which of its files is meant cannot be guessed.",
        "dtir show dumps/",
        "dtir show dumps/module_0001.after_optimizations.txt",
        "name a file; several can be given",
    ),
    CodeEntry(
        "input.unreadable",
        "The operating system refuses to read the file, or its gzip data are damaged.",
        "a file without read permission; a .gz whose bytes were changed",
        "a file that can be read",
        "check the permissions, or copy the file again",
    ),
    CodeEntry(
        "input.empty",
        "The input holds nothing, or white space only: what should have written it did not.",
        "a file of 0 bytes",
        "a program",
        "check what wrote the file",
    ),
    CodeEntry(
        "input.too_large",
        "The input is larger than what is read at most, counted after decompression. The limit keeps a small archive from "
        "filling the memory.",
        "a .gz of 1 MB that unpacks to 100 GB",
        "one module of the dump",
        "cut the dump to the module in question",
    ),
    CodeEntry(
        "input.too_deep",
        "The text nests deeper than anything that a producer writes. It is refused before it is parsed, since every "
        "level costs memory.",
        "[[[[[[ ... a million times",
        "a snapshot",
        "check what wrote the file",
    ),
    CodeEntry(
        "input.too_many_items",
        "The input has more lines and commas than are read at most. It is refused before it is parsed, since every entry costs "
        "memory many times its own length then.",
        "a list of a billion zeros",
        "one module of the dump",
        "cut the dump to the module in question",
    ),
    CodeEntry(
        "input.encoding",
        "The text is not UTF-8. The message says which byte is not, and where.",
        "a file saved as UTF-16 or Latin-1",
        "the same file saved as UTF-8, without a byte order mark",
        "save the file as UTF-8",
    ),
    CodeEntry(
        "input.truncated",
        "The input ends before it is complete: brackets of JSON text are still open, or the gzip data lack their end. "
        "A part of a program is not a program.",
        "a copy that was interrupted",
        "the whole file",
        "copy or write the file again",
    ),
    CodeEntry(
        "input.unknown_format",
        "The content is of none of the formats that are known. The name of a file does not count.",
        "a picture, a log, a JSON object of some other tool",
        "an HLO module as text; a snapshot",
        "convert it to a format that is read; the hint lists them",
    ),
    CodeEntry(
        "input.unsupported_format",
        "The content is of a known format that this version does not read.",
        "a format without a reader",
        "an HLO module as text; a snapshot",
        "convert it to a format that is read; the hint lists them",
    ),
    CodeEntry(
        "jax.no_dump",
        "XLA was asked to write the text of a function around its partitioner, and wrote none: the back end has no such pass, or "
        "does not take the options.",
        "from_jax(f, x, form='spmd') on a back end without an SPMD partitioner",
        "from_jax(f, x, form='stablehlo')",
        "import another form, or dump with XLA_FLAGS and read the file",
    ),
)
