"""The page without a server: complete, the same every time, bounded, and free of anything that reaches out."""

from __future__ import annotations

import base64
import gzip
import json
import re

import pytest
from dtir_app.columns import open_imported
from dtir_app.exporting.page import LIMIT_BYTES, offline_page
from dtir_app.exporting.recording import Amount, selections
from dtir_app.frames.overview import communication_tasks
from dtir_app.selection import selection_text

from dtir.importers import load_bytes
from tests.app.build import example, opened_example, store_of_example


def content_of(page: str) -> dict[str, object]:
    (packed,) = re.findall(r'<script type="application/gzip" id="dtir-data">([^<]+)</script>', page)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


@pytest.fixture(scope="module")
def faults() -> str:
    return offline_page(opened_example("faults"))


def test_everything_of_a_small_program_is_in_it(faults: str) -> None:
    store, content = store_of_example("faults"), content_of(faults)
    keys = {key for key, _ in selections(store)}
    assert len(keys) == len(store.tasks) + len(store.values)
    assert set(content["details"]) == set(content["shown"]) == keys
    assert content["note"] == []
    assert [len(table["rows"]) for table in content["tables"].values()] == [3, 2, 8, 13]
    assert content["home"] == [0]
    assert len(content["graphs"]) == 1
    inspector, foot = content["details"][f"node:{store.tasks.id[4]}"]
    assert (inspector["title"], foot["title"]) == ("sum_tp", "sum_tp")
    assert content["digest"] == store.digest


def test_equal_programs_give_equal_pages(faults: str) -> None:
    assert offline_page(opened_example("faults")) == faults


def test_it_may_load_nothing_and_names_no_address(faults: str) -> None:
    assert "default-src 'none'" in faults
    shown = re.sub(r'<script type="application/gzip".*?</script>', "", faults, flags=re.DOTALL)
    addresses = set(re.findall(r"""https?://[^\s"'`)<]+""", shown)) - {"http://www.w3.org/2000/svg"}
    assert addresses == set()
    assert not re.search(r"<(?:link|img|iframe|script)[^>]+(?:src|href)=[\"'](?!data:)", shown)
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|WebSocket|sendBeacon|EventSource)\b", shown)


def test_the_orders_of_rows_are_permutations(faults: str) -> None:
    for table in content_of(faults)["tables"].values():
        for order in table["orders"].values():
            assert sorted(order) == list(range(len(table["rows"])))
        assert set(table["orders"]) == {column["key"] for column in table["columns"]}


def test_less_of_a_program_is_said_to_be_less() -> None:
    content = content_of(offline_page(opened_example("scan_layers"), amount=Amount(20, 5, 2, 30)))
    store = store_of_example("scan_layers")
    assert (len(content["details"]), len(content["shown"]), len(content["graphs"])) == (20, 5, 2)
    assert [table["total"] for table in content["tables"].values()][2:] == [len(store.tasks), len(store.values)]
    assert len(content["tables"]["tasks"]["rows"]) == 30
    said = "; ".join(content["note"])
    assert "20 of 200 tasks and tensors" in said
    assert "5 of them" in said
    assert "2 of" in said
    assert len(content["tasks"]["id"]) == len(store.tasks), "search knows every task"


def test_a_page_that_would_be_too_large_is_written_with_less() -> None:
    whole = offline_page(opened_example("halo"))
    small = offline_page(opened_example("halo"), limit_bytes=len(whole) - 1)
    assert len(small) < len(whole)
    assert content_of(small)["note"]
    used = set(re.findall(r'class=\\"(k\d+)\\"', json.dumps(content_of(small)["pictures"])))
    assert used
    assert used <= set(re.findall(r"^\.(k\d+)\{", small, re.MULTILINE)), "every look has its rule"


def test_the_most_telling_comes_first() -> None:
    store = store_of_example("fsdp")
    first = [selection for _, selection in selections(store)][: len(communication_tasks(store)) + 2]
    assert {int(task) for task in communication_tasks(store)} <= {selection.task for selection in first}
    assert selection_text(store, first[0])


def test_labels_cannot_leave_their_place() -> None:
    text = example("faults").path.read_text(encoding="utf-8")
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    renamed = text.replace("parallel_mlp_with_faults", json.dumps(hostile)).replace("sum_tp", "sum</svg><script>")
    imported = load_bytes(renamed.encode(), name="x.dtir.yaml")
    assert imported.program is not None
    page = offline_page(open_imported(imported))
    assert "alert(1)" not in re.sub(r"<title>.*?</title>", "", page)
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert len(re.findall(r"<script", page)) == 4
    assert hostile in json.dumps(content_of(page), ensure_ascii=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer_train", "llama_block"])  # the largest, and one of another format
def test_the_default_page_of_a_bundled_program_is_small_enough(name: str) -> None:
    assert len(offline_page(opened_example(name))) <= LIMIT_BYTES
