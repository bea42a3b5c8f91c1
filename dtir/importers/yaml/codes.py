"""The codes of reading and writing the YAML authoring form."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "yaml.syntax",
        "The text is no YAML: indentation, brackets or quotes do not fit. Documents before the place are still read.",
        "values: [{id: x, shape: [4, 8]",
        "values: [{id: x, shape: [4, 8]}]",
        "mend the line that the message names",
    ),
    CodeEntry(
        "yaml.limit",
        "The document nests deeper, or stands for more nodes (aliases counted as what they stand for), or names more ranks, than "
        "is read. A few lines of aliases can stand for thousand millions of nodes.",
        "a: &a [x, x]   b: &b [*a, *a]   c: &c [*b, *b]   ... forty times",
        "the document written out",
        "write the document out, or in several files",
    ),
    CodeEntry(
        "yaml.tag",
        "A tag asks the reader to make an object of a class. A program holds text, numbers, lists and mappings only, and no text ever "
        "runs code.",
        "name: !!python/object/apply:os.system [ls]",
        "name: demo",
        "remove the tag",
    ),
    CodeEntry(
        "yaml.duplicate_key",
        "A mapping holds a key twice; one of the two values would be lost.",
        "{id: x, shape: [4], shape: [8]}",
        "{id: x, shape: [8]}",
        "keep one of the two",
    ),
    CodeEntry(
        "yaml.unknown_key",
        "A key has no meaning here. One that reads like a known key is an error, since the known one is then missing; any other is kept "
        "as an attribute and a warning says so.",
        "{id: t1, kind: collective, coll: all_reduce, axess: [tp]}",
        "{id: t1, kind: collective, coll: all_reduce, axes: [tp]}",
        "use the key that the hint names, or remove it",
    ),
    CodeEntry(
        "yaml.missing_key",
        "Something that cannot be guessed is not said.",
        "{id: t1, kind: collective, coll: all_reduce, axes: [tp]}",
        "{id: t1, kind: collective, coll: all_reduce, axes: [tp], reduction: sum}",
        "add the key",
    ),
    CodeEntry(
        "yaml.type",
        "A key holds a thing of the wrong kind: a word where a list belongs, text where a number belongs.",
        "shape: 4x8",
        "shape: [4, 8]",
        "write what the message asks for",
    ),
    CodeEntry(
        "yaml.value",
        "A key holds a thing of the right kind that is not one of those allowed.",
        "reduction: summ",
        "reduction: sum",
        "use one of the values that the hint names",
    ),
    CodeEntry(
        "yaml.schema",
        "The document does not say that it is a program of this form, or says another one.",
        "schema: dtir-program/9",
        "schema: dtir-program/1",
        "begin the document with schema: dtir-program/1",
    ),
    CodeEntry(
        "yaml.operator",
        "An operator is not known and reads like a known one, or it does not take the operands or parameters it is given.",
        "{kind: local, op: enisum, in: [x, w], spec: 'bi,io->bo'}",
        "{kind: local, op: einsum, in: [x, w], spec: 'bi,io->bo'}",
        "use the operator that the hint names; one of your own is registered with register_op",
    ),
    CodeEntry(
        "yaml.unwritable",
        "The program holds something that the authoring form cannot say. Nothing is left out silently, so nothing is written.",
        "a program with a loop",
        "dtir convert --to native",
        "write a native snapshot",
    ),
)
