"""Import of MLIR text in the dialects that carry sharded programs: StableHLO, MHLO, CHLO, Shardy (sdy) and MPMD.

| module | what it does |
|---|---|
| `text` | comments, parts between ``// -----``, names of places |
| `scan` | the structure of the text: operations, regions, blocks, aliases; knows no dialect |
| `syntax` | the records of that structure |
| `views` | one operation: operands, attributes, types, in generic and pretty form |
| `types`, `values`, `literals`, `locations` | the small languages inside |
| `sdy`, `gspmd`, `shardings` | meshes and shardings |
| `translate`, `ops_*` | operations to the instructions that the HLO importer lowers |
| `scope`, `stages` | Shardy's own communication as tasks |
| `check*` | what Shardy's verifier demands |
| `importer` | all of it: text to programs |

No MLIR library is needed: the reader is our own. Sources of the grammar: the public MLIR language reference, the StableHLO
specification and Shardy's documentation (openxla/stablehlo, openxla/shardy).
"""
