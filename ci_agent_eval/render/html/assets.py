"""The page's template, style and script, files of the package read once; and its security policy.

The policy allows our script and our style by their hashes, and nothing else
(https://www.w3.org/TR/CSP3/). `require-trusted-types-for` makes even our own script unable to
turn text into markup (https://w3c.github.io/trusted-types/dist/spec/).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import sys
from functools import cache
from importlib import resources

from jinja2 import DictLoader, Environment, FileSystemBytecodeCache, StrictUndefined, Template
from jinja2.bccache import Bucket
from markupsafe import Markup

TEMPLATES = ("page.html", "parts.html")
SCRIPTS = (
    "dom.js",
    "numbers.js",
    "records.js",
    "address.js",
    "marks.js",
    "bars.js",
    "conversation.js",
    "scenarios.js",
    "episodes.js",
    "causes.js",
    "side_by_side.js",
    "compare.js",
    "talks.js",
    "keys.js",
    "start.js",
)
STYLE = "page.css"


@cache
def load_template() -> Template:
    """Return the page's template, which escapes all values."""
    environment = Environment(
        loader=DictLoader({name: _read_asset(name) for name in TEMPLATES}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        bytecode_cache=_build_bytecode_cache(),
    )
    return environment.get_template(TEMPLATES[0])


class _BytecodeBesideOurs(FileSystemBytecodeCache):
    """Compiled templates in the folder of our own bytecode, written only where Python writes it."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):  # the folder may be anything
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):  # read-only installations
                super().dump_bytecode(bucket)


def _build_bytecode_cache() -> FileSystemBytecodeCache | None:
    """Return the cache of compiled templates; compiling takes longer than importing Jinja2."""
    bytecode = None if __spec__ is None else __spec__.cached
    if bytecode is None:
        return None
    return _BytecodeBesideOurs("", pattern=f"{bytecode.replace('%', '%%')}.%s")


@cache
def read_script() -> Markup:
    """Return the page's script: its files joined, in one scope."""
    body = "\n".join(_read_asset(name) for name in SCRIPTS)
    return Markup(f'"use strict";\n(() => {{\n{body}}})();\n')  # noqa: S704 - a file of ours


@cache
def read_style() -> Markup:
    """Return the page's style sheet."""
    return Markup(_read_asset(STYLE))  # noqa: S704 - a file of ours


def _read_asset(name: str) -> str:
    return resources.files("ci_agent_eval.render.html").joinpath("assets", name).read_text("utf-8")


def content_policy(script: str, style: str) -> str:
    """Return the policy for a page with exactly this script and this style."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash_source(script)}",
            f"style-src {_hash_source(style)}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash_source(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
