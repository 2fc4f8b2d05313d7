"""The safety check of Markdown before it is published: it finds foreign markup.

It parses the finished text independently of the renderer. Every link, mention, reference,
image or other markup that GitHub would show must be ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_OUR_HTML = re.compile(
    r"</?(?:details|summary|b)>|<details open>|<br>|<!-- agent-eval suite=[A-Za-z0-9._%~]+ -->"
    r"|<!-- agent-eval state=[0-9a-f]{16} -->|</a>"
    # In code neither GitHub's filters nor the browser act on any text.
    r"|<code>(?:[^<>&]|&(?:lt|gt|amp|quot|#x27);)*</code>",
    re.ASCII,
)
_OUR_LINK = re.compile(r'<a href="([^"<>]*)">')
_OUR_HEADING = re.compile(r"(?:✅|❌) [\w .,()/&+-]{1,40} (?:passed|failed): ")

_OUR_BLOCKS = frozenset(
    f"{block}_{end}"
    for block in (
        "paragraph",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "bullet_list",
        "list_item",
    )
    for end in ("open", "close")
) | {"fence", "inline", "heading_close"}
_OUR_INLINES = frozenset(
    {"code_inline", "softbreak", "strong_open", "strong_close", "em_open", "em_close", "link_close"}
)

# What GitHub's filters look for in text outside code, drawn wider than they draw it. What
# stands before it is shown for orientation, with a bound that keeps the search linear.
_REFERENCES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("mention or e-mail address", re.compile(r"\S{0,40}@\S*")),
    ("URL", re.compile(r"\S{0,40}(?:://|\bwww\.)\S*", re.IGNORECASE)),
    ("issue reference", re.compile(r"\S{0,40}#\d+|\bGH-\d+", re.IGNORECASE)),
    # A sum such as $0.0000012 is none: GitHub wants a blank or a bracket before a commit.
    ("commit", re.compile(r"(?<!\$0\.)\b[0-9a-f]{7,64}\b", re.IGNORECASE | re.ASCII)),
    ("emoji code", re.compile(r":[A-Za-z0-9_+-]+:")),
    ("footnote", re.compile(r"\[\^")),
    ("formula", re.compile(r"\$\$|\$`|`\$")),
)


def find_foreign_elements(markdown: str, allowed_prefixes: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for each foreign element of the text; empty: it may be sent.

    `allowed_prefixes` are the addresses a link may lead to: exactly, below one that ends
    with a slash, or to a part of one.
    """
    environment: dict[str, Any] = {}
    tokens = _build_parser().parse(markdown, environment)
    found = [f"link definition {name!r}" for name in environment.get("references", {})]
    found += _check_blocks(tokens, tuple(allowed_prefixes))
    found += _check_details(tokens)
    return tuple(found)


@cache
def _build_parser() -> MarkdownIt:
    # Imported late for a fast start: only published Markdown is parsed.
    from markdown_it import MarkdownIt  # noqa: PLC0415 - see above

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _check_blocks(tokens: Sequence[Token], allowed: tuple[str, ...]) -> Iterator[str]:
    headings = 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open":
            headings += 1
            content = following.content if following else ""
            if headings > 1 or token.tag != "h3" or not _OUR_HEADING.match(content):
                yield f"heading {content!r}"
        elif token.type == "html_block":
            yield from _check_html(token.content, allowed)
        elif token.type not in _OUR_BLOCKS:
            yield f"{token.type} {token.content!r}"
        for child in token.children or ():
            yield from _check_inline(child, allowed)


def _check_inline(token: Token, allowed: tuple[str, ...]) -> Iterator[str]:
    if token.type == "text":
        yield from _check_text(token.content)
    elif token.type == "link_open":
        address = str(token.attrs.get("href", ""))
        if not any(_leads_to(address, prefix) for prefix in allowed):
            yield f"link to {address!r}"
    elif token.type not in _OUR_INLINES:
        yield f"{token.type} {token.content or token.attrs!r}"


def _leads_to(address: str, prefix: str) -> bool:
    if address == prefix:
        return True
    below = prefix.endswith("/") and "/../" not in address
    return address.startswith(prefix if below else f"{prefix}#")


def _check_html(content: str, allowed: tuple[str, ...]) -> Iterator[str]:
    for address in map(unescape, _OUR_LINK.findall(content)):
        if not any(_leads_to(address, prefix) for prefix in allowed):
            yield f"link to {address!r}"
    rest = _OUR_LINK.sub(" ", _OUR_HTML.sub(" ", content))
    if "<" in rest or ">" in rest or "&" in rest:
        yield f"HTML {rest.strip()!r}"
    yield from _check_text(rest)


def _check_text(text: str) -> Iterator[str]:
    for kind, pattern in _REFERENCES:
        for match in pattern.finditer(text):
            yield f"{kind} {match[0]!r}"


def _check_details(tokens: Sequence[Token]) -> Iterator[str]:
    html = "".join(token.content for token in tokens if token.type == "html_block")
    for tag in ("details", "summary"):
        if len(re.findall(f"<{tag}(?: open)?>", html)) != html.count(f"</{tag}>"):
            yield f"<{tag}> that is not closed"
