"""A tensor-parallel layer whose all_reduce was forgotten: what both judges say of it, and of the mended program.

python examples/forgotten_all_reduce.py
"""

from __future__ import annotations

from dtir.importers.yaml import read_programs
from dtir.ir import DistributedTaskIR
from dtir.verify import verify

LAYER = """
schema: dtir-program/1
name: row-parallel layer
mesh: {axes: [[dp, 2], [tp, 2]]}
values:
- {id: x, shape: [8, 6], dims: [[dp], [tp]]}
- {id: w, shape: [6, 4], dims: [[tp], []]}
%s
"""
FORGOTTEN = """
- {id: y, shape: [8, 4], dims: [[dp], []]}
tasks:
- {id: matmul, kind: local, op: matmul, in: [x, w], out: [y]}
inputs: [x, w]
outputs: [y]
"""
MENDED = """
- {id: p, shape: [8, 4], dims: [[dp], []], partial: {tp: sum}}
- {id: y, shape: [8, 4], dims: [[dp], []]}
tasks:
- {id: matmul, kind: local, op: matmul, in: [x, w], out: [p]}
- {id: reduce, kind: collective, coll: all_reduce, in: [p], out: [y], axes: [tp], reduction: sum}
inputs: [x, w]
outputs: [y]
"""


def program(rest: str) -> DistributedTaskIR:
    """The program of an authoring text."""
    found = read_programs(LAYER % rest.strip())[0]
    if found.program is None:
        raise SystemExit("\n".join(item.render() for item in found.diagnostics))
    return found.program


def main() -> None:
    """Judge both variants with both judges."""
    for title, rest in (("forgotten", FORGOTTEN), ("mended", MENDED)):
        report = verify(program(rest), judges=("static", "value"))
        print(f"{title}: {'ok' if report.ok else 'not valid'}")
        for item in report.errors:
            print("  " + item.render())


if __name__ == "__main__":
    main()
