"""Skills in the open format: what is read, what is refused and where, what an agent may read."""

from pathlib import Path

import pytest
from pydantic_ai.exceptions import ModelRetry

from ci_agent_eval.engine.skill_files import CAP_BYTES, build_skill_toolset, read_skill_file
from ci_agent_eval.engine.skills import Skill
from ci_agent_eval.errors import InputError
from tests.tables import each_row

FRONT = {"name": "financial-advisor", "description": "Advises on money. Use it for budgets."}


def a_skill_file(body: str = "# Advice\n\nSave first.", **fields: str) -> str:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in (FRONT | fields).items()]
    return "\n".join(["---", *lines, "---", body, ""])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "financial-advisor"
    path.mkdir()
    (path / "SKILL.md").write_text(a_skill_file())
    return path


@pytest.fixture
def full(folder: Path) -> Path:
    (folder / "references" / "deep").mkdir(parents=True)
    (folder / "scripts").mkdir()
    (folder / "references" / "rates.md").write_text("Rates: 3 %")
    (folder / "references" / "deep" / "tax.md").write_text("Tax: 25 %")
    (folder / "references" / ".hidden").write_text("no")
    (folder / "scripts" / "sum.py").write_text("print(1 + 1)")
    (folder / "notes.md").write_text("not for agents")
    return folder


def refusal(folder: Path, text: str) -> str:
    """Return what is said of a SKILL.md, without its folder."""
    (folder / "SKILL.md").write_text(text)
    with pytest.raises(InputError) as caught:
        Skill.from_path(folder)
    return str(caught.value).replace(str(folder / "SKILL.md"), "SKILL.md")


def test_a_skill_is_read_with_all_its_fields(folder: Path) -> None:
    front = [
        "---",
        *(f"{name}: {value}" for name, value in FRONT.items()),
        "license: Apache-2.0",
        "compatibility: Needs git",
        "allowed-tools: Bash(git:*) Read",
        "metadata:",
        "  author: someone",
        '  version: "1.0"',
        "---",
        "Save first.",
    ]
    (folder / "SKILL.md").write_text("\n".join(front))
    skill = Skill.from_path(folder)
    assert (skill.name, skill.description) == tuple(FRONT.values())
    assert (skill.license, skill.compatibility) == ("Apache-2.0", "Needs git")
    assert skill.allowed_tools == ("Bash(git:*)", "Read")
    assert dict(skill.metadata) == {"author": "someone", "version": "1.0"}
    assert skill.content == "Save first."


def test_the_file_itself_names_the_skill_too(folder: Path) -> None:
    assert Skill.from_path(folder / "SKILL.md") == Skill.from_path(str(folder))


def test_content_lists_what_can_be_read(full: Path) -> None:
    skill = Skill.from_path(full)
    assert skill.files == ("references/deep/tax.md", "references/rates.md", "scripts/sum.py")
    assert skill.content.endswith(
        "Files of this skill, for read_skill_reference:\n"
        "- references/deep/tax.md\n- references/rates.md\n- scripts/sum.py"
    )


