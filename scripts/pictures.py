"""pictures.py: make the pictures of docs/pictures anew, in the Chromium of this machine.

The report and the comment are what `agent-eval report` leaves for the results that
`pictures_data.py` writes; further comments are golden ones. In no golden comment does anything
but code blocks scroll sideways, on a desktop or on a phone.

Comments are rendered as GitHub does: only code blocks and tables may scroll sideways. A picture has
256 colours: of a page of text nobody sees it, and it is half as large. Chromium reads the picture
(`getImageData`), NumPy picks the colours, and the PNG is written here: https://www.w3.org/TR/png-3/,
colour type 3.
"""

from __future__ import annotations

import base64
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from markdown_it import MarkdownIt
from playwright.sync_api import Browser, FloatRect, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/pictures"
LARGEST = 200_000
"""Bytes of a picture; the repository keeps every version of it."""

PADDING = 24

COMMENTS = ROOT / "tests/golden/comments/markdown.md"
SHOWN_COMMENTS = {"1-green-cheaper-slower", "10-three-regressions", "14-prompt-changed"}
"""The golden comments that docs/comment.md shows."""
DESKTOP, PHONE = 860, 358
"""Widths of a comment in pixels."""

SETTINGS = """
suite = "support-desk"
[gate]
max_error_rate = 0.05
[compare]
baseline = "main"
max_cost_increase = 0.25
[budgets]
total_cost_usd = 0.5
total_tokens = {limit = 100000, hard = false}
"""


def main() -> int:
    """Make every picture; exit status 1 where one is too large or there is no browser."""
    found = find_browser()
    if found is None:
        print("pictures.py: there is no Chromium here; scripts/chromium installs it")
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, open_browser(found) as browser:
        report = _report(Path(name))
        _report_picture(browser, report / "report.html")
        picture_comment(browser, report / "comment.md", PICTURES / "comment.png", DESKTOP)
        problems = _picture_golden_comments(browser, Path(name))
        for picture in sorted(PICTURES.glob("*.png")):
            shrink(browser, picture)
    print("".join(f"{problem}\n" for problem in problems), end="")
    return _measure() or int(bool(problems))


def _picture_golden_comments(browser: Browser, folder: Path) -> list[str]:
    """Make the pictures of the shown comments, and return what scrolls sideways in any."""
    problems: list[str] = []
    _, *parts = re.split(r"^===== (.+) =====\n", COMMENTS.read_text("utf-8"), flags=re.MULTILINE)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        comment = folder / f"{name}.md"
        comment.write_text(text, encoding="utf-8")
        picture = (PICTURES / "comments" if name in SHOWN_COMMENTS else folder) / f"{name}.png"
        problems += picture_comment(browser, comment, picture, DESKTOP)
        problems += picture_comment(browser, comment, folder / f"phone-{picture.name}", PHONE)
    return problems


def _report(folder: Path) -> Path:
    """Leave the report of the pictures' results in a folder of its own."""
    (folder / "agent-eval.toml").write_text(SETTINGS, encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "scripts/pictures_data.py", folder], check=True)
    command = [sys.executable, "-m", "ci_agent_eval", "report", "--results", "results.json"]
    done = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
    if done.returncode != 1:
        raise SystemExit(f"pictures.py: the report ended with {done.returncode}, expected 1")
    return folder / "agent-eval-report"


def _report_picture(browser: Browser, file: Path) -> None:
    """Show the first screen."""
    with open_page(browser, file, "light", 1180, 3200) as page:
        height = _bottom(page, ".cause-board")
        page.screenshot(path=PICTURES / "report.png", clip=_clip(0, height, 1180))


def _clip(top: float, height: float, width: float) -> FloatRect:
    return {"x": 0, "y": top, "width": width, "height": height}


def _bottom(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    if box is None:
        raise SystemExit(f"pictures.py: the page shows no {selector}")
    return box["y"] + box["height"] + PADDING


def _measure() -> int:
    sizes = {path.name: path.stat().st_size for path in sorted(PICTURES.glob("*.png"))}
    for name, size in sizes.items():
        print(f"docs/pictures/{name}: {size // 1000} kB")
    too_large = [name for name, size in sizes.items() if size > LARGEST]
    if too_large:
        print(f"pictures.py: over {LARGEST // 1000} kB: {', '.join(too_large)}")
    return 1 if too_large else 0


STYLE = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 12px 16px; box-sizing: border-box; background: #ffffff; color: #1f2328;
  font: 14px/1.5 Inter, system-ui, "Noto Color Emoji", sans-serif; overflow-wrap: break-word; }
