from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from dtir.importers.detect import FORMATS, HEAD_BYTES, recognise, refuse_head, unknown
from tests.helpers.shared import shared_params

UPSTREAM = b'{"$type":"blueprinting.ir.snapshot","fields":{}}'


def name_of(data: bytes) -> str:
    found = recognise(data)
    return found.name if found else "unknown"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (UPSTREAM, "upstream"),
        (b'{"fields":{"x":"' + b"y" * 3 * HEAD_BYTES + b'"},"$type":"blueprinting.ir.snapshot"}', "upstream"),
        (b'  {\n "fields": {},\n "$type" :  "blueprinting.ir.snapshot"\n}\n', "upstream"),
        (b'{"$type":"blueprinting.ir.distributed-task","fields":{}}', "upstream"),
        (b'{"$type":"other","x":{"$type":"blueprinting.ir.snapshot"}}', "unknown"),
        (b"HloModule m, num_partitions=2\n\nENTRY e {\n  ROOT a = f32[] parameter(0)\n}", "hlo"),
        (b"// a comment\n\n/* another */ HloModule m\n", "hlo"),
        (b"e {\n  a = f32[2] parameter(0)\n}", "hlo"),
        (b"%f (x: f32[2], y: f32[2]) -> f32[2] {\n  %x = f32[2]{0} parameter(0)\n}", "hlo"),
        (b"ENTRY %main.4 {\n  ROOT %x = f32[2]{0} parameter(0)\n}", "hlo"),
        (b"module @jit_f {\n  func.func public @main() {\n  }\n}", "stablehlo"),
        (b'// RUN: sdy_opt %s\n\nsdy.mesh @mesh = <["x"=2]>\n', "stablehlo"),
        (b"#loc = loc(unknown)\nmodule {\n}", "stablehlo"),
        (b"func.func @f() { return }", "stablehlo"),
        (b"ML\xefR\x00\x01", "mlir-bytecode"),
        (b"PK\x03\x04....", "zip"),
        (b"\x80\x04\x95", "pickle"),
        (b"\x07\x0a\x050.0.4", "chakra"),
        (b"\xda\xd0\x01\x12\x1d\x0a\x06schema\xea\x01\x121.0.2", "chakra"),
        (b"x\n\x05hello", "unknown"),
        (b'{"schema": "dtir.distributed-task", "version": "1.0.0"}', "dtir"),
        (b'{"digest":"00","payload":{"x":"' + b"y" * 3 * HEAD_BYTES + b'"},"schema":"dtir.distributed-task"}', "dtir"),
        (b'{"schema":"dtir.run-record","version":"1.0.0"}', "run-record"),
        (b'{"schema":"dtir.machine-profile","version":"1.0.0"}', "machine-profile"),
        (b'{"schema":"dtir.binding","version":"1.0.0"}', "binding"),
        (b'{"traceEvents": [], "displayTimeUnit": "ms"}', "kineto"),
        (b'{"schema": "1.0.1", "nodes": [{}]}', "pytorch-et"),
        (b"schema: dtir-program/1\nname: x\n", "yaml"),
        (b"hello world", "unknown"),
        (b"[1, 2]", "unknown"),
        (b"\x89PNG\r\n\x1a\n\x00", "unknown"),
        (b"x = { y = 1 }", "unknown"),
    ],
)
def test_formats_by_content(data: bytes, name: str) -> None:
    assert name_of(data) == name


def test_format_names_are_unique() -> None:
    assert len({item.name for item in FORMATS}) == len(FORMATS)


def test_keys_inside_strings_and_deeper_objects_do_not_count() -> None:
    data = json.dumps({"note": '"$type":"blueprinting.ir.snapshot"', "inner": {"traceEvents": []}}).encode()
    assert name_of(data) == "unknown"


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"\xef\xbb\xbf{}", "input.encoding"),
        (b"\xff\xfeH\x00l\x00", "input.encoding"),
        (b"ML\xefR", "input.unsupported_format"),
        (b"\x80\x04\x95", "input.unsupported_format"),
        (b"\x00\x01\x02", "input.unknown_format"),
    ],
)
def test_what_is_refused_from_its_first_bytes(head: bytes, code: str) -> None:
    found = refuse_head(head, ["dtir", "hlo"])
    assert found is not None
    assert [item.code for item in found] == [code]


@pytest.mark.parametrize("head", [UPSTREAM, b"HloModule m", b"{", b"caf\xe9", b"\xc3"])
def test_what_is_read_on(head: bytes) -> None:
    assert refuse_head(head, ["dtir", "hlo"]) is None


def test_an_unknown_input_is_described_and_the_readable_formats_are_named() -> None:
    (found,) = unknown(b'{"alpha": 1, "beta": 2}', ["hlo"])
    assert "alpha, beta" in found.message
    assert found.hint == "what is read: an HLO module"
    (found,) = unknown(b"\x1b[2Jhello\nworld", ["hlo"])
    assert r"\x1b[2Jhello" in found.message
    assert "world" not in found.message


def content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.mark.parametrize("path", shared_params("upstream/*.json*"))
def test_every_real_snapshot_is_recognised(path: Path) -> None:
    if path.name == "EXPECTED.json":
        assert name_of(content(path)) == "unknown"
    else:
        assert name_of(content(path)) == "upstream"


@pytest.mark.parametrize("path", shared_params("inputs/**/*.hlo*"))
def test_every_real_hlo_file_is_recognised(path: Path) -> None:
    assert name_of(content(path)) == "hlo"


@pytest.mark.parametrize("path", shared_params("inputs/**/*.mlir"))
def test_every_real_mlir_file_is_recognised(path: Path) -> None:
    assert name_of(content(path)) == "stablehlo"


@pytest.mark.parametrize("path", shared_params("inputs/chakra/**/*.et"))
def test_every_real_chakra_file_is_recognised(path: Path) -> None:
    assert name_of(content(path)) == "chakra"
