"""File and line of failures that runners write without a place, found in their stack traces."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.results.junit.failure_places import locate_failures
from ci_agent_eval.results.junit.reader import read_junit
from tests.tables import each_row, read_sections, write_sections

FIXTURES = Path(__file__).parents[3] / "fixtures/junit"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the suites whose failures the files hold."""
    folder = tmp_path_factory.mktemp("suites")
    write_sections(FIXTURES / "suites.txt", folder)
    return folder / "failing"


def test_failures_of_runners_have_titles_messages_and_places(golden, shop: Path) -> None:
    lines = []
    for name, text in read_sections(FIXTURES / "failing.txt").items():
        lines.append(name.removesuffix(".xml"))
        found = locate_failures(read_junit(io.BytesIO(text.encode())).failing, shop)
        lines += [f"  {one.title}\n    {one.file}:{one.line}\n    {one.message}" for one in found]
    text = "\n".join(lines)
    golden("junit/places.txt", f"{text}\n")


TRACES = {
    "dotnet": ("   at Shop.CartTest.Once() in C:\\a\\shop\\tests\\CartTest.cs:line 12", 12),
    "rust": ("thread 'cart::once' panicked at tests/CartTest.rs:7:5:\nassertion failed", 7),
    "ruby": ("./tests/CartTest.rb:9:in `block (2 levels) in <top (required)>'", 9),
    "php": ("/app/tests/CartTest.php:31", 31),
    "go": ("=== RUN T\n    CartTest.go:2: log\n    CartTest.go:6: no\n--- FAIL: T", 6),
    "bats": ("(in test file tests/CartTest.bats, line 3)\n  `false' failed", 3),
    "msbuild": ("tests/CartTest.cpp(44): error: Value of: total", 44),
}


@each_row("language", TRACES)
def test_trace_of_a_language_leads_to_its_line(language: str, tmp_path: Path) -> None:
    trace, line = TRACES[language]
    names = [
        f"tests/CartTest.{ending}" for ending in ("cs", "rs", "rb", "php", "cpp", "go", "bats")
    ]
    _write_files(tmp_path, *names)

    (found,) = locate_failures([_build_case(trace)], tmp_path)

    assert found.file in names
    assert found.line == line


PYTHON = """Traceback (most recent call last):
  File "/app/tests/test_cart.py", line 3, in test
  File "/app/shop/cart.py", line 5, in total
  File "/usr/lib/python3.12/decimal.py", line 9, in add
"""
LIBRARY = "/usr/local/go/src/testing/testing.go:5 +0x1\n at /app/node_modules/lib/index.js:2:3"


@each_row(
    ("trace", "files", "place"),
    [
        # below a shortened package
        (
            "\tat com.acme.cart.CartTest.once(CartTest.kt:8)",
            "src/test/kotlin/cart/CartTest.kt",
            ("src/test/kotlin/cart/CartTest.kt", 8),
        ),
        # The innermost frame of Python comes last.
        (PYTHON, "shop/cart.py tests/test_cart.py", ("shop/cart.py", 5)),
        # of one name
        ("    cart_test.go:3: wrong", "a/cart_test.go b/cart_test.go", (None, None)),
        (LIBRARY, "testing/testing.go lib/index.js", (None, None)),
        # The checkout of the runner is known without its files.
        ("at /home/runner/work/shop/shop/web/cart.test.js:5:52", "", ("web/cart.test.js", 5)),
    ],
)
def test_a_trace_leads_to_a_file_of_the_repository_or_nowhere(
    tmp_path: Path, trace: str, files: str, place: tuple[str | None, int | None]
) -> None:
    _write_files(tmp_path, *files.split())
    assert _find_place(_build_case(trace), tmp_path) == place


def test_place_that_the_file_states_stays(tmp_path: Path) -> None:
    _write_files(tmp_path, "web/cart.test.js", "other.js")
    case = _build_case("at other.js:5:52")._replace(file="web/cart.test.js", line=3)

    assert _find_place(case, tmp_path) == ("web/cart.test.js", 3)


@given(text=st.text(alphabet="at./\\:()\"' ,lineC9jsgopy-\n$<>", max_size=400))
def test_any_text_gives_a_file_of_the_repository_or_none(shop: Path, text: str) -> None:
    file, line = _find_place(_build_case(text), shop)

    assert file is None or (shop / file).is_file()
    assert line is None or line >= 1


def _find_place(case: JUnitCase, root: Path) -> tuple[str | None, int | None]:
    (found,) = locate_failures([case], root)
    return found.file, found.line


def _build_case(detail: str) -> JUnitCase:
    return JUnitCase("", "once", "failed", "wrong", detail)


def _write_files(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
