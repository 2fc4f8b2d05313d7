"""The redactor: removes secrets from texts, values, lines and XML. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.redaction import private_keys
from ci_agent_eval.redaction.distinct_names import make_distinct_names
from ci_agent_eval.redaction.environment_secrets import MIN_SECRET, find_secrets, is_structured
from ci_agent_eval.redaction.known_secrets import (
    LONG,
    MIN_CUT,
    REDACTED,
    FormGroup,
    find_spans,
    group_forms,
    replace_spans,
)
from ci_agent_eval.redaction.secret_forms import build_base64_forms, build_text_forms
from ci_agent_eval.redaction.shortened_secrets import ELLIPSES, ShortenedSecrets
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
    """Known secrets in all their forms, longest first."""
    cut: tuple[str, ...] = field(default=(), repr=False)
    """Forms that are also redacted if only their beginning or end is present."""
    groups: tuple[FormGroup, ...] = field(default=(), repr=False)
    """The forms grouped by secret; default: one group per form."""
    partial: tuple[str, ...] = field(default=(), repr=False)
    """Forms of which a few characters next to an ellipsis are redacted, too."""
    any_secret: re.Pattern[str] | None = field(init=False, repr=False, compare=False)
    shortened: ShortenedSecrets = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        groups = self.groups or tuple(FormGroup(secret, (secret,)) for secret in self.secrets)
        object.__setattr__(self, "groups", groups)
        cores = {core for core, _ in groups}
        ends = {end for form in self.cut for end in (form[:MIN_CUT], form[-MIN_CUT:])}
        ends |= set(ELLIPSES) if self.partial else set()
        words = sorted(re.escape(word) for word in cores | ends)
        object.__setattr__(self, "shortened", ShortenedSecrets.of(self.partial))
        object.__setattr__(self, "any_secret", re.compile("|".join(words)) if words else None)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Redactor:
        """Create a redactor for the secret environment variables, selected by name."""
        return cls.of(
            secret for name, value in environ.items() for secret in find_secrets(name, value)
        )

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """Create a redactor for values in all their forms, except those shorter than MIN_SECRET."""
        values = {secret for secret in secrets if len(secret) >= MIN_SECRET}
        groups: set[FormGroup] = set()
        cut: set[str] = set()
        partial: set[str] = set()
        for value in values:
            as_text = _drop_short_forms(build_text_forms(value))
            as_base64 = _drop_short_forms(
                build_base64_forms(value.encode("utf-8", "surrogateescape"))
            )
            groups.add(group_forms(as_text, value))
            groups |= {FormGroup(form, (form,)) for form in as_base64}
            if is_structured(value):
                continue
            partial |= as_text
            if len(value) >= LONG:
                cut |= as_text | {form for form in as_base64 if len(form) >= LONG}
        forms = {form for _, forms in groups for form in forms}
        return cls(
            _sort_forms(forms), _sort_forms(cut), tuple(sorted(groups)), _sort_forms(partial)
        )

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """Return a redactor that also redacts these values."""
        more = Redactor.of(secrets)
        return Redactor(
            _sort_forms({*self.secrets, *more.secrets}),
            _sort_forms({*self.cut, *more.cut}),
            tuple(sorted({*self.groups, *more.groups})),
            _sort_forms({*self.partial, *more.partial}),
        )

    def text(self, text: str) -> str:
        """Return `text` without secrets."""
        is_short = len(text) < SHORT
        if private_keys.BEGIN in text:
            text = private_keys.remove_private_keys(text)
        if self.any_secret is not None and not (is_short and not self.any_secret.search(text)):
            spans = [*find_spans(text, self.groups, self.cut), *self.shortened.find_spans(text)]
            text = replace_spans(text, spans) if spans else text
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


def _drop_short_forms(forms: Iterable[str]) -> set[str]:
    return {form for form in forms if len(form) >= MIN_SECRET}


def _sort_forms(forms: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))
