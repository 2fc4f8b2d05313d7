"""Secrets out of everything that is written: known values first, then well-known shapes.

A secret is the value of an environment variable whose name says so, in any of the forms
it takes on its way into a file (JSON, XML, URL, base64), or a token by its shape. Each
shape has a fixed word that must be there first, so text without secrets costs a few
substring searches, and no pattern can be read in two ways, so no text costs more than
its length.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus

REDACTED = "[redacted]"

MIN_SECRET = 8
"""Shorter values are not taken for secrets: they would blot out ordinary text."""

MIN_SECRET_LINE = 16
"""A line of a many-line secret (a PEM key) is a secret of its own from this length on."""

PEM_LINES = 400
"""The most lines a private key is followed over; a 16,384-bit RSA key has about 220."""

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PWD|PASS|API_?KEYS?|ACCESS_?KEY"
    r"|PRIVATE_?KEY|SIGNING_?KEY|ENCRYPTION_?KEY|CREDENTIALS?|CREDS?|AUTH|AUTHORIZATION|PAT|DSN"
    r"|COOKIE|WEBHOOK(?:_URL)?|KEY|[A-Z0-9]*(?:TOKEN|SECRET|PASSWORD|APIKEY))(?:$|_)"
)
_BENIGN_NAME = re.compile(
    r"(?:^PWD$|^OLDPWD$|_(?:PATH|FILE|DIR|HOME|URL|URI|HOST|PORT|NAME|USER|ID|TYPE|MODE|METHOD"
    r"|SOCK|SOCKET|PROVIDER|BACKEND|DOMAIN|ISSUER|AUDIENCE|SCOPES?|REALM|ENABLED|LIMIT|COUNT|SIZE"
    r"|BUDGET|TTL|EXPIRY|EXPIRES|VERSION|REGION|ALGORITHM)$"
    r"|(?:^|_)(?:PUBLIC|CACHE|SORT|PRIMARY|FOREIGN)_KEYS?$|^(?:MAX|MIN|NUM)_)"
)
_WEBHOOK_NAME = re.compile(r"WEBHOOK_UR[LI]$")
_URL_PASSWORD = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^\s:@/]{0,256}:([^\s@/]{1,512})@")
_COMMON = frozenset({"required", "disabled", "optional", "undefined", "password", "changeme"})
_BENIGN_VALUE = re.compile(r"[a-z]{1,12}|[0-9]{1,9}|(?:\.{0,2}|~)/[^\n]*")


@dataclass(frozen=True, slots=True)
class _Shape:
    """A token's shape, and the words of which one must be there for it to be looked for."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str = REDACTED


def _shape(pattern: str, *words: str, replacement: str = REDACTED) -> _Shape:
    return _Shape(words, re.compile(pattern), replacement)


_JWT = r"(?<![A-Za-z0-9_-])eyJ" + r"\.".join(["[A-Za-z0-9_-]{8,8192}"] * 3)

# Each pattern begins with fixed text and goes on with one character class at a time, so that
# a failed attempt is never repeated from the middle of its own run.
_SHAPES: tuple[_Shape, ...] = (
    # GitHub: https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
    _shape(r"gh[pousr]_[A-Za-z0-9]{20,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _shape(r"github_pat_[A-Za-z0-9_]{20,255}", "github_pat_"),
    # OpenAI (sk-, sk-proj-) and Anthropic (sk-ant-).
    _shape(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{20,400}", "sk-"),
    # AWS access key ids: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    _shape(r"(?<![A-Za-z0-9])A(?:KI|SI)A[A-Z2-7]{16}(?![A-Za-z0-9])", "AKIA", "ASIA"),
    _shape(r"AIza[A-Za-z0-9_-]{35}", "AIza"),
    _shape(r"xox[abeoprs]-[A-Za-z0-9-]{10,400}", "xox"),
    _shape(r"xapp-[A-Za-z0-9-]{10,400}", "xapp-"),
    _shape(r"glpat-[A-Za-z0-9_-]{20,400}", "glpat-"),
    _shape(r"npm_[A-Za-z0-9]{36}", "npm_"),
    _shape(r"pypi-[A-Za-z0-9_-]{50,400}", "pypi-"),
    _shape(r"hf_[A-Za-z0-9]{30,100}", "hf_"),
    _shape(r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}", "k_live_", "k_test_"),
    _shape(
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,8192}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,8192}",
        "eyJ",
    ),
    _shape(
        r"(?i:(authorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?:bearer|basic|token)[ ]))"
        r"[A-Za-z0-9._~+/=-]{6,8192}",
        "uthorization",
        "UTHORIZATION",
        replacement=rf"\g<1>{REDACTED}",
    ),
    _shape(
        r"\b([Bb]earer[ ])[A-Za-z0-9._~+/=-]{16,8192}",
        "earer ",
        replacement=rf"\g<1>{REDACTED}",
    ),
    # The userinfo of a URL: the user's name stays, the password goes.
    _shape(
        r"(://[^\s:@/?#\"'<>]{0,256}:)[^\s@/?#\"'<>]{1,512}@",
        "://",
        replacement=rf"\g<1>{REDACTED}@",
    ),
)

