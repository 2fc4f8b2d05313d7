"""The redactor: removes secrets from texts, values, lines and XML. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.redaction import private_keys
from ci_agent_eval.redaction.environment_secrets import MIN_SECRET, find_secrets
from ci_agent_eval.redaction.known_secrets import REDACTED, KnownSecrets
from ci_agent_eval.redaction.token_shapes import ANY_WORD, remove_tokens

PEM_LINES = 400
"""Maximum number of lines of a private key; a 16,384-bit RSA key has about 220."""

SHORT = 1000
"""Up to this length, one search for all words is faster than one search per word."""

_TAG = re.compile(r"<[^<>]*>")
_ATTRIBUTE = re.compile(r'"[^"]*"')


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces secrets by `[redacted]`."""

    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values that are redacted in all the forms in which files have them."""
    _known: KnownSecrets = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", KnownSecrets(self.secrets))

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Redactor:
        """Create a redactor for the secret environment variables, selected by name."""
        return cls.of(
            secret for name, value in environ.items() for secret in find_secrets(name, value)
        )

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """Create a redactor for values, except those shorter than MIN_SECRET."""
        return cls(tuple(sorted({secret for secret in secrets if len(secret) >= MIN_SECRET})))

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """Return a redactor that also redacts these values."""
        more = Redactor.of(secrets).secrets
        return Redactor(tuple(sorted({*self.secrets, *more})))

    def text(self, text: str) -> str:
        """Return `text` without secrets."""
        is_short = len(text) < SHORT
        if private_keys.BEGIN in text:
            text = private_keys.remove_private_keys(text)
        any_part = self._known.any_part
        if any_part is not None and (not is_short or any_part.search(text)):
            text = self._known.remove(text)
        return text if is_short and not ANY_WORD.search(text) else remove_tokens(text)

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets, in keys as well as in values."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            names = make_distinct_names(map(str, value), self.text)
            return {names[str(key)]: self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def lines(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield each line without secrets; of a multi-line private key only marks remain."""
        return _redact_lines(lines, self.text)

    def xml_lines(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines of an XML file without secrets in its texts and attribute values.

        Tags are never changed, so that the file stays well-formed.
        """
        return _redact_lines(lines, self._xml)

    def _xml(self, line: str) -> str:
        # Most lines hold no secret, and checking the whole line at once is cheap.
        if self.text(line) == line:
            return line
        pieces: list[str] = []
        position = 0
        for tag in _TAG.finditer(line):
            pieces.append(self.text(line[position : tag.start()]))
            pieces.append(_ATTRIBUTE.sub(lambda match: f'"{self.text(match[0][1:-1])}"', tag[0]))
            position = tag.end()
        return "".join([*pieces, self.text(line[position:])])


def _redact_lines(lines: Iterable[str], clean: Callable[[str], str]) -> Iterator[str]:
    inside = 0
    for line in lines:
        if inside:
            rest = private_keys.match_rest(line)
            after = line[rest.end :]
            inside = 0 if rest.closed or after.strip() else inside - 1
            if inside or not after.strip():
                continue
            line = (REDACTED if rest.end else "") + after  # noqa: PLW2901 - the rest of the line
        yield clean(line)
        if private_keys.BEGIN in line and private_keys.has_open_block(line):
            inside = PEM_LINES


def make_distinct_names(names: Iterable[str], redact: Callable[[str], str]) -> dict[str, str]:
    """Map each name to its redacted form, without duplicates.

    Equal redacted names get numbers (`#2`, `#3`), in the order of the full names. A name
    without a secret is unchanged.
    """
    clean = {name: redact(name) for name in sorted(set(names))}
    taken = {name for name, redacted in clean.items() if name == redacted}
    last: dict[str, int] = {}
    for name, redacted in clean.items():
        if name == redacted:
            continue
        number = last.get(redacted, 0) + 1
        while (numbered := _add_number(redacted, number)) in taken:
            number += 1
        last[redacted] = number
        taken.add(numbered)
        clean[name] = numbered
    return clean


def _add_number(name: str, number: int) -> str:
    return name if number == 1 else f"{name}#{number}"
