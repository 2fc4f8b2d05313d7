"""Mutations of prompts, data, templates, child programs and names of files."""

from tests.affected_mutations.mutation import (
    Append,
    Delete,
    Link,
    Mode,
    Rename,
    Replace,
    Sql,
    Write,
    mutate,
)

ORDERS = "data/orders.sqlite"
ARCHIVE = "data/archive.sqlite"

PROMPTS = [
    mutate(
        "prompt", "refund", Replace("prompts/refund.md", "after you have looked it up", "at once")
    ),
    mutate("prompt", "catalogue", Replace("prompts/catalog.md", "name and the price", "price")),
    mutate(
        "prompt", "parcel, first line", Replace("prompts/parcel.md", "Parcel desk.", "Parcels.")
    ),
    mutate("prompt", "one space", Replace("prompts/general.md", "Be brief", "Be  brief")),
    mutate("prompt", "last line end", Append("prompts/general.md", "\n")),
    mutate(
        "prompt",
        "invisible letter",
        Replace("prompts/refund.md", "Refund desk", "Refund\u200b desk"),
    ),
    mutate("prompt", "deleted", Delete("prompts/catalog.md")),
    mutate("prompt", "emptied", Write("prompts/parcel.md", "")),
    mutate(
        "prompt",
        "swapped with another",
        Write(
            "prompts/catalog.md",
            "Parcel desk.\nQuote the price of a parcel before you promise it.\n",
        ),
        Write("prompts/parcel.md", "Catalogue desk.\nAnswer with the name and the price.\n"),
    ),
    mutate(
        "new override prompt",
        "refund",
        Write("prompts/overrides/refund.md", "Refund desk.\nRefuse.\n"),
    ),
    mutate(
        "new override prompt",
        "catalogue",
        Write("prompts/overrides/catalog.md", "Catalogue desk.\nBe brief.\n"),
    ),
    mutate(
        "new override prompt",
        "of the linked policy",
        Write("prompts/overrides/policy.md", "Policy desk.\nNo returns.\n"),
    ),
    mutate(
        "new override prompt",
        "linked to an existing file",
        Write("prompts/overrides/keep", ""),
        Link("prompts/overrides/parcel.md", "../orphan.md"),
    ),
    mutate(
        "few-shot",
        "added",
        Write("examples/refund/early.json", '{"customer": "Too early", "desk": "I wait."}'),
    ),
    mutate("few-shot", "removed", Delete("examples/refund/late.json")),
    mutate(
        "few-shot",
        "changed",
        Replace("examples/refund/damaged.json", "I refund it.", "I replace it."),
    ),
    mutate(
        "few-shot",
        "renamed to another place in the order",
        Rename("examples/refund/damaged.json", "zero.json"),
    ),
    mutate(
        "few-shot",
        "renamed within the order, which changes nothing",
        Rename("examples/refund/late.json", "later.json"),
    ),
    mutate("few-shot", "folder removed", Delete("examples/refund")),
    mutate("template", "price", Replace("templates/price.j2", "costs", "is sold for")),
    mutate("template", "stock", Replace("templates/stock.j2", " of {{ item }}", " x {{ item }}")),
    mutate(
        "template", "base", Replace("templates/base.j2", "{% block body %}", "-- {% block body %}")
    ),
    mutate(
        "template",
        "block that only one overrides",
        Replace("templates/stock.j2", "{% block title %}Stock desk{% endblock %}\n", ""),
    ),
    mutate(
        "template",
        "default of an overridden block",
        Replace("templates/base.j2", "Desk{%", "The desk{%"),
    ),
    mutate("template include", "footer", Replace("templates/partials/footer.j2", "Kind", "Warm")),
    mutate(
        "template include",
        "optional file is new",
        Write("templates/partials/holiday.j2", " Happy holidays!"),
    ),
    mutate("template include", "removed", Delete("templates/partials/footer.j2")),
    mutate(
        "template include",
        "footer becomes a link",
        Link("templates/partials/footer.j2", "../../prompts/orphan.md"),
    ),
    mutate("symlink", "content of its target", Replace("shared/policy.md", "30 days", "14 days")),
    mutate(
        "symlink", "another target", Link("prompts/policy.md", "../shared/../prompts/orphan.md")
    ),
    mutate(
        "symlink",
        "another target with the same content",
        Link("prompts/policy.md", "../shared/policy_copy.md"),
    ),
    mutate(
        "symlink",
        "becomes a file",
        Delete("prompts/policy.md"),
        Write("prompts/policy.md", "Policy desk.\nAsk.\n"),
    ),
    mutate("symlink", "dangling", Delete("shared/policy.md")),
    mutate("symlink", "file becomes a link", Link("prompts/general.md", "orphan.md")),
]

