"""Files that people drop onto the page: good ones, bad ones, and ones that would like to be markup."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from dtir_app.gallery import examples
from playwright.sync_api import Browser, Page, expect

from tests.helpers.browser import PageWatch, bokeh_px, wait_until
from tests.helpers.explorer import Explorer
from tests.helpers.traces import kept
from tests.ui.looking import digest, drop, node_at, open_program, rows, selected, visit, wait_for_graph

Server = Callable[..., Explorer]

GOOD = b"""HloModule dropped, num_partitions=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  p = f32[8]{0} parameter(0)
  n = f32[8]{0} negate(p)
  ROOT r = f32[8]{0} all-reduce(n), replica_groups={{0,1,2,3}}, to_apply=sum, channel_id=1, use_global_device_ids=true
}
"""
MARKUP = "<img src=x onerror=alert(1)>"


def test_a_dropped_program_is_opened(page: Page, server: Server) -> None:
    visit(page, server(fresh=True))
    drop(page, "dropped.hlo", GOOD)
    expect(page.get_by_test_id("program-name")).to_have_text("dropped")
    expect(page.get_by_test_id("notice")).to_contain_text("dropped.hlo is open")
    expect(page.get_by_test_id("fact-communication")).to_have_text("1")
    page.get_by_test_id("program-menu").click()
    expect(page.get_by_test_id("program-dropped.hlo")).to_contain_text("open")


def test_traces_of_all_ranks_dropped_together_are_one_program(page: Page, server: Server) -> None:
    visit(page, server(fresh=True))
    payload = [
        {"name": path.name, "mimeType": "application/json", "buffer": path.read_bytes()}
        for path in kept("desync_deadlock")
    ]
    page.locator("input[type=file]").set_input_files(payload)
    expect(page.get_by_test_id("notice")).to_contain_text("desync_deadlock (4 ranks) is open")
    expect(page.get_by_test_id("program-name")).to_have_text("desync_deadlock")


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("empty.hlo", b" ", "input."),
        ("notes.txt", b"these are only notes\n", "input."),
        ("deep.json", b'{"a":' * 5000, "input."),
        ("cut.json", b'{"$type": "blueprinting.ir.distributed-task", "fields": {', "input.truncated"),
        ("bits.bin", bytes(range(256)) * 20, "input."),
    ],
)
def test_a_bad_file_is_a_message_and_nothing_else_changes(
    page: Page, server: Server, name: str, data: bytes, code: str
) -> None:
    open_program(page, server(), "faults")
    page.get_by_test_id("program-menu").click()
    drop(page, name, data)
    notice = page.get_by_test_id("notice")
    expect(notice).to_contain_text(f"{name} could not be opened.")
    expect(notice).to_contain_text(code)
    page.get_by_test_id("notice-close").click()
    page.get_by_test_id("gallery-close").click()
    expect(page.get_by_test_id("program-name")).to_have_text("parallel_mlp_with_faults")
    page.keyboard.press("]")
    expect(selected(page)).to_have_text("add_bias")


def test_after_a_bad_file_a_good_one_opens_and_others_are_not_disturbed(
    page: Page, browser: Browser, server: Server, page_watch: PageWatch
) -> None:
    explorer = server()
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page_watch.attach(context)
    other = context.new_page()
    open_program(other, explorer, "ulysses")
    visit(page, explorer)
    drop(page, "bad.hlo", b"HloModule x\nENTRY e {\n  a = f32[2 broken\n}\n")
    expect(page.get_by_test_id("notice")).to_contain_text("bad.hlo could not be opened")
    other.keyboard.press("c")
    expect(selected(other)).to_have_text("all_to_all.12")
    drop(page, "faults.yaml", next(item.path for item in examples() if item.name == "faults").read_bytes())
    expect(page.get_by_test_id("program-digest")).to_have_text(digest("faults")[:8])
    context.close()


def test_names_that_are_markup_stay_text(page: Page, server: Server) -> None:
    """Wherever a name is shown: overview, outline, tables, inspector, graph, tooltip, mesh, shard map, address, download."""
    text = next(item.path for item in examples() if item.name == "faults").read_text(encoding="utf-8")
    quoted = f'"{MARKUP}"'
    for name in ("sum_tp", "biased", "x"):
        text = text.replace(f"id: {name},", f'id: "{MARKUP}{name}",').replace(f"[{name}]", f'["{MARKUP}{name}"]')
    text = text.replace("[x, w1", f'["{MARKUP}x", w1').replace("name: parallel_mlp_with_faults", f"name: {quoted}")
    visit(page, server())
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    drop(page, f"{MARKUP}.yaml".replace("/", "-"), text.encode())
    expect(page.get_by_test_id("program-name")).to_have_text(MARKUP)
    page.get_by_test_id("table-tab-tasks").click()
    rows(page, "tasks").filter(has_text=f"{MARKUP}sum_tp").click()
    expect(selected(page)).to_have_text(f"{MARKUP}sum_tp")
    page.get_by_test_id("view-graph").click()
    wait_for_graph(page)
    page.mouse.move(*bokeh_px(page, "graph", *node_at(page, f"{MARKUP}sum_tp")))
    wait_until(page, "[...document.querySelectorAll('*')].length > 0")
    page.get_by_test_id("view-mesh").click()
    expect(page.get_by_test_id("mesh-title")).to_have_text(f"all-reduce {MARKUP}sum_tp")
    page.get_by_test_id("view-tensor").click()
    expect(page.get_by_test_id("tensor-name-before")).to_have_text(f"{MARKUP}biased")
    images = page.evaluate(
        """() => { let count = 0; const walk = (root) => { for (const node of root.querySelectorAll('*')) {
          if (node.shadowRoot) walk(node.shadowRoot);
          if (node.tagName === 'IMG' && node.getAttribute('src') === 'x') count += 1; } }; walk(document); return count; }"""
    )
    assert images == 0
    assert dialogs == []
