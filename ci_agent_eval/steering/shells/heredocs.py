"""Here-documents of bash, taken out of a text before it is parsed.

The grammar is slow with long ones, and ends some at a line that only begins like their end.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict

_HEADER = re.compile(r"<<-?[ \t]*(?P<quote>['\"\\]?)(?P<end>\w+)")


def extract_heredocs(text: str) -> tuple[str, dict[str, str]]:
    """Replace each here-document without expansions with a short placeholder line.

    Returns the text, and the here-documents by their placeholders.
    """
    if "<<" not in text:
        return text, {}
    lines = text.split("\n")
    lines_by_text = _index_lines(lines)
    plain_lines: list[str] = []
    documents: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        plain_lines.append(line)
        at += 1
        header = _HEADER.search(line)
        end = _find_next(lines_by_text.get(header["end"], []), at - 1) if header else None
        if header is None or end is None:
            continue
        body = "\n".join(lines[at:end])
        if at < end and (header["quote"] or not ("$(" in body or "`" in body)):
            key = f"document-{len(documents)}"
            documents[key] = f"{body}\n"
            plain_lines.append(key)
            at = end
    return "\n".join(plain_lines), documents


def _index_lines(lines: list[str]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        numbers[line.strip("\t ")].append(number)
    return numbers


def _find_next(numbers: list[int], after: int) -> int | None:
    index = bisect_right(numbers, after)
    return numbers[index] if index < len(numbers) else None
