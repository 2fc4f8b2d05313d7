"""Files that no scenario depended on, other bytes of the same blob, and what Git hides."""

from tests.affected_mutations.mutation import (
    Append,
    Delete,
    Edit,
    Mutation,
    Replace,
    Write,
    control,
    mutate,
)

CHECKOUT = ("rm -r -q --cached .", "reset -q --hard")
"""Writes the files of the working tree anew."""

BODY = Replace("shopdesk/shipping.py", "weight * settings.TARIFF", "weight + settings.TARIFF")
PROMPT = Replace("prompts/refund.md", "after you have looked it up", "later")


def attributes(name: str, line: str) -> Mutation:
    edit = Write(".gitattributes", f"{line}\n")
    return Mutation(name, "attributes of Git", (edit,), git=CHECKOUT)


def hidden(name: str, *edits: Edit, git: tuple[str, ...] = ()) -> Mutation:
    return Mutation(name, "change that is not committed", edits, git=git, committed=False)


SHADOWS = [
    mutate(
        "shadowed standard library", "queue", Write("queue.py", "raise ImportError('shadowed')\n")
    ),
    mutate(
        "shadowed standard library",
        "csv",
        Write(
            "csv.py",
            "def DictReader(file):\n    return [{'item': name, 'price': 1, 'count': 2} for name in ('lamp', 'fern')]\n",
        ),
    ),
    mutate(
        "shadowed standard library",
        "mmap",
        Write(
            "mmap.py",
            "ACCESS_READ = 1\n\n\ndef mmap(*args, **kwargs):\n    raise OSError('no map')\n",
        ),
    ),
    mutate("shadowed standard library", "colorsys, which nobody imports", Write("colorsys.py", "")),
    mutate(
        "shadowed standard library",
        "runpy beside the tests",
        Write("tests/runpy.py", "def run_path(path):\n    return {'BONUS': 99}\n"),
    ),
    mutate(
        "shadowed package",
        "jinja2",
        Write(
            "jinja2.py",
            "class Environment:\n    def __init__(self, **options):\n        self.filters = {}\n\n    def get_template(self, name):\n        return self\n\n    def render(self, values):\n        return str(sorted(values))\n\n\ndef FileSystemLoader(path):\n    return path\n",
        ),
    ),
    mutate(
        "shadowed package",
        "ratecard",
        Write("ratecard.py", "def find_rate(country):\n    return 'free'\n"),
    ),
    mutate(
        "shadowed package",
        "pricelib, as a package",
        Write("pricelib/__init__.py", "def find_price(item):\n    return 'dear'\n"),
    ),
    mutate(
        "shadowed package",
        "tinytax, which the vendor's folder has",
        Write("tinytax.py", "def add_tax(cents):\n    return cents\n"),
    ),
    mutate(
        "shadowed module",
        "package beside the module",
        Write(
            "shopdesk/shipping/__init__.py",
            'def quote_parcel(weight: int) -> int:\n    """Quote the price of a parcel by its weight."""\n    return 0\n',
        ),
    ),
    mutate(
        "shadowed module",
        "helpers at the root",
        Write(
            "helpers.py",
            "class DeskTests:\n    question = 'Tell another mode'\n\n    def ask_desk(self, desk):\n        return desk.respond(self.question)\n\n\ndef replaced_word():\n    return 'Root'\n",
        ),
    ),
    mutate("shadowed module", "package of the tests", Write("tests/shopdesk/__init__.py", "")),
    mutate(
        "shadowed module",
        "the child's module",
        Write("scripts/pathlib.py", "raise ImportError('shadowed')\n"),
    ),
    mutate("start of Python", "path file, which nothing reads", Write("site.pth", "import os\n")),
    mutate(
        "start of Python",
        "sitecustomize at the root",
        Write("sitecustomize.py", "import os\n\nos.environ['SHOPDESK_HOURS'] = 'custom'\n"),
    ),
    mutate(
        "start of Python",
        "stub file, which nothing reads",
        Write("shopdesk/shipping.pyi", "def quote_parcel(weight: str) -> str: ...\n"),
    ),
]