DATA = [
    mutate("cached row", "price", Replace("data/stock.csv", "lamp,2900", "lamp,3100")),
    mutate(
        "cached row",
        "count, which the second user reads",
        Replace("data/stock.csv", "fern,1200,9", "fern,1200,8"),
    ),
    mutate("cached row", "read by nobody", Replace("data/stock.csv", "vase,1850", "vase,1950")),
    mutate(
        "cached row",
        "column order, which changes nothing",
        Write("data/stock.csv", "count,item,price\n4,lamp,2900\n9,fern,1200\n0,vase,1850\n"),
    ),
    mutate("cached row", "missing", Replace("data/stock.csv", "fern,1200,9\n", "")),
    mutate(
        "cached row",
        "level of the first user",
        Replace("data/levels.json", '"gold": 9', '"gold": 8'),
    ),
    mutate(
        "cached row",
        "level of the second user",
        Replace("data/levels.json", '"standard": 5', '"standard": 6'),
    ),
    mutate(
        "database row", "item", Sql(ORDERS, "UPDATE orders SET item = 'lamp shade' WHERE id = 1001")
    ),
    mutate("database row", "deleted", Sql(ORDERS, "DELETE FROM orders WHERE id = 1002")),
    mutate(
        "database row",
        "of the first cached customer",
        Sql(ORDERS, "UPDATE customers SET name = 'Ada L.' WHERE id = 7"),
    ),
    mutate(
        "database row",
        "of the second cached customer",
        Sql(ORDERS, "UPDATE customers SET level = 'gold' WHERE id = 8"),
    ),
    mutate(
        "database row", "schema", Sql(ORDERS, "ALTER TABLE customers RENAME COLUMN level TO rank")
    ),
    mutate(
        "database row",
        "in an attached database",
        Sql(ARCHIVE, "UPDATE orders SET item = 'old vase'"),
    ),
    mutate("database row", "attached database removed", Delete(ARCHIVE)),
    mutate(
        "database row",
        "in a write-ahead log",
        Sql(ORDERS, "PRAGMA journal_mode = WAL; UPDATE orders SET cents = 1 WHERE id = 1001"),
    ),
    mutate("memory map", "content", Replace("data/vectors.bin", "fern....vase", "fern....rose")),
    mutate("memory map", "length", Append("data/vectors.bin", "oak.....")),
    mutate("memory map", "part that nobody reads", Replace("data/vectors.bin", "lamp", "lump")),
    mutate(
        "file read at import", "changed", Replace("data/holidays.txt", "2026-12-25", "2026-12-24")
    ),
    mutate("file read at import", "removed", Delete("data/holidays.txt")),
    mutate("file read by C code", "changed", Replace("data/lost.txt", "glove", "hat")),
    mutate(
        "file read by C code",
        "removed and made anew",
        Delete("data/lost.txt"),
        Write("data/lost.txt", "Lost property: two gloves\n"),
    ),
    mutate(
        "data of another process of Python", "longer", Append("data/season.txt", "and lights\n")
    ),
    mutate("bytes of a file", "raw", Replace("prompts/raw.txt", "nine to five", "ten to five")),
    mutate(
        "bytes of a file",
        "line ends written as such",
        Write("prompts/raw.txt", "Opening hours\r\nnine to five\r\n"),
    ),
    mutate(
        "bytes of a file",
        "byte order mark",
        Write("prompts/raw.txt", "\ufeffOpening hours\nnine to five\n"),
    ),
    mutate(
        "configuration file",
        "changed value",
        Replace("shopdesk.toml", "opening = 9", "opening = 8"),
    ),
    mutate("configuration file", "new value", Append("shopdesk.toml", "pause = 12\n")),
    mutate(
        "configuration file", "optional one is new", Write("desk.defaults", "[hours]\nmonday = 9\n")
    ),
    mutate(
        "configuration file",
        "optional one in the data is new",
        Write("data/hours.local", "[hours]\nmonday = 10\n"),
    ),
    mutate("names in a folder", "file added", Write("data/regions/north/harbour.txt", "open")),
    mutate("names in a folder", "folder added", Write("data/regions/west/depot.txt", "open")),
    mutate("names in a folder", "renamed", Rename("data/regions/south/depot.txt", "store.txt")),
    mutate("names in a folder", "folder removed", Delete("data/regions/south")),
    mutate(
        "names in a folder",
        "content, which nobody reads",
        Write("data/regions/south/depot.txt", "closed"),
    ),
    mutate("existence of a file", "flag is new", Write("data/flags/holiday", "")),
    mutate("existence of a file", "flag is a folder", Write("data/flags/holiday/keep", "")),
    mutate(
        "existence of a file",
        "flag is a dangling link, which does not exist",
        Write("data/flags/keep", ""),
        Link("data/flags/holiday", "nowhere"),
    ),
    mutate("existence of a file", "flag that nobody asks for", Write("data/flags/easter", "")),
    mutate("size of a file", "longer", Append("data/season.txt", "!")),
    mutate("size of a file", "same length", Replace("data/season.txt", "candles", "lantern")),
    mutate("mode of a file", "executable", Mode("data/badge.sh", 0o755)),
    mutate(
        "target of a link, read as text",
        "relative in another way",
        Link("prompts/policy.md", "../prompts/../shared/policy_copy.md"),
    ),
    mutate("module named in a try", "new", Write("flowerprices.py", "PRICE = 'three each'\n")),
    mutate(
        "module named in a try",
        "new in the vendor's folder",
        Write("vendor/flowerprices.py", "PRICE = 'four each'\n"),
    ),
    mutate(
        "module named in a try",
        "new beside the tests",
        Write("tests/flowerprices.py", "PRICE = 'five each'\n"),
    ),
    mutate(
        "module named in a try", "new package without a file", Write("flowerprices/readme.txt", "")
    ),
]

