"""Explanations of failed asserts in threads, while pytest goes from one item to the next.

pytest sets how a comparison is explained, and how long its values may be, for one item at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from _pytest.assertion import rewrite, util

Explain = Callable[[str, object, object], str | None]


class AssertExplanations:
    """Explains comparisons between two items as in the item before."""

    def __init__(self) -> None:
        self._latest: Explain | None = None

    def start(self, config: pytest.Config) -> Callable[[], None]:
        """Explain them from now on; return a function that restores pytest's state."""
        before = util._reprcompare, rewrite._get_maxsize_for_saferepr  # noqa: SLF001 - pytest has no public way

        session_config = config

        def get_maximum(config: pytest.Config | None) -> int | None:
            return before[1](config or session_config)

        def restore() -> None:
            util._reprcompare, rewrite._get_maxsize_for_saferepr = before  # noqa: SLF001 - as above

        util._reprcompare = self._explain  # noqa: SLF001 - as above
        rewrite._get_maxsize_for_saferepr = get_maximum  # noqa: SLF001 - as above
        return restore

    def keep(self) -> None:
        """Keep the explanations of the current item, whose test runs next."""
        if util._reprcompare != self._explain:  # noqa: SLF001 - as above
            self._latest = util._reprcompare  # noqa: SLF001 - as above

    def _explain(self, operator: str, left: object, right: object) -> str | None:
        return None if self._latest is None else self._latest(operator, left, right)
