"""File and line of failures that runners write without a place, found in their stack traces."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.results.junit.failure_places import locate_failures
from ci_agent_eval.results.junit.reader import read_junit
from tests.tables import each_row

FIXTURES = Path(__file__).parents[3] / "fixtures/junit"
SHOP = FIXTURES / "suites/failing"

JEST = "web/src/cart/cart.jest.test.js"
VITEST = "web/src/cart/cart.vitest.test.mjs"
MOCHA = "web/src/cart/cart.mocha.js"
JS_SOURCE = "web/src/cart/cart.js:2"
GO_TEST = "go/cart/cart_test.go"
NOT_EQUAL = "Expected values to be strictly equal:"
NO_CODE = "a voucher needs a code"
TO_BE = "expect(received).toBe(expected) // Object.is equality"

EXPECTED = {
    # file: (title, message, place) of each failure
    "jest-junit-17.0.0": [
        ("cart applies the voucher once", f"Error: {TO_BE}", f"{JEST}:5"),
        ("cart refuses an empty voucher", f"TypeError: {NO_CODE}", JS_SOURCE),
        ("cart waits for the shop", "Error: the shop is closed", f"{JEST}:13"),
    ],
    "vitest-4.1.12": [
        (
            "src/cart/cart.vitest.test.mjs::cart > applies the voucher once",
            "expected 81 to be 90 // Object.is equality",
            f"{VITEST}:6",
        ),
        ("src/cart/cart.vitest.test.mjs::cart > refuses an empty voucher", NO_CODE, JS_SOURCE),
    ],
    "mocha-junit-reporter-2.2.1": [
        ("cart applies the voucher once", f"{NOT_EQUAL} 81 !== 90", f"{MOCHA}:6"),
        ("cart refuses an empty voucher", NO_CODE, JS_SOURCE),
        ("cart never ends", "Timeout of 20ms exceeded.", f"{MOCHA}:None"),
    ],
    "node-24.21.0": [
        ("cart::applies the voucher once", NOT_EQUAL, "node/test/cart.test.js:7"),
        ("cart::refuses an empty voucher", NO_CODE, JS_SOURCE),
    ],
    "playwright-1.65.1": [
        ("cart.spec.ts::cart › applies the voucher once", TO_BE, "web/e2e/cart.spec.ts:5"),
        ("cart.spec.ts::cart › keeps items after login", TO_BE, "web/e2e/cart.spec.ts:9"),
    ],
    "gotestsum-1.13.0": [
        ("example.com/shop/cart::TestVoucher", "total is 81, not 90", f"{GO_TEST}:10"),
        ("example.com/shop/cart::TestTable/empty_cart", "Error: Not equal:", f"{GO_TEST}:15"),
        ("example.com/shop/cart::TestTable", "Failed", "None:None"),  # only its subtest says more
        (
            "example.com/shop/cart::TestPanic",
            "panic: runtime error: index out of range [0] with length 0 [recovered, repanicked]",
            "go/cart/cart.go:5",
        ),
        ("example.com/shop/stock::TestStock", "nothing in stock", "go/stock/cart_test.go:6"),
    ],
    "go-junit-report-2.1.0": [
        ("example.com/shop/cart::TestVoucher", "total is 81, not 90", f"{GO_TEST}:10"),
        ("example.com/shop/cart::TestTable", "Failed", "None:None"),
        ("example.com/shop/cart::TestTable/empty_cart", "Error: Not equal:", f"{GO_TEST}:15"),
        ("example.com/shop/cart::TestPanic", "Failed", "None:None"),  # the trace is the package's
        ("example.com/shop/stock::TestStock", "nothing in stock", "go/stock/cart_test.go:6"),
    ],
    "surefire-3.5.4-CartTest": [
        (
            "com.acme.shop.CartTest::appliesTheVoucherOnce",
            "expected: <90> but was: <81>",
            "java/src/test/java/com/acme/shop/CartTest.java:11",
        ),
        (
            "com.acme.shop.CartTest$Empty::refusesAnEmptyVoucher",
            NO_CODE,
            "java/src/main/java/com/acme/shop/Cart.java:6",
        ),
    ],
    "unittest-xml-reporting-4.0.0": [
        ("cart_case.CartTest::test_applies_the_voucher_once", "81 != 90", "python/cart_case.py:7"),
        ("cart_case.CartTest::test_refuses_an_empty_voucher", NO_CODE, "python/cart_case.py:10"),
    ],
}


@each_row("name", EXPECTED)
def test_failures_of_a_runner_have_titles_messages_and_places(name: str) -> None:
    with (FIXTURES / f"failing/{name}.xml").open("rb") as file:
        failing = read_junit(file).failing

    found = locate_failures(failing, SHOP)

    expected = EXPECTED[name]
    assert [case.title for case in found] == [title for title, _, _ in expected]
    assert [f"{case.file}:{case.line}" for case in found] == [place for _, _, place in expected]
    for case, (_, message, _) in zip(found, expected, strict=True):
        assert (case.message or "").startswith(message)


def test_every_file_of_the_runners_is_expected() -> None:
    assert {path.stem for path in (FIXTURES / "failing").glob("*.xml")} == set(EXPECTED)


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


def test_kotlin_file_below_a_shortened_package_is_found(tmp_path: Path) -> None:
    _write_files(tmp_path, "src/test/kotlin/cart/CartTest.kt")
    case = _build_case("\tat com.acme.cart.CartTest.once(CartTest.kt:8)")

    assert _find_place(case, tmp_path) == ("src/test/kotlin/cart/CartTest.kt", 8)


def test_innermost_frame_of_a_python_traceback_comes_last(tmp_path: Path) -> None:
    _write_files(tmp_path, "shop/cart.py", "tests/test_cart.py")
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/app/tests/test_cart.py", line 3, in test\n'
        '  File "/app/shop/cart.py", line 5, in total\n'
        '  File "/usr/lib/python3.12/decimal.py", line 9, in add\n'
    )

    assert _find_place(_build_case(trace), tmp_path) == ("shop/cart.py", 5)


def test_equal_file_names_give_no_place(tmp_path: Path) -> None:
    _write_files(tmp_path, "a/cart_test.go", "b/cart_test.go")

    assert _find_place(_build_case("    cart_test.go:3: wrong"), tmp_path) == (None, None)


def test_file_of_a_library_is_no_place(tmp_path: Path) -> None:
    _write_files(tmp_path, "testing/testing.go", "lib/index.js")
    trace = "/usr/local/go/src/testing/testing.go:5 +0x1\n at /app/node_modules/lib/index.js:2:3"

    assert _find_place(_build_case(trace), tmp_path) == (None, None)


def test_checkout_of_the_runner_is_known_without_its_files(tmp_path: Path) -> None:
    case = _build_case("at /home/runner/work/shop/shop/web/cart.test.js:5:52")

    assert _find_place(case, tmp_path) == ("web/cart.test.js", 5)


def test_place_that_the_file_states_stays(tmp_path: Path) -> None:
    _write_files(tmp_path, "web/cart.test.js", "other.js")
    case = _build_case("at other.js:5:52")._replace(file="web/cart.test.js", line=3)

    assert _find_place(case, tmp_path) == ("web/cart.test.js", 3)


@given(st.text(alphabet="at./\\:()\"' ,lineC9jsgopy-\n$<>", max_size=400))
def test_any_text_gives_a_file_of_the_repository_or_none(text: str) -> None:
    file, line = _find_place(_build_case(text), SHOP)

    assert file is None or (SHOP / file).is_file()
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
