"""NumPy, imported when a comparison first needs it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ci_agent_eval.errors import missing_package_error


def require_numpy() -> None:
    """Raise InputError where NumPy is missing; a suite need not run before this is known."""
    if find_spec("numpy") is None:
        raise missing_package_error("a comparison", "NumPy", "compare")


def import_numpy() -> Any:
    """Return the module. Raises InputError where it is missing."""
    require_numpy()
    import numpy as np  # noqa: PLC0415 - a tenth of a second, for comparisons only

    return np
