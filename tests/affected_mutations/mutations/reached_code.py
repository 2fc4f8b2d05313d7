"""Mutations of the code that tools reach."""

from tests.affected_mutations.mutation import (
    Append,
    Delete,
    Rename,
    Replace,
    Write,
    change_module,
    mutate,
)

SHOP = "shopdesk/"

ALL = [
    change_module("distant helper", "receipt", "receipts", "{item}: {", "{item} for {"),
    change_module("distant helper", "money", "text", "/ 100:.2f}", "/ 100:.1f}", hub=True),
    change_module(
        "distant helper", "shortened", "text", "len(text) <= width", "len(text) < 5", hub=True
    ),
    change_module(
        "distant helper", "cached rows", "catalog", 'int(row["price"])', 'int(row["price"]) + 5'
    ),
    change_module(
        "distant helper", "chosen word", "greetings", 'return "Hello"', 'return "Hello, dear"'
    ),
    change_module(
        "distant helper",
        "model's choice",
        "model",
        "return scores.index(best) if best else None",
        "return len(scores) - 1 if best else None",
        hub=True,
    ),
    change_module(
        "distant helper",
        "loader of prompts",
        "prompts",
        'return path.read_text("utf-8")',
        'return path.read_text("utf-8").upper()',
    ),
    change_module("distant helper", "connection", "orders", "?mode=ro", "?mode=rw"),
    change_module(
        "class attribute", "limit", "refunds", "limit = settings.REFUND_LIMIT", "limit = 1500"
    ),
    change_module(
        "class attribute", "fee of a base class", "refunds", "    fee = 100\n", "    fee = 120\n"
    ),
    change_module("class attribute", "fee of a subclass", "refunds", "fee = 250", "fee = 260"),
    change_module(
        "class attribute", "days of all carriers", "carriers/base", "days = 5", "days = 6"
    ),
    change_module(
        "class attribute", "days of one carrier", "carriers/express", "days = 1", "days = 2"
    ),
    change_module("class attribute", "removed", "carriers/express", "    days = 1\n", ""),
    change_module(
        "class attribute", "few-shot of refunds", "desk", 'few_shot = "refund"', 'few_shot = ""'
    ),
    change_module(
        "class attribute",
        "few-shot of all desks",
        "desk",
        'few_shot = ""',
        'few_shot = "refund"',
        hub=True,
    ),
    change_module(
        "new override",
        "fee of gold",
        "refunds",
        '    """Of good customers."""\n',
        '    """Of good customers."""\n\n    def charge_fee(self):\n        return 0\n',
    ),
    change_module(
        "new override",
        "label of gold",
        "refunds",
        '    """Of good customers."""\n',
        '    """Of good customers."""\n\n    label = "gold"\n',
    ),
    change_module(
        "new override",
        "days of a carrier",
        "carriers/saver",
        'name = "saver"\n',
        'name = "saver"\n\n    def count_days(self):\n        return 9\n',
    ),
    change_module(
        "new override",
        "answer of refunds",
        "desk",
        'few_shot = "refund"\n',
        'few_shot = "refund"\n\n    def respond(self, message):\n        return super().respond(message + " now")\n',
    ),
    change_module(
        "new override",
        "attribute access",
        "refunds",
        '    """Of most customers."""\n',
        '    """Of most customers."""\n\n    def __getattribute__(self, name):\n        return 77 if name == "fee" else super().__getattribute__(name)\n',
    ),
    change_module(
        "base class",
        "another base",
        "refunds",
        "class GoldPolicy(Policy)",
        "class GoldPolicy(StandardPolicy)",
    ),
    change_module(
        "base class",
        "second base",
        "carriers/saver",
        "class Carrier(BaseCarrier)",
        "class Days:\n    days = 8\n\n\nclass Carrier(Days, BaseCarrier)",
    ),
    change_module(
        "base class",
        "order of functions",
        "greetings",
        'def choose_word():\n    return "Hello"\n',
        'def choose_word():\n    return "Hello"\n\n\ndef choose_word():\n    return "Hello there"\n',
    ),
    change_module(
        "constant, used lazily",
        "tariff with two users",
        "settings",
        "TARIFF = 7",
        "TARIFF = 8",
        hub=True,
    ),
    change_module("constant, used lazily", "currency", "settings", '"EUR"', '"USD"', hub=True),
    change_module("constant, used lazily", "season", "rules/season", '"winter"', '"summer"'),
    change_module("constant, used lazily", "width", "receipts", "WIDTH = 24", "WIDTH = 6"),
    change_module(
        "constant, used lazily", "prefix of options", "options", '"SHOPDESK_OPT_"', '"SHOPDESK_O"'
    ),
    change_module(
        "constant, used lazily",
        "changed by a later statement",
        "receipts",
        "WIDTH = 24",
        "WIDTH = 24\nWIDTH -= 16",
    ),
    change_module(
        "constant, used at import", "discounts", "settings", "(5, 10, 15)", "(4, 10, 15)", hub=True
    ),
    change_module("constant, used at import", "duty", "customs", "BASE * 3", "BASE * 4"),
    change_module(
        "constant, used at import",
        "limit in a class body",
        "settings",
        "REFUND_LIMIT = 5000",
        "REFUND_LIMIT = 1500",
        hub=True,
    ),
    change_module(
        "constant, used at import",
        "holidays",
        "holidays",
        ".split()",
        '.split()[1:] + ["2026-12-31"]',
    ),
    change_module(
        "constant, used at import",
        "name of the flag",
        "flags",
        '"SHOPDESK_MODE", "calm"',
        '"SHOPDESK_MODE", "quiet"',
    ),
    change_module(
        "constant, used at import",
        "statement that patches a class",
        "customs",
        "DUTY = BASE * 3\n",
        'DUTY = BASE * 3\n\nfrom shopdesk import shipping\n\nshipping.quote_parcel.__doc__ = "Quote."\n',
    ),
    change_module(
        "constant, by a second user",
        "alias at import",
        "customs",
        "TARIFF as BASE",
        "REFUND_LIMIT as BASE",
    ),
    change_module(
        "constant, by a second user",
        "version in the package",
        "__init__",
        '"1.4"',
        '"1.4"\n\nfrom shopdesk import settings\n\nsettings.TARIFF = 70',
        hub=True,
    ),
    change_module(
        "plugin by name", "name", "carriers/express", 'name = "express"', 'name = "express!"'
    ),
    change_module(
        "plugin by name",
        "method of the base",
        "carriers/base",
        "{self.name} in",
        "{self.name} within",
    ),
    change_module(
        "plugin by name", "booking", "carriers/__init__", ".book_parcel()", '.book_parcel() + "."'
    ),
    mutate(
        "plugin by name",
        "module becomes a package",
        Delete(f"{SHOP}carriers/saver.py"),
        Write(
            f"{SHOP}carriers/saver/__init__.py",
            'class Carrier:\n    def book_parcel(self):\n        return "saver from a package"\n',
        ),
    ),
    mutate(
        "plugin by name",
        "package beside a module",
        Write(
            f"{SHOP}carriers/express/__init__.py",
            'class Carrier:\n    def book_parcel(self):\n        return "express from a package"\n',
        ),
    ),
    mutate("plugin by name", "removed", Delete(f"{SHOP}carriers/saver.py")),
    mutate(
        "module of a registry",
        "added",
        Write(
            f"{SHOP}rules/thanks.py",
            "from shopdesk.rules import register_rule\n\n\n@register_rule\ndef thank(cents):\n    return 'thanks'\n",
        ),
    ),
    mutate(
        "module of a registry",
        "added package",
        Write(
            f"{SHOP}rules/extra/__init__.py",
            "from shopdesk.rules import register_rule\n\n\n@register_rule\ndef add_extra(cents):\n    return 'extra'\n",
        ),
    ),
    mutate("module of a registry", "removed", Delete(f"{SHOP}rules/loyalty.py")),
    mutate(
        "module of a registry",
        "renamed, which changes nothing",
        Rename(f"{SHOP}rules/season.py", "seasons.py"),
    ),
    change_module("module of a registry", "body", "rules/loyalty", "cents // 50", "cents // 40"),
    change_module("module of a registry", "decorator", "rules/loyalty", "@register_rule\n", ""),
    change_module(
        "module of a registry",
        "registered name",
        "rules/__init__",
        "RULES[function.__name__]",
        "RULES[function.__name__[::-1]]",
    ),
    change_module(
        "registering subclass",
        "added",
        "badge_kinds",
        "class Bronze(Badge):",
        "class Gold(Badge):\n    pass\n\n\nclass Bronze(Badge):",
    ),
    change_module(
        "registering subclass",
        "keyword of a class",
        "badge_kinds",
        'title="shiny"',
        'title="bright"',
    ),
    change_module(
        "registering subclass",
        "hook",
        "badge_kinds",
        "{title} {cls.__name__}",
        "{title}: {cls.__name__}",
    ),
    change_module(
        "registering subclass",
        "default of the hook",
        "badge_kinds",
        'title="badge"',
        'title="medal"',
    ),
    change_module(
        "function chosen by type", "body", "badge_values", "number {value}", "figure {value}"
    ),
    change_module("function chosen by type", "type", "badge_values", "value: int", "value: float"),
    change_module(
        "function chosen by type",
        "module imported late",
        "badge_values",
        '"values"',
        '"more values"',
    ),
    change_module(
        "function chosen by type",
        "fallback, which nothing reaches",
        "badges",
        "thing {value}",
        "object {value}",
    ),
    change_module(
        "attribute of a module, made lazily", "value", "badges", "return 24", "return 36"
    ),
    change_module(
        "attribute of a module, made lazily",
        "removed",
        "badges",
        'if name == "WARRANTY"',
        'if name == "OTHER"',
    ),
    mutate(
        "attribute of a module, made lazily",
        "real attribute in its place",
        Append(f"{SHOP}badges.py", "\n\nWARRANTY = 48\n"),
    ),
    change_module("thread", "body", "effort", "{2} hours", "{12} hours"),
    change_module(
        "thread",
        "its target",
        "workers",
        "effort.estimate_threaded(item)",
        "effort.estimate_threaded(item * 2)",
    ),
    change_module("executor", "body", "effort", "{3} hours", "{13} hours"),
    change_module("executor", "of the loop", "effort", "executed {7}", "executed {17}"),
    change_module(
        "executor",
        "submitted function",
        "workers",
        "effort.estimate_pooled, item",
        "effort.estimate_threaded, item",
    ),
    change_module("shared worker", "body", "effort", "{4} hours", "{14} hours"),
    change_module(
        "shared worker", "its loop", "workers", "answers.put(effort", "answers.put('~' + effort"
    ),
    change_module(
        "shared worker",
        "its question",
        "workers",
        "self.jobs.put((item, answers))",
        "self.jobs.put((item + 's', answers))",
    ),
    change_module("task", "awaited", "effort", "awaited {5}", "awaited {15}"),
    change_module("task", "other thread", "effort", "beside {6}", "beside {16}"),
    change_module("task", "asynchronous generator", "effort", "streamed {8}", "streamed {18}"),
    change_module("task", "order", "workers", '", ".join(parts)', '", ".join(sorted(parts))'),
    change_module("generator", "body", "tickets", "-{100}", "-{200}"),
    change_module("generator", "helper", "tickets", 'return "T"', 'return "N"'),
    change_module(
        "generator",
        "replaced by a list",
        "tickets",
        "TICKETS = yield_tickets()",
        'TICKETS = iter(["X"] * 9)',
    ),
    change_module(
        "process of multiprocessing", "body", "crunch_weights", "kilos * 1000", "kilos * 1001"
    ),
    change_module(
        "process of multiprocessing",
        "method",
        "crunch",
        "args=(sender, kilos)",
        "args=(sender, kilos + 1)",
    ),
    change_module(
        "monkeypatch",
        "replaced function, which another test calls",
        "greetings",
        'return "Hello"',
        'return "Hello and"',
    ),
    change_module(
        "monkeypatch",
        "caller of the replaced function",
        "greetings",
        "{choose_word()} {name}",
        "{choose_word()}, {name}",
    ),
    mutate("monkeypatch", "replacement", Replace("tests/helpers.py", '"Ahoy"', '"Ahoi"')),
    change_module("lambda, partial or closure", "lambda", "gifts", '"tissue"', '"silk"'),
    change_module("lambda, partial or closure", "unused lambda", "gifts", '"kraft"', '"brown"'),
    change_module(
        "lambda, partial or closure",
        "partial",
        "gifts",
        '(tie_ribbon, "red")',
        '(tie_ribbon, "dark red")',
    ),
    change_module(
        "lambda, partial or closure", "body behind the partial", "gifts", "cm of", "mm of"
    ),
    change_module(
        "lambda, partial or closure", "inner function", "gifts", "len(text) + 1", "len(text) + 2"
    ),
    mutate(
        "code without an import",
        "expression in a text file",
        Replace("data/formula.txt", "* 3", "* 4"),
    ),
    mutate(
        "code without an import",
        "script run by path",
        Replace("scripts/bonus.py", "BONUS = 11", "BONUS = 12"),
    ),
    mutate(
        "code without an import",
        "module loaded by path",
        Replace("extensions/points.py", "cents // 100", "cents // 90"),
    ),
    mutate(
        "code without an import",
        "vendored constant",
        Replace("vendor/tinytax.py", "RATE = 19", "RATE = 7"),
    ),
    mutate(
        "code without an import",
        "vendored body",
        Replace("vendor/tinytax.py", "// 100", "// 100 + 1"),
    ),
    change_module(
        "code without an import",
        "its loader",
        "formulas",
        'run_path(str(ROOT / "scripts/bonus.py"))["BONUS"]',
        'run_path(str(ROOT / "scripts/bonus.py"))["BONUS"] + 1',
    ),
    change_module(
        "source as data",
        "comment of the shown function",
        "shown",
        "# The comment is part of what the agent reads.",
        "# Another comment.",
    ),
    change_module(
        "source as data",
        "line of the shown function",
        "shown",
        "return value + 1",
        "return value + 1  # one",
    ),
    change_module(
        "import",
        "another name",
        "receipts",
        "from shopdesk.text import format_money, shorten_text",
        "from shopdesk.text import shorten_text\nfrom shopdesk.text import unused_banner as _banner\n\n\ndef format_money(cents):\n    return _banner()",
    ),
    change_module("import", "syntax error", "similar", "def find_similar", "def find similar"),
    change_module(
        "import",
        "of a missing module",
        "similar",
        "import mmap\n",
        "import mmap\nimport missing_module\n",
    ),
    change_module(
        "import",
        "cycle that fails",
        "sizes",
        "from enum import Enum\n",
        "from enum import Enum\n\nfrom shopdesk.gifts import PAPERS\n",
    ),
]
