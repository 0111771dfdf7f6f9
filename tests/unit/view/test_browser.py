"""The page of `strata view` in a headless browser: tabs, clicks on values, steps and loops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import compiler
from compiler.view.collect import page_of_kernel, page_of_schedule
from compiler.view.page import page
from tests.pages import BROWSER, Browser
from tests.programs import matmul
from tests.sample import all_asked
from tests.unit.view.test_view import net, product_page, script, total

pytestmark = pytest.mark.skipif(BROWSER is None or not all_asked(), reason="no chromium, or not all tests")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    refused = page_of_schedule(total().original, script(total(), "sched.parallel %k"))
    function = matmul(64, 64, 64, name="mm", output="C")
    placed = page_of_kernel(compiler.build(function, threads=1, schedule="auto"), program=function)
    (folder / "placed.html").write_text("".join(page(placed)))
    for name, shown in {"mm": product_page(), "refused": refused, "net": page_of_kernel(net())}.items():
        (folder / f"{name}.html").write_text("".join(page(shown)))
    return folder


def test_a_click_on_a_value_marks_its_definition_and_uses(browser: Browser, folder: Path) -> None:
    document = browser.show(folder / "mm.html", "tab=passes&stage=6", '.code [data-key="k.1"]')
    marked = re.findall(r'class="v (defines|uses)" data-key="([^"]+)"', document)
    assert {key for _, key in marked} == {"k.1"} and {kind for kind, _ in marked} == {"defines", "uses"}
    assert re.search(r"Value <code>k\.1</code>.*apply-schedule \d.*loop-to-low \d", document)
    assert 'class="line old"' in document and 'class="line new"' in document
    document = browser.show(folder / "mm.html", "tab=passes&stage=6&value=k.1", '.code [data-key="k.1"]')
    assert "Value <code>" not in document  # a second click ends it


def test_a_numbered_value_is_one_of_its_text_only(browser: Browser, folder: Path) -> None:
    document = browser.show(folder / "mm.html", "tab=passes&stage=4", ".sides section:last-child [data-key$=':0']")
    assert set(re.findall(r'class="v (?:defines|uses)" data-key="([^"]+)"', document)) == {"apply-schedule:0"}


def test_a_click_on_the_number_of_a_line_marks_its_place(browser: Browser, folder: Path) -> None:
    document = browser.show(folder / "placed.html", "tab=passes&stage=4", ".sides section:last-child i[data-place]")
    assert 'class="line new here"' in document and re.search(
        r"Of <code>\S+\.py:\d+</code>.*te \d+.*assembly \d+", document
    )


@pytest.mark.parametrize("width", [420, 1500])
def test_equal_lines_are_folded_until_a_click(browser: Browser, folder: Path, width: int) -> None:
    folded = browser.show(folder / "mm.html", "tab=passes&stage=7", width=width)
    opened = browser.show(folder / "mm.html", "tab=passes&stage=7", ".fold button", width=width)
    assert "equal lines" in folded and opened.count('class="line') > folded.count('class="line')
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


TABS = {
    "passes": ["te-to-loop", "loop.for"],
    "nest": ["vectorized", "KiB"],
    "script": ["get_block", "step 1 of"],
    "memory": ["One iteration of", "fits L", "<rect"],
    "code": ["an iteration, bound by", "assembly"],
    "proof": ["Equations of the original", "add over k of", "holds"],
}


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_shows_something_at_any_width(browser: Browser, folder: Path, tab: str) -> None:
    for width in (420, 1500):
        document = browser.show(folder / "mm.html", f"tab={tab}", width=width)
        assert 'aria-selected="true"' in document
        for word in TABS[tab]:
            assert word in document.partition("<main>")[2].partition("</main>")[0]
        assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_a_loop_that_is_chosen_selects_its_memory(browser: Browser, folder: Path) -> None:
    document = browser.show(folder / "mm.html", "tab=nest", ".nest .loop .loop .head", "main .chip")
    assert re.search(r'<option value="\d+" selected="">', document) and "One iteration of" in document


def test_a_refused_script_opens_at_its_witness(browser: Browser, folder: Path) -> None:
    document = browser.show(folder / "refused.html", "")
    assert "first instance" in document and "m = 0, k = 1" in document and "Questions to isl" in document
    assert "step 1 of 3" in browser.show(folder / "refused.html", "", ".step")


def test_groups_are_parsed_when_they_are_chosen(browser: Browser, folder: Path) -> None:
    document = browser.show(folder / "net.html", "theme=dark", ".parts button:nth-child(2)")
    assert 'data-theme="dark"' in document and re.search(r'aria-pressed="true"><b>group_\d', document)
    assert browser.evaluate("parts.size") == 2