CHILDREN = [
    mutate(
        "child script",
        "body",
        Replace("scripts/rates.py", "format_rate(RATES", '"~" + format_rate(RATES'),
    ),
    mutate(
        "child script",
        "module that only it imports",
        Replace("scripts/rate_format.py", ".2f", ".3f"),
    ),
    mutate(
        "child script",
        "module beside it that shadows the library",
        Write("scripts/json.py", "def loads(text):\n    return {'USD': 9}\n"),
    ),
    mutate("child script", "of a shell", Replace("scripts/label.sh", "Label for", "Tag for")),
    mutate(
        "child script", "of a shell, started by asyncio", Replace("data/badge.sh", "hello", "hi")
    ),
    mutate("data of a child script", "rate", Replace("data/fx.json", "1.08", "1.18")),
    mutate(
        "data of a child script",
        "read by a shell",
        Replace("data/lost.txt", "one glove", "one sock"),
    ),
    mutate("data of a child script", "removed", Delete("data/fx.json")),
    mutate(
        "schema of a tool server",
        "description",
        Replace("servers/warehouse_schema.json", "Find the shelf", "Look up the shelf"),
    ),
    mutate(
        "schema of a tool server",
        "name",
        Replace("servers/warehouse_schema.json", "find_shelf", "locate_item"),
    ),
    mutate(
        "script of a tool server", "first user", Replace("servers/warehouse.py", '"A1"', '"B1"')
    ),
    mutate(
        "script of a tool server", "second user", Replace("servers/warehouse.py", '"G7"', '"G8"')
    ),
    mutate(
        "script of a tool server",
        "its client",
        Replace(
            "shopdesk/children.py",
            "return json.loads(self.process.stdout.readline())",
            "return json.loads(self.process.stdout.readline().replace('A', 'Z'))",
        ),
    ),
]

ALL = PROMPTS + DATA + CHILDREN
