"""Redaction of secrets from all output: known values first, then well-known token shapes.

Secrets are the values of environment variables with names such as `API_KEY`, in any form
they take in a file (JSON, XML, URL, base64), tokens recognized by their shape, and in
structured data the values of keys such as `password`.
"""

from ci_agent_eval.redaction.environment_secrets import (
    MIN_SECRET,
    find_header_secrets,
    find_secrets,
    is_secret_name,
)
from ci_agent_eval.redaction.known_secrets import REDACTED
from ci_agent_eval.redaction.redactor import Redactor, make_distinct_names
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
