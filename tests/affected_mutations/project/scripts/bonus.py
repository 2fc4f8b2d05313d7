"""Set the bonus; run by path, never imported."""

BONUS = 11
