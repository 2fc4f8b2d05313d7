"""The report for a terminal: a block for each cause, then the verdict, which is read first.

It has the cards and the lists of the comment, from the bottom up: a reader starts at the last line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.analysis.failure_causes import CauseRole
from ci_agent_eval.analysis.judge_agreement import JudgeAgreement, JudgedCheck
from ci_agent_eval.contract.wording import count_columns, without_commands, wrap_columns
from ci_agent_eval.render.cards.model import (
    SENTENCE_LIMIT,
    CardBlock,
    CardExample,
    CauseCard,
    DiffBlock,
    ListBlock,
    OutputBlock,
    ParagraphBlock,
)
from ci_agent_eval.render.change_lists import ChangeKind
from ci_agent_eval.render.escape import escape_terminal, visible_lines
from ci_agent_eval.render.numbers import count_noun, format_count, format_percent, format_score
from ci_agent_eval.render.phrases import get_phrase_text
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.terminal import (
    BLUE,
    BOLD,
    DIM,
    GREEN,
    RED,
    YELLOW,
    TerminalStyle,
)

MIN_WIDTH = 40
MAX_WIDTH = 100
"""Longer lines are hard to read."""
MOST_CARDS = 10
MOST_LINES = 20
"""Lines of a diff, of output, or of a list in a block."""
MOST_NAMES = 20
TEXT_LIMIT = 4_000
"""Characters of a diff or of output."""
_LABEL_WIDTH = 11

_CARD_CODES: dict[CauseRole, str] = {
    "gates": RED,
    "contributes": RED,
    "warns": YELLOW,
    "informs": BLUE,
}
_DIFF_CODES = {"-": RED, "+": GREEN}
_LABELS: dict[ChangeKind, tuple[str, str]] = {
    "unknown": ("Unknown", DIM),
    "not_compared": ("Not compared", DIM),
    "now": ("Now", DIM),
    "worse": ("Worse", RED),
    "better": ("Better", GREEN),
    "different": ("Different", BLUE),
    "unchanged": ("Unchanged", DIM),
}


def render_terminal(view: ReportView, *, color: bool, width: int) -> str:
    """Return the report as lines of about `width` columns; colour adds nothing but colour."""
    style = TerminalStyle(min(max(width, MIN_WIDTH), MAX_WIDTH), color)
    blocks = ["\n".join(block) for block in _list_blocks(view.cards, style)]
    blocks.append("\n".join(_list_verdict(view, style)))
    # Wrapping may have moved a command to the start of a line.
    return without_commands("\n\n".join(blocks)) + "\n"


def _list_blocks(cards: Sequence[CauseCard], style: TerminalStyle) -> Iterator[Sequence[str]]:
    """Yield the blocks, the most important one last."""
    if rest := cards[MOST_CARDS:]:
        scenarios = len(frozenset().union(*(card.scenarios for card in rest)))
        where = f" in {count_noun(scenarios, 'scenario')}" if scenarios else ""
        yield [f"{count_noun(len(rest), 'more cause')}{where}, in verdict.json"]
    for card in reversed(cards[:MOST_CARDS]):
        yield list(_render_card(card, style))


def _render_card(card: CauseCard, style: TerminalStyle) -> Iterator[str]:
    code = f"{BOLD};{_CARD_CODES[card.role]}"
    word = "warning: " if card.role == "warns" else ""
    title = wrap_columns(f"── {word}{get_phrase_text(card.summary)}", style.width, "   ")
    if len(title) == 1:
        title = [f"{title[0]} {'─' * (style.width - count_columns(title[0]) - 1)}".rstrip()]
    yield from (style.paint(line, code) for line in title)
    for block in card.body:
        yield from _render_block(block, style)
    if card.example is not None:
        yield from _render_example(card, card.example, style)


def _render_block(block: CardBlock, style: TerminalStyle) -> Iterator[str]:
    if isinstance(block, DiffBlock):
        lines = visible_lines("\n".join(block.lines), TEXT_LIMIT).split("\n")
        yield from _cut(_render_diff(lines, style), MOST_LINES)
    elif isinstance(block, OutputBlock):
        lines = visible_lines(block.text, TEXT_LIMIT).split("\n")
        yield from _cut(_indent(lines, style), MOST_LINES)
    elif isinstance(block, ParagraphBlock):
        yield from _indent([get_phrase_text(block.text)], style)
    elif isinstance(block, ListBlock):
        items = [f"- {get_phrase_text(line)}" for line in block.lines]
        yield from _indent(_count_rest(items, MOST_LINES), style)
    else:
        names = [escape_terminal(name, 60) for name in block.names]
        yield from _indent([", ".join(_count_rest(names, MOST_NAMES))], style)


def _render_diff(lines: Sequence[str], style: TerminalStyle) -> Iterator[str]:
    """Yield the lines of a diff, before in red and now in green, long ones wrapped."""
    for line in lines:
        if line.startswith("@@"):
            yield from (style.paint(f"  {one}", DIM) for one in wrap_columns(line, style.width - 2))
            continue
        mark = line[:1] if line[:1] in _DIFF_CODES else " "
        for text in wrap_columns(f"  {mark} {line[1:].removeprefix(' ')}", style.width, "    "):
            yield style.paint(text, _DIFF_CODES[mark]) if mark != " " else text


def _indent(texts: Sequence[str], style: TerminalStyle) -> Sequence[str]:
    lines = (line for text in texts for line in wrap_columns(text, style.width - 2))
    return [f"  {line}".rstrip() for line in lines]


def _cut(lines: Iterator[str] | Sequence[str], most: int) -> Sequence[str]:
    found = list(lines)
    rest = len(found) - most
    return [*found[:most], f"  and {count_noun(rest, 'more line')}"] if rest > 0 else found


def _count_rest(items: Sequence[str], most: int) -> Sequence[str]:
    rest = len(items) - most
    return [*items[:most], f"and {format_count(rest)} more"] if rest > 0 else items


def _render_example(card: CauseCard, example: CardExample, style: TerminalStyle) -> Iterator[str]:
    """Yield the parts of the example that the card does not show, and its command."""
    texts = [get_phrase_text(one.text) for one in card.body if isinstance(one, ParagraphBlock)]
    outputs = [one.text for one in card.body if isinstance(one, OutputBlock)]
    shown = " ".join((get_phrase_text(card.summary), *texts))
    parts = {
        "example": escape_terminal(example.title, 60) if len(card.scenarios) > 1 else "",
        "message": (
            ""
            if not example.message or example.message in outputs
            else escape_terminal(example.message, SENTENCE_LIMIT)
        ),
        "place": escape_terminal(example.place.text) if example.place.file else "",
    }
    for label, text in parts.items():
        if text and text not in shown:
            indent = " " * (_LABEL_WIDTH + 2)
            yield from wrap_columns(f"  {label:<{_LABEL_WIDTH}}{text}", style.width, indent)
    if example.command:  # on one line, so that it can be copied
        yield f"  {'again':<{_LABEL_WIDTH}}{example.command}"


def _list_verdict(view: ReportView, style: TerminalStyle) -> Iterator[str]:
    """Yield the verdict, the lists of changes, and the counts."""
    yield "═" * style.width
    for line in wrap_columns(view.headline, style.width):
        yield style.paint(line, f"{BOLD};{GREEN if view.has_passed else RED}")
    for change in view.changes:
        label, code = _LABELS[change.kind]
        yield from _render_change(label, code, get_phrase_text(change.text), style)
    for label, names in _list_apart(view):
        text = ", ".join(_count_rest([escape_terminal(name, 60) for name in names], MOST_NAMES))
        yield from _render_change(label, YELLOW, text, style)
    yield from wrap_columns(" · ".join(_list_ending(view)), style.width)


def _render_change(label: str, code: str, text: str, style: TerminalStyle) -> Iterator[str]:
    head = f"{label:<{_LABEL_WIDTH}}" if len(label) < _LABEL_WIDTH else f"{label}: "
    first, *others = wrap_columns(head + text, style.width, " " * _LABEL_WIDTH)
    yield style.paint(label, code) + first[len(label) :]
    yield from others


def _list_apart(view: ReportView) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the scenarios that did not decide, with a label; none: no pair."""
    found = (
        ("Flaky", [title for title, *_ in view.flaky]),
        ("Advisory", [row.name.title for row in view.failing_advisory_scenarios]),
        (
            "Quarantine",
            [f"{row.name.title} until {row.quarantined_until}" for row in view.quarantined],
        ),
        ("Accepted", [reason.line for reason in view.acknowledged]),
    )
    yield from (pair for pair in found if pair[1])


