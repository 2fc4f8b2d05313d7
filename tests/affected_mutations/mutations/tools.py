"""Mutations of tools: bodies, signatures, docstrings and decorators."""

from tests.affected_mutations.mutation import change_module

ALL = [
    change_module(
        "tool body",
        "refund says approved",
        "refunds",
        'f"refund {order_id}',
        'f"approved {order_id}',
    ),
    change_module(
        "tool body", "gold refund adds", "refunds", "decide_refund(7777))", "decide_refund(8888))"
    ),
    change_module("tool body", "order query by item", "orders", '"no such order"', '"unknown"'),
    change_module(
        "tool body",
        "order receipt",
        "orders",
        "return receipts.print_receipt(*row) if",
        "return receipts.print_receipt(*row).upper() if",
    ),
    change_module(
        "tool body",
        "price doubles",
        "catalog",
        'load_stock()[item]["price"]',
        'load_stock()[item]["price"] * 2',
    ),
    change_module(
        "tool body",
        "parcel surcharge",
        "shipping",
        "weight * settings.TARIFF",
        "weight * settings.TARIFF + 1",
    ),
    change_module(
        "tool body",
        "discount plus one",
        "catalog",
        "LEVELS.table[level]",
        "LEVELS.table[level] + 1",
    ),
    change_module("tool body", "customer format", "orders", "{name} ({level})", "{name}, {level}"),
    change_module(
        "tool body",
        "template environment in a tool",
        "templates",
        ".render(values)",
        ".render(values).strip().upper()",
    ),
    change_module(
        "tool body",
        "cancelled order, which is only offered",
        "refunds",
        'f"cancelled {order_id}"',
        'f"void {order_id}"',
    ),
    change_module(
        "docstring",
        "refund",
        "refunds",
        "Issue the refund of an order.",
        "Issue a refund for one order.",
    ),
    change_module(
        "docstring",
        "second paragraph",
        "refunds",
        "Ask for the reason first.",
        "Never ask for the reason.",
    ),
    change_module(
        "docstring",
        "lookup",
        "orders",
        "Look up an order by its number.",
        "Find an order by its number.",
    ),
    change_module(
        "docstring",
        "quote",
        "shipping",
        "Quote the price of a parcel by its weight.",
        "Quote a parcel by weight.",
    ),
    change_module(
        "docstring",
        "discount",
        "catalog",
        "Find the discount of a level.",
        "Find how much a level saves.",
    ),
    change_module(
        "docstring",
        "region",
        "regions",
        "Tell the region of a customer.",
        "Tell where a customer lives.",
    ),
    change_module(
        "docstring", "decorated tool", "gifts", '"""Wrap a gift."""', '"""Wrap a gift nicely."""'
    ),
    change_module("docstring", "removed", "inventory", '    """Measure a file by name."""\n', ""),
    change_module(
        "docstring",
        "a class, which no model sees",
        "gifts",
        '"""A wrapped gift."""',
        '"""A gift in paper."""',
    ),
    change_module(
        "offered tool, never called",
        "docstring",
        "refunds",
        "Cancel what was not sent yet.",
        "Cancel an order that was not sent.",
    ),
    change_module(
        "offered tool, never called",
        "parameter",
        "refunds",
        "def cancel_order(order_id: int)",
        "def cancel_order(order_id: int, urgent: bool = False)",
    ),
    change_module(
        "offered tool, never called",
        "name",
        "catalog",
        "def count_stock(item: str)",
        "def count_stock(item: str, depot: str = 'north')",
    ),
    change_module(
        "annotation",
        "number to text",
        "refunds",
        "def refund_gold(order_id: int)",
        "def refund_gold(order_id: str)",
    ),
    change_module(
        "annotation", "returned type", "shipping", "(weight: int) -> int", "(weight: int) -> float"
    ),
    change_module(
        "annotation",
        "of an offered tool",
        "refunds",
        "def cancel_order(order_id: int) -> str",
        "def cancel_order(order_id: str) -> str",
    ),
    change_module(
        "annotation",
        "optional",
        "orders",
        "def lookup_customer(customer: int)",
        "def lookup_customer(customer: int | None)",
    ),
    change_module(
        "annotation", "field of a typed dictionary", "gifts", "ribbon: bool", "ribbon: int"
    ),
    change_module(
        "annotation",
        "member of an enum",
        "sizes",
        'LARGE = "large"',
        'LARGE = "large"\n    HUGE = "huge"',
    ),
    change_module(
        "annotation",
        "value of an enum",
        "sizes",
        'SMALL = "small"',
        'SMALL = "small"\n    TINY = "tiny"',
    ),
    change_module("default value", "cents", "refunds", "cents: int = 2000", "cents: int = 3000"),
    change_module(
        "default value", "text", "refunds", 'reason: str = "damaged"', 'reason: str = "late"'
    ),
    change_module("default value", "of a helper", "text", "width=24", "width=12", hub=True),
    change_module("default value", "of a partial", "gifts", "length=30", "length=40"),
    change_module(
        "default value",
        "of a dataclass",
        "settings",
        'desk: str = "front"',
        'desk: str = "back"',
        hub=True,
    ),
    change_module(
        "default value",
        "instance evaluated at import",
        "settings",
        "shop=Shop()",
        'shop=Shop(name="Lamp")',
        hub=True,
    ),
    change_module(
        "default value",
        "of a new parameter",
        "gifts",
        "def order_ribbon(gift: str)",
        'def order_ribbon(gift: str, colour: str = "red")',
    ),
    change_module(
        "parameter",
        "renamed",
        "regions",
        'def tell_region(customer: str) -> str:\n    """Tell the region of a customer."""\n    return f"{customer} in',
        'def tell_region(name: str) -> str:\n    """Tell the region of a customer."""\n    return f"{name} in',
    ),
    change_module(
        "parameter",
        "added without a default",
        "holidays",
        "def next_holiday(year: int)",
        "def next_holiday(year: int, count: int)",
    ),
    change_module(
        "parameter",
        "keyword only",
        "customs",
        "def quote_duty(weight: int)",
        "def quote_duty(*, weight: int)",
    ),
    change_module(
        "parameter",
        "order",
        "refunds",
        'cents: int = 2000, reason: str = "damaged"',
        'reason: str = "damaged", cents: int = 2000',
    ),
    change_module(
        "decorator",
        "argument",
        "gifts",
        '@add_signature("gift desk")',
        '@add_signature("the gifts")',
    ),
    change_module("decorator", "removed", "gifts", '@add_signature("gift desk")\n', ""),
    change_module(
        "decorator",
        "added",
        "gifts",
        '@add_signature("gift desk")',
        '@add_signature("gift desk")\n@repeat_word',
    ),
    change_module("decorator", "replaced", "gifts", '@add_signature("gift desk")', "@repeat_word"),
    change_module("decorator", "its wrapper's body", "decorators", "[{name}]", "<{name}>"),
    change_module(
        "decorator", "without wraps", "decorators", "        @functools.wraps(tool)\n", ""
    ),
    change_module("decorator", "cache removed", "catalog", "@lru_cache\n", ""),
    change_module("decorator", "property to method", "refunds", "    @property\n", ""),
    change_module(
        "decorator",
        "unused one",
        "decorators",
        '{tool(*args, **kwargs)}!"',
        '{tool(*args, **kwargs)}?"',
    ),
    change_module(
        "static or class method", "static body", "refunds", "cents // 10 * 10", "cents // 100 * 100"
    ),
    change_module(
        "static or class method",
        "class method",
        "refunds",
        "return cls()",
        "policy = cls()\n        policy.limit = 1000\n        return policy",
    ),
    change_module(
        "static or class method", "property", "refunds", 'return "policy"', 'return "terms"'
    ),
]
