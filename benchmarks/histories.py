"""Three scripted histories of 30 commits each, for `selection_histories.py`.

They change the example project of `tests/affected_mutations`, one commit after the other.
"""

from __future__ import annotations

from typing import TypeAlias

from tests.affected_mutations.mutation import Append, Delete, Edit, Replace, Write

Commit: TypeAlias = tuple[str, tuple[Edit, ...]]
"""The subject, and the edits."""


def commit(subject: str, *edits: Edit) -> Commit:
    """Return a commit."""
    return subject, edits


def prompt(name: str, text: str) -> Commit:
    """Return a commit that appends a sentence to a prompt."""
    return commit(f"Say more in the {name} prompt", Append(f"prompts/{name}.md", f"{text}\n"))


def docstring(file: str, old: str, new: str) -> Commit:
    """Return a commit that describes a tool in other words."""
    subject = f"Describe a tool of {file} anew"
    return commit(subject, Replace(f"shopdesk/{file}.py", f'"""{old}"""', f'"""{new}"""'))


def code(subject: str, file: str, old: str, new: str) -> Commit:
    """Return a commit that replaces a text in a module."""
    return commit(subject, Replace(f"shopdesk/{file}.py", old, new))


def example(name: str, customer: str, desk: str) -> Commit:
    """Return a commit that adds an example to the refund desk's."""
    text = f'{{"customer": "{customer}", "desk": "{desk}"}}\n'
    return commit(f"Add the example {name}", Write(f"examples/refund/{name}.json", text))


def bump(number: int) -> Commit:
    """Return a commit that renews a pinned package."""
    old, new = f"pricelib==1.{number - 1}\n", f"pricelib==1.{number}\n"
    return commit(f"Update pricelib to 1.{number}", Replace("requirements.txt", old, new))


PREPARATION = tuple(
    Replace("tests/test_configuration.py", f'    "{name}": ({tool}, "{question}"),\n', "")
    for name, tool, question in (
        ("ratecard", "outside.read_ratecard", "Read the rate card of Malta"),
        ("pricelist", "outside.read_pricelist", "Read the price list of lamp"),
    )
)
"""Scenarios that are left out: they import packages from outside of the repository and the
environment, after which every scenario always runs."""

PROMPT_WORK = (
    prompt("refund", "Ask for the reason of a refund first."),
    prompt("refund", "Never promise a date."),
    prompt("catalog", "Name the price with its currency."),
    prompt("general", "Answer in the customer's language."),
    example("lost", "It never came", "I refund it at once."),
    prompt("parcel", "Say which carrier brings it."),
    docstring("refunds", "Refund the order of a gold customer.", "Refund a gold customer's order."),
    prompt("refund", "Thank the customer."),
    commit("Extend the returns policy", Append("shared/policy.md", "Sale items too.\n")),
    docstring(
        "shipping", "Quote the price of a parcel by its weight.", "Price a parcel by weight."
    ),
    prompt("catalog", "Offer at most three items."),
    commit("Describe how prompts are written", Append("README.md", "\nPrompts are short.\n")),
    prompt("general", "Do not guess."),
    example("wrong", "It is the wrong one", "I exchange it."),
    commit(
        "Try another refund prompt",
        Write("prompts/overrides/refund.md", "Refund desk.\nRefund what was damaged.\n"),
    ),
    commit("Drop the other refund prompt", Delete("prompts/overrides/refund.md")),
    prompt("parcel", "Heavy parcels take two days more."),
    docstring("catalog", "Find the discount of a level.", "Find a level's discount."),
    commit("Sign with the shop", Append("templates/partials/footer.j2", "Lamp and Leaf.\n")),
    commit("Price before the item", Replace("templates/price.j2", "costs", "now costs")),
    prompt("catalog", "Say when an item is sold out."),
    prompt("refund", "Quote the order's number."),
    commit("Add a note for authors", Append("examples/refund/notes.txt", "Two lines each.\n")),
    commit("Drop the example of wrong items", Delete("examples/refund/wrong.json")),
    prompt("general", "End with a question."),
    docstring("orders", "Look up a customer by number.", "Look a customer up by number."),
    commit("Keep a prompt for later", Append("prompts/orphan.md", "Not used yet.\n")),
    prompt("parcel", "Round up to whole euros."),
    prompt("refund", "Ask before you refund more than fifty euros."),
    commit("Shorten the returns policy", Replace("shared/policy.md", "Sale items too.\n", "")),
)