@each_row(
    ("text", "said"),
    [
        ("", "SKILL.md:1: must begin with front matter"),
        ("# Advice", "SKILL.md:1: must begin with front matter"),
        ("---\nname: x\n", "SKILL.md:1: opens front matter that no second line"),
        ("---\n---\n", "SKILL.md:1: must have front matter of the form"),
        ("---\n- name\n---\n", "SKILL.md:1: must have front matter of the form"),
        ("---\nname: [x\n---\n", "SKILL.md:"),
        ("---\nname: a: b\n---\n", "SKILL.md:2: "),
        ("---\ndescription: x\n---\n", "SKILL.md:2: name: is required"),
        ("---\nname: financial-advisor\n---\n", "SKILL.md:2: description: is required"),
        (a_skill_file(description='"  "'), "SKILL.md:3: description: String should have at least"),
        (a_skill_file(description=""), "SKILL.md:3: description: Input should be a valid string"),
        (a_skill_file(description="[a, b]"), "SKILL.md:3: description: Input should be a valid"),
        (a_skill_file(description="x" * 1025), "SKILL.md:3: description: String should have at m"),
        (a_skill_file(compatibility="x" * 501), "SKILL.md:4: compatibility: String should have at"),
        (a_skill_file(name="Financial"), "SKILL.md:2: name: must be lower-case letters"),
        (a_skill_file(name="-x"), "SKILL.md:2: name: must be lower-case letters"),
        (a_skill_file(name="a--b"), "SKILL.md:2: name: must be lower-case letters"),
        (a_skill_file(name="x" * 65), "SKILL.md:2: name: String should have at most 64"),
        (a_skill_file(name="budget"), "its folder is 'financial-advisor'"),
        (a_skill_file(metadata="text"), "SKILL.md:4: metadata: must be a table"),
        (a_skill_file(metadata="{a: [b]}"), "SKILL.md:4: metadata.a: Input should be a valid str"),
        (a_skill_file(vendor="x"), "SKILL.md:4: vendor: unknown key"),
        ("---\nname: x\nname: y\n---\n", "SKILL.md:3: key 'name' is there twice (first in line 2)"),
        ("---\n? [a]\n: b\n---\n", "SKILL.md:2: "),
        (f"---\nname: {'[' * 20_000}\n---\n", "nested"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(folder: Path, text: str, said: str) -> None:
    assert said in refusal(folder, text)


def test_a_field_of_another_program_can_be_let_pass(folder: Path) -> None:
    (folder / "SKILL.md").write_text(a_skill_file(argument_hint="[amount]"))
    assert Skill.from_path(folder, extra_fields=["argument-hint"]).name == "financial-advisor"


def test_text_that_is_no_utf8_is_named_with_its_line(folder: Path) -> None:
    (folder / "SKILL.md").write_bytes(a_skill_file().encode() + b"\xff")
    with pytest.raises(InputError, match=r"SKILL.md:8: is not UTF-8"):
        Skill.from_path(folder)


def test_a_folder_without_a_skill_says_what_a_skill_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"A skill is a folder with a SKILL\.md"):
        Skill.from_path(tmp_path)


def test_a_mark_and_windows_line_ends_are_read(folder: Path) -> None:
    text = a_skill_file().replace("\n", "\r\n")
    (folder / "SKILL.md").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert Skill.from_path(folder).description == FRONT["description"]


def test_a_link_out_of_the_folder_is_refused(full: Path) -> None:
    (full / "references" / "secret.md").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match=r"secret\.md: leads out of the skill's folder"):
        Skill.from_path(full)


@each_row(
    "name", ["references/rates.md", "rates.md", "./references/rates.md", "references//rates.md"]
)
def test_a_reference_is_read_by_its_name(full: Path, name: str) -> None:
    assert read_skill_file(Skill.from_path(full), name) == "Rates: 3 %"


@each_row(
    "name",
    [
        "",
        "/etc/passwd",
        "../financial-advisor/references/rates.md",
        "references/../notes.md",
        "references/../../../etc/passwd",
        "notes.md",
        "SKILL.md",
        "references/.hidden",
        "references",
        "rates.md\0",
    ],
)
def test_nothing_else_is_read(full: Path, name: str) -> None:
    with pytest.raises(ModelRetry, match=r"has no file .* It has: references/deep/tax.md"):
        read_skill_file(Skill.from_path(full), name)


def test_a_file_that_became_a_link_is_not_followed(full: Path) -> None:
    skill = Skill.from_path(full)
    (full / "references" / "rates.md").unlink()
    (full / "references" / "rates.md").symlink_to("/etc/passwd")
    with pytest.raises(ModelRetry, match="leads out of the skill's folder"):
        read_skill_file(skill, "rates.md")


def test_a_file_that_went_away_is_told(full: Path) -> None:
    skill = Skill.from_path(full)
    (full / "references" / "rates.md").unlink()
    with pytest.raises(ModelRetry, match="cannot be read now"):
        read_skill_file(skill, "rates.md")


def test_a_long_file_is_cut_and_said_to_be(full: Path) -> None:
    (full / "references" / "rates.md").write_text("x" * (CAP_BYTES + 5))
    text = read_skill_file(Skill.from_path(full), "rates.md")
    assert text == "x" * CAP_BYTES + f"\n[cut: the first {CAP_BYTES} of {CAP_BYTES + 5} bytes]"


def test_a_skill_that_brings_nothing_along_needs_no_tool(folder: Path) -> None:
    assert build_skill_toolset(Skill.from_path(folder)) is None