def _list_ending(view: ReportView) -> Iterator[str]:
    yield from view.ending
    if view.base is not None:
        words, label = view.base
        yield f"{words} {escape_terminal(label)}" if view.comparison else "no baseline"
    if view.suite != "default":
        yield f"suite {escape_terminal(view.suite, 60)}"


MAX_ERRORS = 5
"""Errors of judges that are shown; further ones are counted."""


def render_judges(
    checks: Sequence[JudgedCheck], reasons: Sequence[str], errors: Sequence[str], transcripts: int
) -> str:
    """Return the figures of each assertion, and why the judging failed."""
    lines = [f"{count_noun(transcripts, 'transcript')} judged, no agent run", ""]
    for check in checks:
        lines += [*_list_check_lines(check), ""]
    if errors:
        lines.append(f"{count_noun(len(errors), 'transcript')} without a verdict:")
        lines += [*_list_first(errors, MAX_ERRORS), ""]
    if reasons:
        lines += ["Failed:", *(f"  {escape_terminal(reason)}" for reason in reasons)]
    return "".join(f"{line}\n" for line in lines)


def _list_check_lines(check: JudgedCheck) -> Iterator[str]:
    transcripts = count_noun(check.transcripts, "transcript")
    scenarios = count_noun(check.scenarios, "scenario")
    model = "" if check.is_judged else ", without a model"
    yield f"{escape_terminal(check.name)} ({transcripts} of {scenarios}{model})"
    yield f"  passed  {check.passed} of {check.transcripts}; score {format_score(check.score)}"
    if check.agreement is not None:
        yield from _list_agreement_lines(check.agreement)


def _list_agreement_lines(found: JudgeAgreement) -> Iterator[str]:
    share = format_percent(found.agreed / found.labels)
    limits = f"{format_percent(found.low)} to {format_percent(found.high)}"
    kappa = (
        "no kappa, as all labels are the same"
        if found.kappa is None
        else f"kappa {format_score(found.kappa)}"
    )
    yield f"  labels  agreement {share} of {found.labels} (95 %: {limits}); {kappa}"
    if found.pass_labels:
        right = f"{found.judged_pass} of {found.pass_labels}"
        yield f"          labelled pass: the judge passes {right}"
    if found.fail_labels:
        right = f"{found.judged_fail} of {found.fail_labels}"
        yield f"          labelled fail: the judge fails {right}"


def _list_first(texts: Sequence[str], most: int) -> Iterator[str]:
    yield from (f"  {escape_terminal(text)}" for text in texts[:most])
    if len(texts) > most:
        yield f"  and {len(texts) - most} more"