REFACTORING = (
    commit(
        "Name the amount",
        Replace("shopdesk/refunds.py", "refunded = Sta", "amount = Sta"),
        Replace("shopdesk/refunds.py", "format_money(refunded)", "format_money(amount)"),
    ),
    code("Name the label", "refunds", 'return "policy"', 'label = "policy"\n        return label'),
    code("Round by divmod", "refunds", "cents // 10 * 10", "cents - cents % 10"),
    code("Comment the customers", "orders", "_customers = {}", "# Read once.\n_customers = {}"),
    code("Name the order's row", "orders", "if row else", "if row is not None else"),
    code(
        "Read rows in a set",
        "model",
        'set(re.findall(r"[a-z]+", message.lower()))',
        '{*re.findall(r"[a-z]+", message.lower())}',
    ),
    code("Annotate the width", "text", "width=24", "width: int = 24"),
    code(
        "Return early in the desk",
        "desk",
        "return text + prompts.load_examples(self.few_shot) if self.few_shot else text",
        "if not self.few_shot:\n            return text\n"
        "        return text + prompts.load_examples(self.few_shot)",
    ),
    code(
        "Sort the badges first",
        "badges",
        '", ".join(sorted(badge_kinds.Badge.kinds))',
        '", ".join(sorted(list(badge_kinds.Badge.kinds)))',
    ),
    code(
        "Split the archive's query",
        "orders",
        '"SELECT item FROM archive.orders WHERE id = ?"',
        '"SELECT item FROM archive.orders "\n            "WHERE id = ?"',
    ),
    code(
        "Remove an unused function", "text", '\n\ndef unused_banner():\n    return "*" * 10\n', ""
    ),
    commit(
        "Rename a constant",
        Replace("shopdesk/customs.py", "LOWEST = min", "LEAST = min"),
        Replace("shopdesk/customs.py", "- LOWEST", "- LEAST"),
    ),
    code("Spell the tariff out", "customs", "DUTY = BASE * 3", "DUTY = 3 * BASE"),
    commit(
        "Move rounding to a module",
        Write(
            "shopdesk/rounding.py",
            '"""Rounding."""\n\n\ndef round_cents(cents):\n    return cents - cents % 10\n',
        ),
    ),
    commit(
        "Use the rounding of the module",
        Replace(
            "shopdesk/refunds.py",
            "from shopdesk import settings\n",
            "from shopdesk import rounding, settings\n",
        ),
        Replace(
            "shopdesk/refunds.py", "return cents - cents % 10", "return rounding.round_cents(cents)"
        ),
    ),
    code(
        "Extract the discount's key",
        "catalog",
        "return LEVELS.table[level]",
        "table = LEVELS.table\n    return table[level]",
    ),
    code(
        "Annotate the policy",
        "refunds",
        "def decide_refund(self, cents):",
        "def decide_refund(self, cents: int) -> int:",
    ),
    code("Use a tuple of words", "greetings", 'return "Hello"', 'return ("Hello",)[0]'),
    code(
        "Inline the greeting",
        "greetings",
        'return f"{choose_word()} {name}"',
        'word = choose_word()\n    return f"{word} {name}"',
    ),
    code(
        "Name the digest's length",
        "model",
        ".hexdigest()[:10]\n    chosen",
        ".hexdigest()[: 5 * 2]\n    chosen",
    ),
    code(
        "Annotate the receipt",
        "receipts",
        "def print_receipt(item, cents):",
        "def print_receipt(item: str, cents: int) -> str:",
    ),
    code(
        "Explain the tickets",
        "tickets",
        "def yield_tickets():",
        "def yield_tickets():\n    # One series for all.",
    ),
    code("Comment the shop", "settings", 'CURRENCY = "EUR"', '# Of all prices.\nCURRENCY = "EUR"'),
    commit(
        "Import functools as a whole",
        Replace("shopdesk/gifts.py", "from functools import partial", "import functools"),
        Replace("shopdesk/gifts.py", "partial(tie_ribbon", "functools.partial(tie_ribbon"),
    ),
    commit("Add a test's comment", Append("tests/test_refunds.py", "\n# More refunds follow.\n")),
    code(
        "Name the stems",
        "formulas",
        'return f"{stems} stems, usual price"',
        'return f"{stems} stems, " "usual price"',
    ),
    code("Join parts in a list", "gifts", "return len(text) + 1", "return 1 + len(text)"),
    code(
        "Explain the desk",
        "desk",
        "def respond(self, message):",
        "def respond(self, message):\n        # The prompt is read anew each time.",
    ),
    code(
        "Remove an unused setting",
        "settings",
        '\n\ndef unused_setting():\n    return "nobody asks"\n',
        "",
    ),
    commit("Describe the layout", Append("README.md", "\nThe code is in `shopdesk`.\n")),
)
DEPENDENCY_UPDATES = (
    commit("Pin the packages", Write("requirements.txt", "pricelib==1.0\nratecard==1.0\n")),
    *map(bump, range(1, 9)),
    commit("Note the update", Write("CHANGELOG.md", "# Changes\n\n- pricelib 1.8\n")),
    code(
        "Call the new price list",
        "catalog",
        'return load_stock()[item]["price"]',
        'return int(load_stock()[item]["price"])',
    ),
    *map(bump, range(9, 15)),
    commit("Update the rates", Replace("data/fx.json", "1.08", "1.09")),
    *map(bump, range(15, 21)),
    commit("Note the updates", Append("CHANGELOG.md", "- pricelib 1.20\n")),
    code(
        "Call the new rate card",
        "shipping",
        "return weight * settings.TARIFF",
        "return int(weight * settings.TARIFF)",
    ),
    *map(bump, range(21, 23)),
    commit("Update the shop's defaults", Append("shopdesk.toml", "# Checked.\n")),
    commit("Describe how to update", Append("README.md", "\nUpdate packages weekly.\n")),
)
