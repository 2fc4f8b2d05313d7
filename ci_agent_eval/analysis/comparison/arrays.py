"""Import NumPy when a comparison first needs it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ci_agent_eval.errors import missing_package_error


def require_numpy() -> None:
    """Raise InputError if NumPy is missing, so that a command fails before it runs a suite."""
    if find_spec("numpy") is None:
        raise missing_package_error("a comparison", "NumPy", "compare")


def import_numpy() -> Any:
    """Return the NumPy module. Raises InputError if it is missing."""
    require_numpy()
    import numpy as np  # noqa: PLC0415 - a tenth of a second, for comparisons only

    return np
