"""Point action.yml at a published image by its digest: what a release branch has.

    python scripts/pin_action.py REGISTRY/OWNER/NAME@sha256:DIGEST [action.yml]

A digest names the bytes; a tag could be moved after the release was reviewed.
"""

import re
import sys
from pathlib import Path

BUILT = re.compile(r"^(  image: )Dockerfile$", re.MULTILINE)
IMAGE = re.compile(r"[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+@sha256:[0-9a-f]{64}")


def pin(text: str, image: str) -> str:
    """Return action.yml with the image in place of the Dockerfile.

    Raises ValueError for an image without a digest, and for a file that builds none.
    """
    if not IMAGE.fullmatch(image):
        raise ValueError(f"{image!r} is no image by its digest (registry/owner/name@sha256:...)")
    pinned, found = BUILT.subn(rf"\g<1>docker://{image}", text)
    if found != 1:
        raise ValueError("action.yml does not say `image: Dockerfile` exactly once")
    return pinned


def main(argv: list[str]) -> int:
    """Pin the file in place; return the exit status."""
    if len(argv) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    path = Path(argv[1] if len(argv) == 2 else "action.yml")
    try:
        pinned = pin(path.read_text(encoding="utf-8"), argv[0])
    except (OSError, ValueError) as error:
        print(f"pin_action: {error}", file=sys.stderr)
        return 2
    path.write_text(pinned, encoding="utf-8", newline="\n")
    print(f"{path} runs {argv[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
