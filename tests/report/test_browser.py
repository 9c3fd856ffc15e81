"""The page in a real browser, where there is one: nothing sticks out, and what is picked shows."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.report.whole import WHOLE, deep

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# What is wider than the window, but for what scrolls by itself, and words that are cut off.
_MEASURE = """
<script>
const found = [];
const root = document.documentElement;
if (root.scrollWidth > root.clientWidth) found.push(`page: ${root.scrollWidth}`);
for (const part of document.querySelectorAll("section, .tile, p, h1, h2, h3, pre, .facts td")) {
  if (part.scrollWidth > part.clientWidth + 1) found.push(part.className || part.tagName);
}
for (const table of document.querySelectorAll(".scroll")) {
  const wide = table.scrollWidth > table.clientWidth + 1;
  if (innerWidth > 1000 && wide) found.push("table: " + table.scrollWidth);
}
const zoom = document.querySelector(".zoom");
zoom.querySelector("[data-zoom='2']").click();
const view = document.querySelector(".view");
if (Math.abs(view.scrollWidth - 2 * view.clientWidth) > 2) found.push("zoom");
zoom.querySelector("[data-zoom='0']").click();
if (view.scrollWidth > view.clientWidth + 1) found.push("all");
// A step that is picked in the timeline is marked in the table, and described.
const box = document.querySelector(".steps [data-step]"), panel = document.querySelector(".picked");
box.click();
const rows = [...document.querySelectorAll("table.layers tbody tr")];
const marked = rows.filter((row) => row.classList.contains("on"));
if (marked.length !== 1 || marked[0].dataset.step !== box.dataset.step) found.push("not marked");
if (panel.hidden || !panel.textContent.includes(box.textContent)) found.push("not described");
panel.querySelector("button").click();
if (!panel.hidden || document.querySelector(".on")) found.push("not closed");
// The longest layer comes first when the cycles' heading is picked.
const heads = [...document.querySelectorAll("table.layers thead th")];
const column = heads.findIndex((head) => head.textContent.trim() === "cycles");
heads[column].click();
const values = [...document.querySelectorAll("table.layers tbody tr")]
  .map((row) => Number(row.cells[column].textContent.replace(/,/g, "")));
if (values.some((value, i) => i && value > values[i - 1])) found.push("not sorted");
document.title = "measured: " + JSON.stringify(found);
</script></body>
"""


@pytest.mark.parametrize("width", [390, 1280, 1920])
@pytest.mark.parametrize("name", ["whole", "deep"])
def test_nothing_sticks_out(name: str, width: int, tmp_path: Path) -> None:
    browser = next((found for each in _BROWSERS if (found := shutil.which(each))), None)
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(_BROWSERS)} is installed")
    path = (WHOLE if name == "whole" else deep(4, 12, 3)).save(tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("</body>", _MEASURE), encoding="utf-8")
    command = [
        browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={width},1000",
        f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    title = re.search(r"<title>measured: (.*?)</title>", done.stdout)
    if title is None:
        pytest.skip(f"{browser} does not start here: {done.stderr.strip()[-200:]}")
    assert title[1] == "[]"
