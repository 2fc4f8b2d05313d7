"""An importer of Acme's results: `{"acme_version": 1, "cases": [...]}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class AcmeImporter:
    """Yields an episode for each case; a missing key raises, which fails the gate."""

    tool = "Acme"

    def can_import(self, document: Mapping[str, Any]) -> bool:
        return "acme_version" in document

    def iterate_episodes(self, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if document["acme_version"] != 1:
            raise ValueError("this is no file of version 1")
        for case in document["cases"]:
            turns = [
                {"role": "user", "content": case["question"]},
                {"role": "assistant", "content": case["answer"]},
            ]
            yield {
                "scenario_id": case["name"],
                "assertions": [{"name": "Acme's verdict", "passed": case["verdict"] == "good"}],
                "trajectory": {"turns": turns},
            }
