"""Print the notes of a version: its section of CHANGELOG.md.

    python scripts/release_notes.py VERSION [CHANGELOG.md]

A release fails before it builds anything if there is none.
"""

import re
import sys
from pathlib import Path


def find_notes(changelog: str, version: str) -> str:
    """Return the section of the version without its heading.

    Raises ValueError if it is missing, empty, or has no day.
    """
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    found = re.search(rf"{heading}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(
            f"no heading '## [{version}] - YYYY-MM-DD'; head the section 'Unreleased' with it"
        )
    notes = found[1].strip()
    if not notes:
        raise ValueError(f"the section of {version} is empty")
    return f"{notes}\n"


def main(argv: list[str]) -> int:
    """Print the notes; return the exit status."""
    if len(argv) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    path = Path(argv[1] if len(argv) == 2 else "CHANGELOG.md")
    try:
        sys.stdout.write(find_notes(path.read_text(encoding="utf-8"), argv[0]))
    except (OSError, ValueError) as error:
        print(f"release_notes: {path}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
