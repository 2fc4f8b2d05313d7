"""Phrases for asking, agreeing and refusing in one language: patterns for `ConfirmedTools`.

Texts are read clause by clause: a clause ends at a full stop, a comma, a colon, a dash with
blanks around it, or the end of a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator

from ci_agent_eval.contract.fields import SomePatterns, validate_fields

_SENTENCES = re.compile(r"(?<=[.!?;。！？؟])\s*|\n+")  # noqa: RUF001 - full-width marks are meant
_CLAUSES = re.compile(r"[.,;:!…。，、！]+(?:\s+|$)|\s[-–—]\s|\.{2,}")  # noqa: RUF001 - as above
_QUESTION_MARKS = ("?", "？", "؟")  # noqa: RUF001 - as above
_FIELDS = ("asks", "open_questions", "agrees", "refuses")
_APOSTROPHE = str.maketrans("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _ignore_case(patterns: tuple[re.Pattern[str], ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(one.pattern, one.flags | re.IGNORECASE) for one in patterns)


_CaselessPatterns = Annotated[SomePatterns, AfterValidator(_ignore_case)]


@dataclass(frozen=True, slots=True)
class ConfirmationPhrases:
    """Regular expressions, case-insensitive, each searched in one clause.

    `asks`: the agent asks for a go-ahead ("please confirm"). `open_questions`: questions that
    are not answered by yes or no ("which"). `agrees` and `refuses`: the user's answers.
    """

    asks: _CaselessPatterns
    open_questions: _CaselessPatterns
    agrees: _CaselessPatterns
    refuses: _CaselessPatterns

    def __post_init__(self) -> None:
        validate_fields(self)

    def merge(self, other: ConfirmationPhrases) -> ConfirmationPhrases:
        """Return the phrases of both languages."""
        both = {name: (*getattr(self, name), *getattr(other, name)) for name in _FIELDS}
        return ConfirmationPhrases(**both)

    def is_request(self, text: str) -> bool:
        """Return whether the text asks for a go-ahead, by a phrase or a yes-or-no question."""
        sentences = _split_sentences(text)
        return any(map(self._is_closed_question, sentences)) or any(
            _matches_any(self.asks, clause) and not _matches_any(self.open_questions, clause)
            for sentence in sentences
            for clause in _split_clauses(sentence)
        )

    def is_agreement(self, text: str) -> bool:
        """Return whether at least one clause agrees and none refuses."""
        return _has_clause(self.agrees, text) and not self.is_refusal(text)

    def is_refusal(self, text: str) -> bool:
        """Return whether at least one clause refuses."""
        return _has_clause(self.refuses, text)

    def _is_closed_question(self, sentence: str) -> bool:
        is_question = sentence.rstrip("*_\"') ").endswith(_QUESTION_MARKS)
        return is_question and not _matches_any(self.open_questions, sentence)


def _split_sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCES.split(text.translate(_APOSTROPHE)) if part.strip()]


def _split_clauses(sentence: str) -> list[str]:
    return [part.strip() for part in _CLAUSES.split(sentence) if part.strip()]


def _has_clause(wanted: SomePatterns, text: str) -> bool:
    return any(
        _matches_any(wanted, c)
        for sentence in _split_sentences(text)
        for c in _split_clauses(sentence)
    )


def _matches_any(wanted: Any, clause: str) -> bool:
    return any(one.search(clause) for one in wanted)  # its validation compiled them


ENGLISH = ConfirmationPhrases(
    asks=[
        r"\b(please|once you|if you|do you|can you|could you|(need|like) you to) confirm\b",
        r"\b(would|do|if) you('d)?( like| want| wish)( me)? to\b",
        r"\byou('d| would) like( me)? to\b",
        r"\b(shall|should|may|can) I (?!help|assist)",
    ],
    open_questions=[
        r"\b(which|what|when|where|who|whom|whose|how|why)\b",
        r"\b(provide|specify|share|tell me|give me)\b",
        r"\b(any|some)thing else\b|\bhelp you\b",
    ],
    agrees=[
        r"^(yes|yeah|yep|yup|sure|ok|okay|absolutely|definitely|certainly|of course)\b",
        r"^(confirm|correct|agreed|approved|perfect$|please do\b)",
        r"\b(I|we) (can |do )?(confirm|agree|approve)\b|\bconfirm(ed|ing)\b",
        r"\b(go(ing)? ahead|go for it|proceed|do (it|that|so))\b",
        r"^(let's|I'll (use|pay))\b",
        r"\b(sounds|looks|is|are|all) (all )?(good|great|fine|correct|right|perfect)\b",
        r"\b(that|this|it|which) works\b|\b(fine|happy|okay|ok) with\b",
        r"\bthat's (fine|right|correct)\b",
    ],
    refuses=[
        r"^(oh )?(no|nope|nah)( thanks| thank you| wait)?$|^no \w+ no\b",
        r"^(please )?(wait|stop|hold (on|off|it)|never ?mind)\b",
        r"\b(don't|do not|not)$",
        r"\b(don't|do not) (do|go|proceed|confirm|agree|approve|\w+ (it|that))\b",
        r"\bnot (yet|now|right now|so fast|correct|right|what I)\b",
        r"\b(changed my mind|rather not|never ?mind|isn't (right|correct))\b",
    ],
)  # fmt: skip
"""The default. docs/checks.md states its accuracy."""