GIT = [
    attributes("line ends", "*.txt eol=crlf"),
    attributes("line ends of all", "* text eol=crlf"),
    attributes("keyword", "prompts/manual.txt ident"),
    Mutation(
        "encoding",
        "attributes of Git",
        (Write(".gitattributes", "prompts/raw.txt text working-tree-encoding=UTF-16LE-BOM\n"),),
        # Only this file: git cannot read the others with it before they are checked out again.
        git=("add .gitattributes", "commit -q -m encoding", *CHECKOUT),
        committed=False,
    ),
    attributes("of a diff, which changes no byte", "*.md diff=markdown"),
    Mutation(
        "in a folder",
        "attributes of Git",
        (Write("prompts/.gitattributes", "raw.txt eol=crlf\n"),),
        git=CHECKOUT,
    ),
    Mutation(
        "local attributes",
        "attributes of Git",
        (Write(".git/info/attributes", "*.txt eol=crlf\n"),),
        git=CHECKOUT,
    ),
    Mutation(
        "line ends by configuration",
        "configuration of Git",
        git=("config core.autocrlf true", *CHECKOUT),
    ),
    Mutation(
        "links as files", "configuration of Git", git=("config core.symlinks false", *CHECKOUT)
    ),
    Mutation(
        "sparse checkout",
        "configuration of Git",
        git=("sparse-checkout set --no-cone /* !/prompts/catalog.md",),
    ),
    Mutation(
        "modes ignored",
        "configuration of Git",
        (Replace("data/season.txt", "candles", "gloves and candles"),),
        git=("config core.fileMode false",),
    ),
    Mutation("body", "shallow clone", (BODY,), shallow=True),
    Mutation("prompt", "shallow clone", (PROMPT,), shallow=True),
    Mutation(
        "data of a child", "shallow clone", (Replace("data/fx.json", "1.08", "1.28"),), shallow=True
    ),
    hidden("body", BODY),
    hidden("prompt", PROMPT),
    hidden("staged", PROMPT, git=("add -A",)),
    hidden("untracked override", Write("prompts/overrides/refund.md", "Untracked desk.\n")),
    hidden(
        "untracked module",
        Write(
            "shopdesk/rules/untracked.py",
            "from shopdesk.rules import register_rule\n\n\n@register_rule\ndef zz_untracked(cents):\n    return 'untracked'\n",
        ),
    ),
    hidden("deleted", Delete("examples/refund/late.json")),
    Mutation(
        "assumed unchanged",
        "change that Git hides",
        (Append("shopdesk/customs.py", "\nLOWEST = 0\n"),),
        git=("update-index --assume-unchanged shopdesk/customs.py",),
        committed=False,
    ),
    Mutation(
        "skipped in the working tree",
        "change that Git hides",
        (PROMPT,),
        git=("update-index --skip-worktree prompts/refund.md",),
        committed=False,
    ),
    Mutation(
        "replaced object",
        "change that Git hides",
        (Replace("prompts/general.md", "kind", "curt"),),
        git=("replace HEAD HEAD~1",),
    ),
    Mutation(
        "renamed branch",
        "change that Git hides",
        (Replace("prompts/parcel.md", "promise", "offer"),),
        git=("checkout -q -b other", "commit -q --allow-empty -m empty"),
    ),
    Mutation(
        "history without the baseline",
        "history",
        (BODY,),
        git=("checkout -q --orphan fresh", "commit -q -m fresh"),
    ),
    Mutation(
        "squashed on the baseline",
        "history",
        (PROMPT, BODY),
        git=("reset -q --soft HEAD~1", "commit -q -m squashed"),
    ),
    Mutation(
        "merge of two changes",
        "history",
        (PROMPT,),
        git=(
            "checkout -q -b side HEAD~1",
            "mv prompts/orphan.md prompts/orphaned.md",
            "commit -q -m side",
            "merge -q --no-edit -m merge master",
        ),
    ),
]

CONTROLS = [
    control(
        "control: comment",
        "in a tool",
        Replace("shopdesk/shipping.py", "    return weight", "    # Per kilo.\n    return weight"),
    ),
    control(
        "control: comment",
        "in a hub",
        Replace(
            "shopdesk/text.py",
            "    # Two digits, as on a receipt.\n",
            "    # Two digits after the point.\n",
        ),
        hub=True,
    ),
    control(
        "control: comment",
        "removed",
        Replace("shopdesk/text.py", "    # Two digits, as on a receipt.\n", ""),
        hub=True,
    ),
    control("control: comment", "of a module", Append("shopdesk/refunds.py", "\n# The end.\n")),
    control(
        "control: comment",
        "in settings",
        Replace("shopdesk/settings.py", "TARIFF = 7", "TARIFF = 7  # per kilo"),
        hub=True,
    ),
    control("control: comment", "in a test", Append("tests/test_refunds.py", "\n# The end.\n")),
    control(
        "control: layout",
        "blank lines",
        Replace("shopdesk/catalog.py", "def clean_row", "\n\n\ndef clean_row"),
    ),
    control(
        "control: layout",
        "line break",
        Replace(
            "shopdesk/shipping.py",
            "return weight * settings.TARIFF",
            "return (\n        weight\n        * settings.TARIFF\n    )",
        ),
    ),
    control(
        "control: layout",
        "quotes",
        Replace("shopdesk/greetings.py", 'return "Hello"', "return 'Hello'"),
    ),
    control("control: README", "text", Append("README.md", "\nMore about the shop.\n")),
    control("control: README", "deleted", Delete("README.md")),
    control("control: README", "new document", Write("docs/desk.md", "# The desk\n")),
    control(
        "control: unused function",
        "body",
        Replace("shopdesk/text.py", '"*" * 10', '"-" * 10'),
        hub=True,
    ),
    control(
        "control: unused function",
        "body in settings",
        Replace("shopdesk/settings.py", '"nobody asks"', '"somebody asks"'),
        hub=True,
    ),
    control(
        "control: unused function",
        "body beside a tool",
        Replace("shopdesk/shown.py", "return value + 2", "return value + 3"),
    ),
    control(
        "control: unused function",
        "new",
        Append("shopdesk/receipts.py", "\n\ndef print_nothing():\n    return ''\n"),
    ),
    control("control: unused file", "prompt", Append("prompts/orphan.md", "Still nobody.\n")),
    control("control: unused file", "data", Append("examples/refund/notes.txt", "More notes.\n")),
    control(
        "control: unused file",
        "workflow",
        Write(".github/workflows/tests.yml", "on: push\njobs: {}\n"),
    ),
    control("control: unused file", "picture", Write("docs/desk.svg", "<svg/>\n")),
    control(
        "control: type comment",
        "in a function",
        Replace(
            "shopdesk/customs.py",
            "    return weight + DUTY",
            "    # type: ignore\n    return weight + DUTY",
        ),
    ),
    Mutation(
        "revert",
        "control: no difference",
        (PROMPT,),
        git=("revert --no-edit HEAD",),
        is_control=True,
    ),
    Mutation(
        "empty commit",
        "control: no difference",
        git=("commit -q --allow-empty -m empty",),
        is_control=True,
    ),
]

ALL = SHADOWS + GIT + CONTROLS
