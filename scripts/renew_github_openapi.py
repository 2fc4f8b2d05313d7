"""Cut the operations the tests' GitHub fake serves out of GitHub's own OpenAPI description.

Usage, from the repository's root:

    npm pack @octokit/openapi && tar xzf octokit-openapi-*.tgz
    python scripts/renew_github_openapi.py package/generated/api.github.com.json

It writes ``tests/github_fake/openapi.json``: the operations in ``OPERATIONS``, every component
they refer to (the ``$ref`` closure), every validation keyword; without prose and examples. Keys
are sorted, so that the diff of a renewal shows what GitHub changed. ``x-source`` records where
the cut came from. To serve a further operation, add it to ``OPERATIONS`` and run this again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "tests" / "github_fake" / "openapi.json"
REPO = "/repos/{owner}/{repo}"
OPERATIONS = (
    ("get", "/user"),
    ("get", REPO),
    ("get", f"{REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}"),
    ("get", f"{REPO}/actions/runs/{{run_id}}"),
    ("get", f"{REPO}/actions/runs/{{run_id}}/artifacts"),
    ("get", f"{REPO}/actions/workflows/{{workflow_id}}/runs"),
    ("get", f"{REPO}/branches/{{branch}}"),
    ("post", f"{REPO}/check-runs"),
    ("get", f"{REPO}/check-runs/{{check_run_id}}"),
    ("patch", f"{REPO}/check-runs/{{check_run_id}}"),
    ("get", f"{REPO}/commits/{{commit_sha}}/pulls"),
    ("get", f"{REPO}/commits/{{ref}}/check-runs"),
    ("delete", f"{REPO}/issues/comments/{{comment_id}}"),
    ("patch", f"{REPO}/issues/comments/{{comment_id}}"),
    ("get", f"{REPO}/issues/{{issue_number}}/comments"),
    ("post", f"{REPO}/issues/{{issue_number}}/comments"),
    ("get", f"{REPO}/pulls"),
    ("get", f"{REPO}/pulls/{{pull_number}}"),
    ("get", f"{REPO}/rules/branches/{{branch}}"),
)
"""What is kept, as (method, path template)."""

_PROSE = frozenset({"description", "example", "examples", "externalDocs", "summary", "title"})
_NAMED = frozenset({"properties", "schemas", "parameters", "responses", "headers", "mapping"})
"""Keywords whose keys are names of somebody's choosing: a property ``title`` is no prose."""

_VERBATIM = frozenset({"required", "enum", "default"})


def without_prose(node: Any, *, named: bool = False) -> Any:
    """Return ``node`` without descriptions, titles and examples; ``named`` keeps every key."""
    if isinstance(node, list):
        return [without_prose(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value
        if key in _VERBATIM and not named
        else without_prose(value, named=key in _NAMED and not named)
        for key, value in node.items()
        if named or (key not in _PROSE and not key.startswith("x-"))
    }


def references(node: Any) -> Iterator[str]:
    """Yield each ``$ref`` that stands in ``node``."""
    if isinstance(node, list):
        for item in node:
            yield from references(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from references(value)


def component(document: dict[str, Any], reference: str) -> tuple[str, str, Any]:
    """Return (section, name, content) of a ``#/components/...`` reference; KeyError if absent."""
    _, _, section, name = reference.split("/")
    return section, name, without_prose(document["components"][section][name])


def closure(document: dict[str, Any], roots: Any) -> dict[str, dict[str, Any]]:
    """Return the components that ``roots`` reach, directly or through each other."""
    kept: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    waiting = list(references(roots))
    while waiting:
        reference = waiting.pop()
        if reference in seen:
            continue
        seen.add(reference)
        section, name, content = component(document, reference)
        kept.setdefault(section, {})[name] = content
        waiting.extend(references(content))
    return kept


def cut(document: dict[str, Any], operations: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the part of an OpenAPI ``document`` that describes ``operations``.

    Raises KeyError when the description no longer has one of them.
    """
    paths: dict[str, dict[str, Any]] = {}
    for method, path in operations:
        paths.setdefault(path, {})[method] = without_prose(document["paths"][path][method])
    info = document["info"]
    return {
        "components": closure(document, paths),
        "info": {key: info[key] for key in ("license", "title", "version")},
        "openapi": document["openapi"],
        "paths": paths,
        "x-source": {
            "cut-by": "scripts/renew_github_openapi.py",
            "file": "generated/api.github.com.json",
            "license": info["license"]["name"],
            "npm": f"@octokit/openapi@{info['version']}",
            "upstream": "https://github.com/github/rest-api-description",
        },
    }


def main(arguments: list[str]) -> int:
    """Write the cut and return the exit status: 0, or 2 with a sentence on how to call this."""
    if len(arguments) != 1:
        sys.stderr.write(__doc__ or "")
        return 2
    document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    text = json.dumps(cut(document, OPERATIONS), indent=1, sort_keys=True, ensure_ascii=False)
    TARGET.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(f"{TARGET.name}: {len(OPERATIONS)} operations, {len(text):,} characters\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
