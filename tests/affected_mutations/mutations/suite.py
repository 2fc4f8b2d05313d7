"""Mutations of tests, fixtures and the configuration of pytest."""

from tests.affected_mutations.mutation import (
    Append,
    Delete,
    Mutation,
    Rename,
    Replace,
    Write,
    mutate,
)

CONFTEST = "tests/conftest.py"

SCENARIOS = [
    mutate(
        "scenario",
        "message",
        Replace(
            "tests/test_refunds.py",
            "Issue the refund of order 1001",
            "Issue the refund of order 1002",
        ),
    ),
    mutate(
        "scenario",
        "another tool",
        Replace(
            "tests/test_catalog.py",
            'Desk("catalog", catalog.count_stock)',
            'Desk("catalog", catalog.find_price)',
        ),
    ),
    mutate(
        "scenario",
        "its factory",
        Replace("tests/test_plugins.py", 'QuietDesk("Tax desk."', 'QuietDesk("Taxes."'),
    ),
    mutate(
        "scenario",
        "constant of its file",
        Replace(
            "tests/test_refunds.py",
            "refunds.refund_gold, orders.lookup_order)",
            "orders.lookup_order)",
        ),
    ),
    mutate(
        "scenario",
        "row of a table in its file",
        Replace("tests/test_configuration.py", "Tell midnight of Rome", "Tell midnight of Oslo"),
    ),
    mutate(
        "scenario",
        "assertion fails",
        Replace("tests/test_plugins.py", 'assert "express" in', 'assert "exprexx" in'),
    ),
    mutate(
        "scenario",
        "imported name",
        Replace(
            "tests/test_catalog.py",
            "from shopdesk.desk import Desk, QuietDesk",
            "from shopdesk.desk import Desk\nfrom shopdesk.desk import RefundDesk as QuietDesk",
        ),
    ),
    mutate(
        "scenario",
        "scripted model of the test",
        Replace(
            "tests/test_offered.py", 'f"Offered {len(offered)} tools', 'f"Saw {len(offered)} tools'
        ),
    ),
    mutate(
        "scenario",
        "helper function of the file",
        Replace(
            "tests/test_quotes.py",
            'turn.reply(reply["text"], source="scripted")',
            'turn.reply(reply["text"] + "!", source="scripted")',
        ),
    ),
    mutate(
        "scenario",
        "second turn added",
        Replace(
            "tests/test_catalog.py",
            'assert "#" in agent.send("Find the price of lamp")',
            'assert "#" in agent.send("Find the price of lamp")\n    agent.send("Find the price of fern")',
        ),
    ),
    Mutation(
        "renamed",
        "scenario",
        (Replace("tests/test_workers.py", '"ticket_second"', '"ticket_third"'),),
        removes=frozenset({"ticket_second"}),
    ),
    Mutation(
        "deleted",
        "scenario",
        (
            Replace(
                "tests/test_children.py",
                """

@pytest.mark.episode(scenario_id="shelf_fern")
def test_shelf_fern(episode, warehouse):
    with episode.turn("Where is the fern?") as turn:
        turn.reply(warehouse.ask_server(method="call", item="fern"), source="scripted")
    assert episode.turns
""",
                "",
            ),
        ),
        removes=frozenset({"shelf_fern"}),
    ),
    mutate(
        "scenario",
        "new file",
        Write(
            "tests/test_new.py",
            'from ci_agent_eval import conversation\n\n\n@conversation("new", lambda: lambda message: {"text": "new", "source": "scripted"})\ndef test_new(agent):\n    assert agent.send("new")\n',
        ),
    ),
    mutate(
        "scenario",
        "moved to another file, with the same id",
        Append(
            "tests/test_quotes.py",
            '\n\n@pytest.mark.episode(scenario_id="badge_script")\ndef test_badge(episode):\n    record_quote(episode, "Quote a parcel of weight 2")\n',
        ),
        Replace(
            "tests/test_children.py", 'scenario_id="badge_script"', 'scenario_id="badge_child"'
        ),
    ),
    mutate(
        "scenario",
        "skipped",
        Replace(
            "tests/test_refunds.py",
            '@conversation("policy"',
            '@pytest.mark.skip\n@conversation("policy"',
        ),
    ),
    mutate(
        "parametrize row",
        "weight",
        Replace("tests/test_quotes.py", '("heavy", 50)', '("heavy", 60)'),
    ),
    mutate(
        "parametrize row",
        "added",
        Replace("tests/test_quotes.py", '("heavy", 50)', '("heavy", 50), ("huge", 99)'),
    ),
    mutate(
        "parametrize row",
        "in a data file",
        Replace("tests/cases.json", '["large", 30]', '["large", 40]'),
    ),
    mutate(
        "parametrize row",
        "added in a data file",
        Replace("tests/cases.json", '["large", 30]', '["large", 30], ["giant", 80]'),
    ),
    mutate(
        "parametrize row",
        "order in a data file",
        Write("tests/cases.json", '[["large", 30], ["small", 3]]\n'),
    ),
    mutate(
        "parametrize row",
        "value of a plain list",
        Replace("tests/test_workers.py", '["lamp", "fern"]', '["lamp", "fern", "vase"]'),
    ),
    mutate(
        "parametrize row",
        "swapped weights in a data file",
        Write("tests/cases.json", '[["small", 30], ["large", 3]]\n'),
    ),
    mutate(
        "helper of the tests",
        "inherited question",
        Replace("tests/helpers.py", "Tell the mode of the desk", "Tell the mode of this desk"),
    ),
    mutate(
        "helper of the tests",
        "inherited method",
        Replace(
            "tests/helpers.py",
            "desk.respond(self.question)",
            "desk.respond(self.question + ' now')",
        ),
    ),
]

