"""Deterministic split of a suite into shards. Pure."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping

from ci_agent_eval.errors import InputError

_FORM = re.compile(r"([0-9]{1,4})/([0-9]{1,4})", re.ASCII)


def parse_shard(text: str) -> tuple[int, int]:
    """Parse `2/7` as index and count, 1-based. Raises InputError for anything else."""
    found = _FORM.fullmatch(text.strip())
    index, count = (int(part) for part in found.groups()) if found else (0, 0)
    if not 1 <= index <= count:
        raise InputError(f"give a shard as INDEX/COUNT, such as 2/7 (got {text[:40]!r})")
    return index, count


def normalize_shard(text: str | None, origin: str) -> str | None:
    """Return a shard as `INDEX/COUNT`, None if `text` is None.

    Raises InputError that names `origin`.
    """
    if text is None:
        return None
    try:
        index, count = parse_shard(text)
    except InputError as error:
        raise InputError(f"{origin}: {error}") from None
    return f"{index}/{count}"


def assign_shards(
    units: Iterable[str], count: int, durations: Mapping[str, float]
) -> dict[str, int]:
    """Return the shard, 1 to `count`, of each unit: longest first, each to the least loaded shard.

    The rule is Graham's (SIAM Journal on Applied Mathematics 17 (1969), 416-429). A unit of
    unknown duration counts as the mean of the known ones.
    """
    names = sorted(set(units))
    known = [durations[name] for name in names if name in durations]
    usual = math.fsum(known) / len(known) if known else 1.0
    weights = {name: durations.get(name, usual) for name in names}
    loads = dict.fromkeys(range(1, count + 1), (0.0, 0))
    assigned: dict[str, int] = {}
    for name in sorted(names, key=lambda name: (-weights[name], name)):
        shard = min(loads, key=lambda shard: (*loads[shard], shard))
        load, size = loads[shard]
        loads[shard] = (load + weights[name], size + 1)
        assigned[name] = shard
    return assigned


def hash_shard_plan(assigned: Mapping[str, int]) -> str:
    """Return a short hash of the split."""
    lines = "".join(f"{name}\0{shard}\n" for name, shard in sorted(assigned.items()))
    return hashlib.sha256(lines.encode("utf-8", "backslashreplace")).hexdigest()[:16]
