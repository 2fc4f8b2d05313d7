"""JSON inside an HTML page that no text in it can end and no browser runs.

Only `<` ends a script element or opens a comment in it
(https://html.spec.whatwg.org/multipage/scripting.html#restrictions-for-contents-of-script-elements);
in JSON it stands in strings only, where it may be written as an escape. So may everything
that is not ASCII, the line ends U+2028 and U+2029 among it.
"""

from __future__ import annotations

import json
from typing import Any

_ENCODE = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def embed_json(value: Any) -> str:
    """Return the value as ASCII JSON on one line, without `<`, `>` and `&`."""
    return _ENCODE(value).translate(_ESCAPES)


def drop_empty(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row without values that are None, False or empty; zero stays."""
    return {
        key: value
        for key, value in row.items()
        if value is not None and value is not False and value not in ("", [])
    }
