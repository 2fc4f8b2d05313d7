"""Import SciPy and statsmodels when judges are first analysed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

from ci_agent_eval.errors import missing_package_error


def require_statsmodels() -> None:
    """Raise InputError if statsmodels is missing, so that a command fails before it asks."""
    if find_spec("statsmodels") is None:
        raise missing_package_error("judging the judges", "statsmodels", "judges")


def compute_chi_square_quantile(share: float, degrees: float) -> float:
    """Return the value below which `share` of the chi-square distribution lies."""
    require_statsmodels()  # it brings SciPy
    from scipy.stats import chi2  # noqa: PLC0415 - seconds, for judges only

    return float(chi2.ppf(share, degrees))


class KappaLimits(NamedTuple):
    """Cohen's kappa with the limits of its asymptotic 95 % interval."""

    kappa: float
    low: float
    high: float


def compute_kappa(table: Sequence[Sequence[int]]) -> KappaLimits:
    """Return Cohen's kappa of a square table of counts, with its asymptotic interval.

    J. L. Fleiss, J. Cohen, B. S. Everitt, Psychological Bulletin 72 (1969), 323-327.
    """
    require_statsmodels()
    from statsmodels.stats.inter_rater import cohens_kappa  # noqa: PLC0415 - seconds, for judges only

    with warnings.catch_warnings():
        # Its z-value divides by 0 if all verdicts are the same, where kappa is 0 and has no error.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = cohens_kappa(table)
    return KappaLimits(float(found.kappa), float(found.kappa_low), float(found.kappa_upp))
