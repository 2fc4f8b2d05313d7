"""Secrets out of everything that is written: known values first, then well-known shapes.

A secret is the value of an environment variable whose name says so, in any of the forms
it takes on its way into a file (JSON, XML, URL, base64), or a token by its shape. In data it
is what stands under a key such as `password`, too.
"""

from ci_agent_eval.redaction.environ import MIN_SECRET, is_secret_name, secrets_in
from ci_agent_eval.redaction.headers import secrets_in_header
from ci_agent_eval.redaction.known import REDACTED
from ci_agent_eval.redaction.names import distinct_names
from ci_agent_eval.redaction.redactor import Redactor
from ci_agent_eval.redaction.secret_keys import hidden_value, is_secret_key, without_secret_pairs

__all__ = [
    "MIN_SECRET",
    "REDACTED",
    "Redactor",
    "distinct_names",
    "hidden_value",
    "is_secret_key",
    "is_secret_name",
    "secrets_in",
    "secrets_in_header",
    "without_secret_pairs",
]
