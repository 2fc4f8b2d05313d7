"""The page's content security policy: our script and our style by their hashes, nothing else.

https://www.w3.org/TR/CSP3/; `require-trusted-types-for` makes even our own script unable to
turn text into markup (https://w3c.github.io/trusted-types/dist/spec/).
"""

from __future__ import annotations

import base64
import hashlib


def content_policy(script: str, style: str) -> str:
    """Return the policy for a page with exactly this script and this style, as they stand there."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