FIXTURES = [
    mutate("fixture", "value", Replace(CONFTEST, 'return "Ada"', 'return "Grace"'), hub=True),
    mutate(
        "fixture",
        "that another fixture uses",
        Replace(CONFTEST, "{customer} Lovelace", "{customer} Hopper"),
        hub=True,
    ),
    mutate(
        "fixture",
        "of the session",
        Replace(
            CONFTEST,
            "worker = Worker()",
            'worker = Worker()\n    worker.ask_worker = lambda item: f"fake {item}"',
        ),
        hub=True,
    ),
    mutate(
        "fixture",
        "automatic",
        Replace(
            CONFTEST,
            'monkeypatch.setenv("SHOPDESK_PREPARED", "yes")',
            'monkeypatch.setenv("SHOPDESK_HOURS", "by appointment")',
        ),
        hub=True,
    ),
    mutate(
        "fixture",
        "overridden in a module",
        Append(
            "tests/test_workers.py", '\n\n@pytest.fixture\ndef customer():\n    return "Rosa"\n'
        ),
    ),
    mutate(
        "fixture",
        "automatic in a module",
        Append(
            "tests/test_refunds.py",
            '\n\n@pytest.fixture(autouse=True)\ndef cheaper(monkeypatch):\n    monkeypatch.setattr(refunds.Policy, "limit", 900)\n',
        ),
    ),
    mutate(
        "fixture",
        "automatic in a class",
        Replace(
            "tests/test_configuration.py",
            '"""A class with an inherited question."""\n',
            '"""A class with an inherited question."""\n\n    @pytest.fixture(autouse=True)\n    def other_mode(self, monkeypatch):\n        monkeypatch.setattr(flags, "MODE", "odd")\n',
        ),
    ),
    mutate(
        "conftest",
        "hook that adds an environment variable",
        Append(
            CONFTEST,
            '\n\ndef pytest_configure(config):\n    import os\n\n    os.environ["SHOPDESK_MODE"] = "hooked"\n',
        ),
        hub=True,
    ),
    mutate(
        "conftest",
        "new, at the root",
        Write("conftest.py", 'from shopdesk import settings\n\nsettings.CURRENCY = "CHF"\n'),
        hub=True,
    ),
    mutate(
        "conftest",
        "default of an ini setting, which pytest.ini overrides",
        Replace(CONFTEST, 'default="Hello"', 'default="Hi"'),
        hub=True,
    ),
    mutate(
        "conftest",
        "hook of collection",
        Append(
            CONFTEST,
            "\n\ndef pytest_collection_modifyitems(items):\n    items.reverse()\n\n\ndef pytest_runtest_setup(item):\n    from shopdesk import receipts\n\n    receipts.WIDTH = 9\n",
        ),
        hub=True,
    ),
    mutate(
        "conftest",
        "removed automatic fixture",
        Replace(
            CONFTEST,
            "@pytest.fixture(autouse=True)\ndef prepared_desk",
            "@pytest.fixture\ndef prepared_desk",
        ),
        hub=True,
    ),
    mutate(
        "configuration of pytest",
        "ini setting",
        Replace("pytest.ini", "greeting = Welcome", "greeting = Moin"),
        hub=True,
    ),
    mutate(
        "configuration of pytest",
        "ini setting removed",
        Replace("pytest.ini", "greeting = Welcome\n", ""),
        hub=True,
    ),
    mutate(
        "configuration of pytest",
        "path of imports",
        Replace("pytest.ini", "pythonpath = . tests", "pythonpath = extensions . tests"),
        hub=True,
    ),
    mutate(
        "configuration of pytest",
        "new file with precedence",
        Write(
            "pytest.toml",
            '[pytest]\ntestpaths = ["tests"]\npythonpath = [".", "tests"]\naddopts = ["-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"]\ngreeting = "Precedence"\n',
        ),
        hub=True,
    ),
    mutate(
        "configuration of pytest",
        "hidden file with precedence",
        Rename("pytest.ini", ".pytest.ini"),
        hub=True,
    ),
    mutate("configuration of pytest", "package of tests", Write("tests/__init__.py", ""), hub=True),
    mutate(
        "configuration of pytest",
        "pattern of files",
        Replace(
            "pytest.ini", "testpaths = tests", "testpaths = tests\npython_files = test_[a-p]*.py"
        ),
        hub=True,
    ),
    mutate(
        "configuration of pytest",
        "warnings are errors",
        Replace("pytest.ini", "testpaths = tests", "testpaths = tests\nfilterwarnings = error"),
        hub=True,
    ),
    mutate(
        "configuration of the product",
        "suite",
        Append("agent-eval.toml", "min_pass_rate = 0.9\n"),
        hub=True,
    ),
    mutate("conftest", "deleted", Delete(CONFTEST), hub=True),
]

ALL = SCENARIOS + FIXTURES
