"""Mutations of the environment: variables, installed packages, files outside of the repository."""

from tests.affected_mutations.mutation import Append, Delete, Mutation, Replace, Write, mutate

RATECARD = "@site/ratecard.py"
RECORD = "@site/ratecard-1.0.0.dist-info"


def variable(kind: str, name: str, **environ: str | None) -> Mutation:
    return Mutation(name, kind, environ=environ)


VARIABLES = [
    variable("variable, read in a tool", "changed", SHOPDESK_REGION="south"),
    variable("variable, read in a tool", "removed", SHOPDESK_REGION=None),
    variable("variable, read in a tool", "empty", SHOPDESK_REGION=""),
    variable("variable, read in a tool", "set, which was absent", SHOPDESK_HOURS="ten to four"),
    variable("variable, read in a tool", "expanded", SHOPDESK_STORE="/shop"),
    variable("variable, read in a tool", "expanded and absent", SHOPDESK_STORE=None),
    variable("variable, read at import", "set, which was absent", SHOPDESK_MODE="busy"),
    variable("variable, read in settings", "changed", SHOPDESK_OPT_COLOUR="red"),
    variable("variable, read in settings", "new", SHOPDESK_OPT_SIZE="9"),
    variable("variable, read in settings", "removed", SHOPDESK_OPT_COLOUR=None),
    Mutation(
        "changed",
        "variable with a secret",
        environ={"SHOPDESK_API_KEY": "key-two"},
        blind_spot="values of variables with the name of a secret are not stored, nor their hashes",
    ),
    variable("variable with a secret", "removed", SHOPDESK_API_KEY=None),
    variable("variable, read by C code", "time zone", TZ="Asia/Tokyo"),
    variable("variable, read by C code", "home", HOME="/nonexistent"),
    variable("variable of Python", "optimized", PYTHONOPTIMIZE="2"),
    variable("variable of Python", "hash seed", PYTHONHASHSEED="1"),
    variable("variable of pytest", "addopts", PYTEST_ADDOPTS="-o greeting=Moin"),
    Mutation("that nobody reads", "control: variable", environ={"UNRELATED": "1"}, is_control=True),
]

OUTSIDE = [
    mutate(
        "patch version of a package",
        "with its code",
        Write(f"{RECORD}/METADATA", "Metadata-Version: 2.1\nName: ratecard\nVersion: 1.0.1\n"),
        Write(f"{RECORD}/RECORD", "ratecard.py,sha256=two,62\n"),
        Replace(RATECARD, "costs 4", "costs 5"),
    ),
    mutate(
        "patch version of a package",
        "same version, other code",
        Write(f"{RECORD}/RECORD", "ratecard.py,sha256=three,62\n"),
        Replace(RATECARD, "costs 4", "costs 6"),
    ),
    mutate("patch version of a package", "removed", Delete(RATECARD), Delete(RECORD)),
    mutate(
        "patch version of a package",
        "another package with the same module",
        Write(
            "@site/cardrates-2.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: cardrates\nVersion: 2.0\n",
        ),
        Write("@site/cardrates-2.0.dist-info/RECORD", "ratecard.py,sha256=four,62\n"),
        Replace(RATECARD, "costs 4", "costs 7"),
    ),
    mutate(
        "editable install",
        "body of its source",
        Replace("@editable/pricelib.py", "listed at 5", "listed at 6"),
    ),
    mutate(
        "editable install",
        "its data file",
        Replace("@editable/pricelib_currency.txt", "EUR", "USD"),
    ),
    mutate(
        "editable install",
        "new module",
        Write("@editable/priceextra.py", "EXTRA = 1\n"),
        Replace("@editable/pricelib.py", "listed at 5", "on sale at 5"),
    ),
    mutate("file outside of the repository", "new", Write("@home/.shopdesk", "prefers tea\n")),
    mutate(
        "path without a distribution",
        "module is new",
        Write("@site/flowerprices.py", "PRICE = 'six each'\n"),
    ),
    mutate(
        "path without a distribution",
        "module shadows the standard library",
        Write(
            "@site/sqlite3.py", "def connect(*args, **kwargs):\n    raise OSError('no database')\n"
        ),
    ),
    mutate(
        "path without a distribution",
        "start of Python",
        Write("@site/sitecustomize.py", "import os\n\nos.environ['SHOPDESK_HOURS'] = 'never'\n"),
    ),
    mutate(
        "plugin of pytest",
        "installed",
        Write(
            "@site/shoplugin.py",
            "import pytest\n\n\n@pytest.fixture\ndef visitor():\n    return 'Plugged'\n\n\ndef pytest_configure(config):\n    import shopdesk.settings\n\n    shopdesk.settings.CURRENCY = 'GBP'\n",
        ),
        Write(
            "@site/shoplugin-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: shoplugin\nVersion: 1.0\n",
        ),
        Write("@site/shoplugin-1.0.dist-info/entry_points.txt", "[pytest11]\nshop = shoplugin\n"),
    ),
]

LOCAL = [
    Mutation(
        "changed",
        "file that Git ignores",
        (Replace(".env", "SHOPDESK_OPT_TABLE=round", "SHOPDESK_OPT_TABLE=long"),),
    ),
    Mutation("removed", "file that Git ignores", (Delete(".env"),)),
    Mutation(
        "new override",
        "file that Git ignores",
        (
            Write("prompts/overrides/local-only.md", "Nobody.\n"),
            Write("prompts/overrides/general.md", "Local desk.\nBe rude.\n"),
            Append(".git/info/exclude", "prompts/overrides/general.md\n"),
        ),
    ),
    Mutation(
        "new flag",
        "file that Git ignores",
        (Append(".git/info/exclude", "data/flags/holiday\n"), Write("data/flags/holiday", "")),
    ),
]

ALL = VARIABLES + OUTSIDE + LOCAL
