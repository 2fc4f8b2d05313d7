"""Changes of the agent's answers: contradicted, truncated, with a secret, of another scenario."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ci_agent_eval.analysis.mutations.recorded_transcript import (
    SENTENCE_END,
    AnswerPlace,
    Mutant,
    RecordedTranscript,
    build_mutant,
    is_question,
)
from ci_agent_eval.contract.mutations import Mutation, MutationKind

CANARY = "sk-" + "canary" + "0123456789abcdefghijklmn"
"""A made-up secret in the shape of an API key; in pieces, for scanners of source code."""

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_DENIALS = (
    (re.compile(r"\b(?:cannot|can['\u2019]t)\b"), "can"),
    (re.compile(r"\bwon['\u2019]t\b"), "will"),
    (re.compile(r"\b(is|are|was|were|do|does|did|has|have|had)n['\u2019]t\b"), r"\1"),
    (re.compile(r"\b(?:not|never) "), ""),
)
"""Words that deny, each with the text that affirms."""
_VERBS = re.compile(
    r"\b(am|is|are|was|were|will|would|can|could|should|must|may|has|have|had|does|do|did)\b",
    re.IGNORECASE,
)


def contradict_answers(recorded: RecordedTranscript) -> Iterator[Mutant]:
    """Yield the transcript with the contrary of each answer, and with other numbers in it."""
    for answer in recorded.answers:
        for text in (change_numbers(answer.text), contradict_text(answer.text)):
            if text != answer.text:
                yield _replace_answer("contradict_answer", recorded, answer, text)


def contradict_text(text: str) -> str:
    """Return a text with the contrary of its last sentence that is no question."""
    sentences = SENTENCE_END.split(text)
    for number in range(len(sentences) - 1, -1, -2):
        if not is_question(sentences[number]):
            sentences[number] = negate_sentence(sentences[number])
            break
    return "".join(sentences)


def negate_sentence(text: str) -> str:
    """Return the contrary: without its denial, with "not", or declared to be untrue."""
    for denial, affirmation in _DENIALS:
        if denial.search(text):
            return denial.sub(affirmation, text, count=1)
    if _VERBS.search(text):
        return _VERBS.sub(r"\1 not", text, count=1)
    return f"It is not true that: {text}"


def change_numbers(text: str) -> str:
    """Return a text with other numbers of the same length."""
    return _NUMBER.sub(lambda match: _change_number(match[0]), text)


def _change_number(number: str) -> str:
    first = int(number[0]) % 9 + 1  # 1 to 9, and never the same
    return f"{first}{number[1:]}"


def truncate_answers(recorded: RecordedTranscript) -> Iterator[Mutant]:
    """Yield the transcript with the first half of the words of each answer."""
    for answer in recorded.answers:
        words = re.findall(r"\S+\s*", answer.text)
        if len(words) > 1:
            half = "".join(words[: len(words) // 2]).rstrip()
            yield _replace_answer("truncate_answer", recorded, answer, half)


def leak_secrets(recorded: RecordedTranscript) -> Iterator[Mutant]:
    """Yield the transcript with a secret in the last answer."""
    for answer in recorded.replies[-1:]:
        text = f"{answer.text}\nThe key is {CANARY}."
        # Its text is not part of the report, where it would look like a real secret.
        mutation = Mutation(kind="leak_secret", answer=answer.number)
        yield build_mutant(mutation, recorded.replace_text(answer.turn, text))


def swap_answers(recorded: RecordedTranscript, other: tuple[str, str] | None) -> Iterator[Mutant]:
    """Yield the transcript with the last answer of another scenario, given with its id."""
    if other is None:
        return
    scenario_id, text = other
    for answer in recorded.replies[-1:]:
        found = _replace_answer("swap_answers", recorded, answer, text)
        yield found._replace(mutation=found.mutation.model_copy(update={"other": scenario_id}))


def _replace_answer(
    kind: MutationKind, recorded: RecordedTranscript, answer: AnswerPlace, text: str
) -> Mutant:
    mutation = Mutation(kind=kind, answer=answer.number, before=answer.text, after=text)
    return build_mutant(mutation, recorded.replace_text(answer.turn, text))
