"""Secrets out of everything that is written: known values first, then well-known shapes.

A secret is the value of an environment variable whose name says so, in any of the forms
it takes on its way into a file (JSON, XML, URL, base64), or a token by its shape. In data it
is what stands under a key such as `password`, too.
"""

from ci_agent_eval.redaction.distinct_names import make_distinct_names
from ci_agent_eval.redaction.environment_secrets import MIN_SECRET, find_secrets, is_secret_name
from ci_agent_eval.redaction.headers import find_header_secrets
from ci_agent_eval.redaction.known_secrets import REDACTED
from ci_agent_eval.redaction.redactor import Redactor
from ci_agent_eval.redaction.secret_keys import is_secret_key, redact_value, remove_secret_pairs

__all__ = [
    "MIN_SECRET",
    "REDACTED",
    "Redactor",
    "find_header_secrets",
    "find_secrets",
    "is_secret_key",
    "is_secret_name",
    "make_distinct_names",
    "redact_value",
    "remove_secret_pairs",
]
