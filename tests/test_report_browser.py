"""The report in a real browser: sorting, filtering, opening; no request, no error, no script of a model's, no barrier.

Needs Playwright and an installed Chromium (``CHROMIUM`` names it); left out where there is none.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import compare
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.run_record import read_record
from host_runs import Finished
from records import MISS, record, two_in_three
from test_report_html import HOSTILE, hostile_run, page_of

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; set CHROMIUM to its path")

QUIET = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield running
        running.close()


class Opened:
    """A page with the report in it, and what it did that it should not."""

    def __init__(self, browser: Any, file: Path, size: str, scheme: str = "light") -> None:
        width, height = SIZES[size]
        self.page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        self.page.goto(file.as_uri())

    def is_quiet(self) -> bool:
        strange = [url for url in self.requests if not url.startswith(("file:", "data:"))]
        return (
            not strange and len([url for url in self.requests if url.startswith("file:")]) == 1 and not self.complaints
        )


@pytest.fixture(scope="module")
def reports(lean: Finished, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run, a run with hostile texts, and two runs over each other."""
    folder = tmp_path_factory.mktemp("reports")
    first, second = record(dataset), record(dataset, lambda e: (MISS,) if e.row == 0 else two_in_three(e), model="new")
    pages = {
        "run": page_of([read_record(lean.run_dir)], dataset),
        "hostile": page_of([hostile_run(folder / "hostile", dataset)], dataset),
        "two": page_of([first, second], dataset, {1: compare(first, second, clusters(dataset.by_id.values()))}),
    }
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["run", "hostile", "two"])
def test_a_report_opens_without_a_request_a_complaint_or_a_page_that_is_too_wide(
    name: str, size: str, browser: Any, reports: dict[str, Path]
) -> None:
    opened = Opened(browser, reports[name], size)
    assert opened.page.locator("svg .dot, svg circle").count() > 10
    assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    opened.page.wait_for_timeout(200)
    assert opened.is_quiet(), (opened.requests, opened.complaints)
    opened.page.close()


def test_misses_are_searched_filtered_ordered_and_opened(browser: Any, reports: dict[str, Path]) -> None:
    opened = Opened(browser, reports["run"], "desktop")
    page = opened.page
    rows = page.locator("#samples details")
    everything = rows.count()
    shown = page.locator("#shown")
    assert shown.inner_text() == f"{everything} of {everything}"
    kind = page.locator("#kind option").nth(1).inner_text()
    page.select_option("#kind", kind)
    of_kind = page.locator(f'#samples details[data-kind="{kind}"]').count()
    assert 0 < of_kind < everything
    assert page.locator("#samples details:visible").count() == of_kind
    page.select_option("#kind", "")
    one = rows.first.locator("code").inner_text()
    page.fill("#search", one)
    assert 1 <= page.locator("#samples details:visible").count() < everything
    page.fill("#search", "")
    page.select_option("#sort", "kind")
    kinds = [row.get_attribute("data-kind") for row in rows.all()]
    assert kinds == sorted(kinds, key=str.casefold) or kinds == sorted(kinds)
    first = rows.first
    first.locator("summary").click()
    assert first.locator("pre").first.is_visible()
    assert opened.is_quiet()
    page.close()


def test_a_hostile_text_is_shown_as_text(browser: Any, reports: dict[str, Path]) -> None:
    opened = Opened(browser, reports["hostile"], "desktop")
    hostile = opened.page.locator('#samples details[data-subset="multiple"]').first
    hostile.locator("summary").click()
    text = hostile.inner_text()
    assert HOSTILE[:25] in text
    assert opened.page.locator("img").count() == 0
    assert opened.is_quiet()
    opened.page.close()


def test_without_javascript_everything_is_there_but_sorting_and_filtering(
    browser: Any, reports: dict[str, Path]
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(reports["run"].as_uri())
    assert not page.locator(".controls").is_visible()
    assert page.locator("#samples details").count() > 0
    page.locator("#samples summary").first.click()
    assert page.locator("#samples pre").first.is_visible()
    context.close()


def test_the_lines_that_differ_are_marked_beside_each_other(browser: Any, reports: dict[str, Path]) -> None:
    opened = Opened(browser, reports["run"], "desktop")
    row = opened.page.locator('#samples details[data-kind="value_error:string"]').first
    row.locator("summary").click()
    expected, actual = row.locator(".pair > div").all()
    assert "planted wrong value" in actual.locator("mark").first.inner_text()
    assert expected.locator("mark").count() >= 1
    boxes = [side.bounding_box() for side in (expected, actual)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    opened.page.close()


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("run", "desktop", "light"),
        ("run", "phone", "dark"),
        ("two", "desktop", "dark"),
        ("two", "phone", "light"),
        ("hostile", "phone", "light"),
    ],
)
def test_an_accessibility_check_finds_nothing_serious(
    name: str, size: str, scheme: str, browser: Any, reports: dict[str, Path]
) -> None:
    opened = Opened(browser, reports[name], size, scheme)
    if opened.page.locator("#samples").count():
        opened.page.locator("#samples summary").first.click()
    found = axe.Axe().run(opened.page).response["violations"]
    serious = [
        (problem["id"], [node["html"][:120] for node in problem["nodes"][:3]])
        for problem in found
        if problem["impact"] in ("serious", "critical")
    ]
    assert serious == []
    opened.page.close()