_PEM_BEGIN = "-----BEGIN "
_PEM_HEAD = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_TAIL = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces secrets by `[redacted]`."""

    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Known values in all their forms, longest first."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Redactor:
        """Take the secrets from the variables whose names say that they hold one."""
        values = {secret for name, value in environ.items() for secret in _secrets_in(name, value)}
        forms = {form for value in values for form in _forms(value) if len(form) >= MIN_SECRET}
        return cls(tuple(sorted(forms, key=lambda form: (-len(form), form))))

    def text(self, text: str) -> str:
        """Return `text` without secrets."""
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, REDACTED)
        for shape in _SHAPES:
            if any(word in text for word in shape.words):
                text = shape.pattern.sub(shape.replacement, text)
        return _without_private_keys(text) if _PEM_BEGIN in text else text

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets, in keys as well as in values."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def lines(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield each line without secrets; a private key over many lines becomes one mark."""
        inside = 0
        for line in lines:
            if inside:
                tail = _PEM_TAIL.search(line)
                inside = 0 if tail else inside - 1
                if tail:
                    yield self.text(line[tail.end() :])
                continue
            clean = self.text(line)
            if _open_private_key(line):
                inside = PEM_LINES
            yield clean


def is_secret_name(name: str) -> bool:
    """Say whether a variable of this name is taken to hold a secret."""
    upper = name.upper().replace("-", "_")
    if _WEBHOOK_NAME.search(upper):
        return True
    return bool(_SECRET_NAME.search(upper)) and not _BENIGN_NAME.search(upper)


def _secrets_in(name: str, value: str) -> Iterator[str]:
    """Yield what is secret in a variable: its value, or the password in a URL."""
    if is_secret_name(name):
        yield from _parts(value)
    if url := _URL_PASSWORD.match(value):
        yield url[1]


def _parts(value: str) -> Iterator[str]:
    """Yield the value, and each long line of a value of many lines."""
    stripped = value.strip()
    if len(stripped) >= MIN_SECRET and not _is_common(stripped):
        yield stripped
    lines = stripped.splitlines()
    if len(lines) > 1:
        yield from (line.strip() for line in lines if len(line.strip()) >= MIN_SECRET_LINE)


def _is_common(value: str) -> bool:
    return value.lower() in _COMMON or bool(_BENIGN_VALUE.fullmatch(value))


def _forms(secret: str) -> Iterator[str]:
    """Yield the forms a secret takes on its way into a file."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield html.escape(secret, quote=True)
    yield html.escape(secret, quote=False)
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield from _base64_forms(secret.encode("utf-8", "surrogateescape"))


def _base64_forms(secret: bytes) -> Iterator[str]:
    """Yield the part of base64 text that any text holding the secret must hold.

    The secret may begin at any of three offsets within a group of three bytes; the
    characters that its neighbours share are left out.
    """
    for offset in range(3):
        padded = b"\0" * offset + secret
        whole = len(padded) // 3 * 4
        start = (0, 2, 3)[offset]
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(padded).decode()[start:whole]
    yield base64.b64encode(secret).decode()


def _open_private_key(text: str) -> bool:
    """Say whether a private key begins in the text and does not end in it."""
    heads = [match.end() for match in _PEM_HEAD.finditer(text)]
    return bool(heads) and _PEM_TAIL.search(text, heads[-1]) is None


def _without_private_keys(text: str) -> str:
    """Cut out PEM private keys; one that does not end is cut to the end of the text."""
    pieces: list[str] = []
    position = 0
    while head := _PEM_HEAD.search(text, position):
        tail = _PEM_TAIL.search(text, head.end())
        pieces += [text[position : head.start()], REDACTED]
        position = tail.end() if tail else len(text)
    return "".join([*pieces, text[position:]])
