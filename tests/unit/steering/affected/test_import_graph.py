"""The tests that import changed files, by every form of import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ci_agent_eval.steering.affected.deadline import Deadline
from ci_agent_eval.steering.affected.import_graph import find_affected_tests


@pytest.fixture
def affected(tmp_path):
    def find(sources, *changed, seconds=600):
        for path, source in sources.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(source)
        return find_affected_tests(tmp_path, sorted(sources), changed, Deadline(seconds))

    return find


SHOP = {
    "shop/__init__.py": "from shop.cart import Cart\n",
    "shop/prices.py": "",
    "shop/cart.py": "from . import prices\n",
    "shop/mail/__init__.py": "",
    "shop/mail/send.py": "import os\nfrom .. import cart\n",
    "tests/test_prices.py": "from shop.prices import total\n",
    "tests/test_cart.py": "import shop.cart as cart\n",
    "tests/test_mail.py": "from shop.mail import (\n    send,  # the mail\n)\n",
    "tests/test_shop.py": "from shop import Cart\n",
    "tests/test_other.py": "import json\n",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("shop/mail/send.py", ["tests/test_mail.py"]),
        ("shop/cart.py", ["tests/test_cart.py", "tests/test_mail.py", "tests/test_shop.py"]),
        (
            "shop/prices.py",
            [
                "tests/test_cart.py",
                "tests/test_mail.py",
                "tests/test_prices.py",
                "tests/test_shop.py",
            ],
        ),
        ("tests/test_other.py", ["tests/test_other.py"]),
        ("shop/mail/__init__.py", []),
    ],
)
def test_tests_count_that_import_a_changed_file_at_any_distance(affected, changed, expected):
    assert list(affected(SHOP, changed)) == expected


@pytest.mark.parametrize(
    "source",
    [
        "import app.prices",
        "import os, app.prices as p",
        "from app import prices",
        "from app import (cart,\n  prices)",
        "from app import cart, \\\n    prices",
        "from app.prices import *",
        "def test():\n    from app.prices import total",
        "if True:\n\timport app.prices # why",
        "from   app.prices   import(total)",
        "import os; x = 1\nimport app.prices; y = 2",
    ],
)
def test_every_form_of_import_counts(affected, source):
    sources = {"app/prices.py": "", "app/cart.py": "", "test_a.py": source}

    assert affected(sources, "app/prices.py") == ("test_a.py",)


@pytest.mark.parametrize(
    "source",
    [
        '"""It says:\n    from app import\n"""\nimport app.prices\n',
        "from app import\nfrom app import prices\n",
        "from app import (\nfrom app import (prices)\n",
        "from app import (\n  cart,  # (the old one)\n  prices,\n)\n",
        f"import {'a.' * 1000}b\nfrom {'.' * 1000} import a\nimport app.prices\n",
    ],
)
def test_an_import_statement_after_an_odd_line_counts(affected, source):
    sources = {"app/prices.py": "", "app/cart.py": "", "test_a.py": source}

    assert affected(sources, "app/prices.py") == ("test_a.py",)


HOSTILE = """
import sys
from pathlib import Path
from ci_agent_eval.steering.affected.deadline import Deadline
from ci_agent_eval.steering.affected.import_graph import find_affected_tests

lines = {"dots": "from " + "." * 900_000, "blanks": "from" + " " * 900_000,
    "comments": "from a import (" + "#" * 900_000, "dotted": "import " + "a." * 400_000,
    "lists": "from a import (  # b\\n" * 40_000, "hashes": "from a import (" + "# #\\n" * 200_000,
    "levels": "from " + "." * 400_000 + " import " + "a," * 200_000}
for name, text in lines.items():
    Path(f"test_{name}.py").write_text(text + "\\nimport app\\n")
files = [f"test_{name}.py" for name in lines]
print(*find_affected_tests(Path.cwd(), [*files, "app.py"], ["app.py"], Deadline(9000)))
"""
"""Files that took hours when the time to match was quadratic."""


def test_the_search_takes_linear_time(tmp_path):
    (tmp_path / "app.py").touch()

    done = subprocess.run(
        [sys.executable, "-c", HOSTILE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    found = sorted(path.name for path in tmp_path.glob("test_*.py"))
    assert (done.stderr, done.stdout.split()) == ("", found)


def test_a_deleted_file_is_still_imported(affected):
    assert affected({"test_a.py": "import prices"}, "prices.py") == ("test_a.py",)


def test_a_deleted_test_is_not_named(affected):
    assert affected({"prices.py": ""}, "tests/test_prices.py") == ()


@pytest.mark.parametrize("path", ["src/app/prices.py", "libs/a/src/app/prices.py", "app/prices.py"])
def test_packages_are_found_below_their_usual_folders(affected, path):
    sources = {path: "", "tests/test_a.py": "import app.prices"}

    assert affected(sources, path) == ("tests/test_a.py",)


def test_a_helper_beside_the_tests_is_found(affected):
    sources = {"tests/helpers.py": "", "tests/x_test.py": "from helpers import build"}

    assert affected(sources, "tests/helpers.py") == ("tests/x_test.py",)


def test_a_changed_conftest_affects_all_tests_below_it(affected):
    sources = {"tests/a/conftest.py": "", "tests/a/b/test_b.py": "", "tests/test_c.py": ""}

    assert affected(sources, "tests/a/conftest.py") == ("tests/a/b/test_b.py",)


def test_fixtures_count_if_no_test_imports_the_change_itself(affected):
    sources = {"app.py": "", "conftest.py": "import app", "test_a.py": "def test(client): pass"}

    assert affected(sources, "app.py") == ("test_a.py",)
    assert affected({**sources, "test_b.py": "import app"}, "app.py") == ("test_b.py",)


def test_links_and_broken_files_are_not_read(affected, tmp_path):
    (tmp_path / "outside").write_text("import app")
    (tmp_path / "test_link.py").symlink_to("outside")
    (tmp_path / "test_bytes.py").write_bytes(b"\xff\xfe\0import app")
    sources = {"app.py": "", "test_a.py": "import app"}
    affected(sources)
    files = [*sources, "test_link.py", "test_bytes.py", "test_gone.py"]

    found = find_affected_tests(tmp_path, files, ["app.py"], Deadline(600))
    assert found == ("test_a.py",)


def test_the_search_ends_at_the_deadline(affected):
    with pytest.raises(TimeoutError):
        affected(SHOP, "shop/cart.py", seconds=0)


def test_the_search_ends_at_the_deadline_within_a_file(tmp_path):
    (tmp_path / "test_a.py").write_text("import a\n" * 10)
    times = iter(range(100))

    with pytest.raises(TimeoutError):
        find_affected_tests(tmp_path, ["test_a.py"], ["a.py"], Deadline(5, lambda: next(times)))
    assert next(times) == 6
