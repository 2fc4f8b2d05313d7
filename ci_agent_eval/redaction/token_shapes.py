"""Tokens recognized by their shape. Pure.

Each shape has a fixed word, so text without secrets costs a few substring searches. No pattern
is ambiguous, so matching takes linear time.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ci_agent_eval.redaction.known_secrets import REDACTED


class TokenShape(NamedTuple):
    """A token's pattern, and words of which one must be present before it is searched."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str


def _build_shape(pattern: str, *words: str, replacement: str = REDACTED) -> TokenShape:
    return TokenShape(words, re.compile(pattern), replacement)


def _build_start_pattern(word: str, inner: str = "A-Za-z0-9") -> str:
    r"""Return the pattern of a word that does not continue another word of the characters `inner`.

    It may follow an escaped line break (`\n`). The word stands before the lookbehind: a pattern
    that begins with fixed text is searched 60 times faster.
    """
    return rf"{word}(?:(?<![{inner}]{word})|(?<=\\[nrt]{word}))"


_QUOTE = r"(?:\\{0,4}[\"']|&quot;)?"

# Each pattern begins with fixed text and continues with one character class at a time, so that
# a failed attempt is never repeated from its middle.
SHAPES: tuple[TokenShape, ...] = (
    # GitHub: https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
    _build_shape(r"gh[pousr]_[A-Za-z0-9]{20,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _build_shape(r"github_pat_[A-Za-z0-9_]{20,255}", "github_pat_"),
    # OpenAI (sk-, sk-proj-) and Anthropic (sk-ant-).
    _build_shape(_build_start_pattern("sk-") + r"[A-Za-z0-9_-]{20,400}", "sk-"),
    # AWS access key ids: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    _build_shape(_build_start_pattern("A[KS]IA") + r"[A-Z2-7]{16}(?![A-Za-z0-9])", "AKIA", "ASIA"),
    _build_shape(r"AIza[A-Za-z0-9_-]{35}", "AIza"),
    _build_shape(r"xox[abeoprs]-[A-Za-z0-9-]{10,400}", "xox"),
    _build_shape(r"xapp-[A-Za-z0-9-]{10,400}", "xapp-"),
    _build_shape(r"glpat-[A-Za-z0-9_-]{20,400}", "glpat-"),
    _build_shape(r"npm_[A-Za-z0-9]{36}", "npm_"),
    _build_shape(r"pypi-[A-Za-z0-9_-]{50,400}", "pypi-"),
    _build_shape(r"hf_[A-Za-z0-9]{30,100}", "hf_"),
    # Groq, xAI, Perplexity, Cerebras, NVIDIA, Together, LangSmith, Tavily; then Replicate, Google's
    # OAuth, Databricks and Azure storage.
    *(
        _build_shape(_build_start_pattern(word) + r"[A-Za-z0-9_-]{30,120}", word)
        for word in ("gsk_", "xai-", "pplx-", "csk-", "nvapi-", "tgp_v1_", "lsv2_", "tvly-")
    ),
    _build_shape(_build_start_pattern("r8_") + r"[A-Za-z0-9]{37}", "r8_"),
    _build_shape(_build_start_pattern("ya29") + r"\.[A-Za-z0-9_-]{20,400}", "ya29."),
    _build_shape(_build_start_pattern("dapi") + r"[a-f0-9]{32}(?![A-Za-z0-9])", "dapi"),
    _build_shape(r"(?<=AccountKey=)[A-Za-z0-9+/]{40,100}={0,2}", "AccountKey="),
    _build_shape(r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}", "k_live_", "k_test_"),
    _build_shape(
        _build_start_pattern("eyJ", "A-Za-z0-9_-")
        + r"[A-Za-z0-9_-]{8,8192}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,8192}",
        "eyJ",
    ),
    _build_shape(
        rf"(?i:(authorization{_QUOTE}[ \t]{{0,4}}[:=][ \t]{{0,4}}{_QUOTE}"
        r"(?:bearer|basic|token)[ ]))"
        r"[A-Za-z0-9._~+/=-]{6,8192}",
        "uthorization",
        "UTHORIZATION",
        replacement=rf"\g<1>{REDACTED}",
    ),
    _build_shape(
        rf"({_build_start_pattern('[Bb]earer[ ]')})[A-Za-z0-9._~+/=-]{{16,8192}}",
        "earer ",
        replacement=rf"\g<1>{REDACTED}",
    ),
    # The userinfo of a URL: the user's name stays, the password goes.
    _build_shape(
        r"(://[^\s:@/?#\"'<>]{0,256}:)[^\s@/?#\"'<>]{1,512}@",
        "://",
        replacement=rf"\g<1>{REDACTED}@",
    ),
)

ANY_WORD = re.compile("|".join(re.escape(word) for shape in SHAPES for word in shape.words))
"""One search for all words: faster for short texts, slower for long ones."""


def remove_tokens(text: str) -> str:
    """Replace everything with a token's shape."""
    for words, pattern, replacement in SHAPES:
        if any(word in text for word in words):
            text = pattern.sub(replacement, text)
    return text