h3 { margin: 0 0 12px; font-size: 17.5px; line-height: 1.25; }
p, ul, pre, table, details { margin: 0 0 12px; }
ul { padding-left: 24px; }
a { color: #0969da; text-decoration: none; }
table { display: block; width: max-content; max-width: 100%; overflow: auto;
  border-collapse: collapse; font-size: 12px; }
th, td { padding: 4px 8px; border: 1px solid #d1d9e0; text-align: left; }
[style*="right"] { text-align: right; }
code { padding: 2px 4px; border-radius: 6px; background: #818b981f; font-size: 85%;
  font-family: "JetBrains Mono", "DejaVu Sans Mono", monospace; white-space: break-spaces; }
summary { cursor: pointer; }
pre { padding: 10px; border-radius: 6px; background: #f6f8fa; overflow: auto; }
pre code { padding: 0; background: none; white-space: pre; }
.minus { background: #ffebe9; }
.plus { background: #dafbe1; }
.part { color: #6639ba; }
</style><body>"""

COLOUR = """() => {
  for (const code of document.querySelectorAll(".language-diff")) {
    code.replaceChildren(...code.textContent.trimEnd().split("\\n").map((line) => {
      const shown = document.createElement("div");
      shown.className = { "-": "minus", "+": "plus", "@": "part" }[line[0]] ?? "";
      shown.textContent = line;
      return shown;
    }));
  }
}"""
"""What GitHub does with a diff."""

TOO_WIDE = """() => {
  for (const folded of document.querySelectorAll("details")) { folded.open = true; }
  const wide = [...document.querySelectorAll("body, body *")].filter(
    (one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && !one.closest("pre"));
  const shown = wide.map((one) => `<${one.tagName.toLowerCase()}> ${one.textContent.slice(0, 60)}`);
  for (const folded of document.querySelectorAll("details:not([open=''])")) { folded.open = false; }
  return shown;
}"""
"""The elements that scroll sideways with every fold open, apart from code blocks."""


def render_page(comment: str) -> str:
    """Return a comment's page."""
    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return STYLE + markdown.render(comment)


def picture_comment(browser: Browser, comment: Path, picture: Path, width: int) -> list[str]:
    """Make the picture of a comment, and return what scrolls sideways in it."""
    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder) / "comment.html"
        shown.write_text(render_page(comment.read_text(encoding="utf-8")), encoding="utf-8")
        with open_page(browser, shown, "light", width, 200) as page:
            page.evaluate(COLOUR)
            page.screenshot(path=picture, full_page=True)
            shrink(browser, picture)
            return [f"{picture.name}: {one} scrolls" for one in find_too_wide(page)]


def find_too_wide(page: Page) -> list[str]:
    """Return the elements of a page that scroll sideways, apart from code blocks."""
    found: list[str] = page.evaluate(TOO_WIDE)
    return found


FONTS = """
body { font-family: Inter, system-ui, sans-serif !important; }
code, pre, .code, .tool, .place { font-family: "JetBrains Mono", monospace !important; }
"""


def find_browser() -> str | None:
    """Return the path of this machine's Chromium; None: there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)


@contextmanager
def open_browser(path: str) -> Iterator[Browser]:
    """Start Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def open_page(browser: Browser, file: Path, scheme: str, width: int, height: int) -> Iterator[Page]:
    """Open a file in a window of its own."""
    # The fonts stand for those of a reader's system; the page itself allows no style but its own.
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": height},
        bypass_csp=True,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(file.as_uri())
    page.add_style_tag(content=FONTS)
    page.evaluate("document.fonts.ready")
    yield page
    context.close()


COLOURS = 256
_PIXELS = """async (source) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, image.width, image.height).data;
  const reader = new FileReader();
  reader.readAsDataURL(new Blob([pixels]));
  await new Promise((done) => reader.addEventListener("load", done));
  return [image.width, image.height, reader.result.split(",")[1]];
}"""


def shrink(browser: Browser, picture: Path) -> None:
    """Write a PNG anew with as many colours as a palette holds; all others become the nearest."""
    page = browser.new_page()
    source = base64.b64encode(picture.read_bytes()).decode("ascii")
    width, height, data = page.evaluate(_PIXELS, f"data:image/png;base64,{source}")
    page.close()
    pixels = np.frombuffer(base64.b64decode(data), np.uint8).reshape(-1, 4)[:, :3]
    found, places, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    palette = _palette(found.astype(int), counts)
    nearest = [_nearest(palette, colour) for colour in found.astype(int)]
    rows = np.array(nearest, np.uint8)[places.reshape(-1)].reshape(height, width)
    picture.write_bytes(_png(rows, palette))


def _palette(found: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the commonest colours, and one after the other what is worst shown by those so far."""
    chosen = list(np.argsort(-counts, kind="stable")[: COLOURS // 2])
    distances = np.min([((found - found[one]) ** 2).sum(axis=1) for one in chosen], axis=0)
    while len(chosen) < min(COLOURS, len(found)):
        chosen.append(int((distances * np.sqrt(counts)).argmax()))
        distances = np.minimum(distances, ((found - found[chosen[-1]]) ** 2).sum(axis=1))
    return found[chosen].astype(np.uint8)


def _nearest(palette: np.ndarray, colour: np.ndarray) -> int:
    return int(((palette.astype(int) - colour) ** 2).sum(axis=1).argmin())


def _png(rows: np.ndarray, palette: np.ndarray) -> bytes:
    height, width = rows.shape
    # A zero before each row: it is not filtered.
    raw = np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


if __name__ == "__main__":
    sys.exit(main())
