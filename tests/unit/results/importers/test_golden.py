"""All that a file of each tool comes to: episodes, cases and figures, as a reviewer reads them."""

from __future__ import annotations

import json

from tests.tables import each_row
from tests.unit.results.importers.reading import FILES, describe, loaded, read_document

NAMES = sorted(path.relative_to(FILES).as_posix() for path in FILES.glob("*/*.json*"))


@each_row("name", NAMES)
def test_a_file_comes_to_the_golden_episodes(name, golden):
    found = [describe(item) for item in read_document(loaded(name))]
    text = json.dumps(found, indent=1, ensure_ascii=False, default=str)
    golden(f"importers/{name.replace('/', '-').partition('.')[0]}.json", f"{text}\n")
