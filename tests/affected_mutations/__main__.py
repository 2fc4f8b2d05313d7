"""`python -m tests.affected_mutations`: measure the mutations, write the page, exit 1 on a miss."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.affected_mutations.copies import Workplace
from tests.affected_mutations.measurement import Harness, Measurement, TruthFile
from tests.affected_mutations.mutations import ALL
from tests.affected_mutations.report import render_missed, render_page
from tests.affected_mutations.sample import take_from_each_kind, take_sample
from tests.affected_mutations.selection import ask_product

PAGE = Path(__file__).parents[2] / "docs/affected-mutations.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if the product missed a changed scenario, or a control changed one."""
    options = _parse_arguments(arguments)
    mutations = [item for item in ALL if re.search(options.only, f"{item.kind}: {item.name}")]
    if options.each:
        mutations = take_from_each_kind(mutations, options.each)
    if options.sample:
        mutations = take_sample(mutations, options.sample, options.offset)
    with tempfile.TemporaryDirectory(prefix="affected-mutations-") as folder:
        workplace = Workplace(Path(folder))
        truths = TruthFile(options.truths)
        with Harness(workplace, ask_product, options.workers, truths, cold=options.cold) as harness:
            measured = [_show(item) for item in harness.measure_mutations(mutations)]
    if {item.mutation.kind for item in measured} == {
        item.kind for item in ALL
    } and not options.only:
        PAGE.write_text(render_page(measured, len(ALL), platform.python_version()), "utf-8")
    wrong = [*render_missed(measured), *_list_changed_controls(measured)]
    print("\n".join(wrong) or f"{len(measured)} mutations, nothing missed")
    return 1 if wrong or not measured else 0


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.affected_mutations")
    parser.add_argument("--only", default="", help="regular expression of `kind: name`")
    parser.add_argument("--sample", type=int, help="measure this many, spread over the kinds")
    parser.add_argument("--each", type=int, help="measure the first so many of each kind")
    parser.add_argument("--offset", type=int, default=0, help="which sample, 0 to 2")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--truths", type=Path, help="file that keeps what the mutations change")
    parser.add_argument("--cold", action="store_true", help="a new interpreter for every run")
    return parser.parse_args(arguments)


def _show(item: Measurement) -> Measurement:
    mutation, truth, scope = item.mutation, item.truth, item.selection.scope
    counts = f"{len(truth.changed)} changed, {len(item.needless)} needless"
    missed = f", MISSED {sorted(item.missed)}" if item.missed else ""
    detail = "" if scope == "partial" else f" {item.selection.detail}"
    print(f"{mutation.kind}: {mutation.name}: {counts}{missed}, {scope}{detail}", flush=True)
    return item


def _list_changed_controls(measured: Iterable[Measurement]) -> list[str]:
    return [
        f"- {item.mutation.kind}, {item.mutation.name} is no control: {sorted(item.truth.changed)}"
        for item in measured
        if item.mutation.is_control and item.truth.changed
    ]


if __name__ == "__main__":
    sys.exit(main())
