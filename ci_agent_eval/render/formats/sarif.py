"""SARIF 2.1.0: failures as results of an analysis, for code scanning and editors.

Results are the annotations that have a file, because consumers refuse a result without a place.
The others are notifications of the run, as is every reason of the verdict. There are no times,
ids or absolute paths in it.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from ci_agent_eval.render.escape import cut_bytes, visible_lines
from ci_agent_eval.render.formats.annotations import (
    MESSAGE_BYTES,
    Annotation,
    AnnotationKind,
    Level,
    list_all_annotations,
)
from ci_agent_eval.render.report_view import ReasonRow, ReportView

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_RULES: dict[AnnotationKind, str] = {
    "failed": "An assertion of an agent's scenario failed.",
    "error": "A scenario was not judged: it ended in an error.",
    "warning": "An assertion that only warns failed.",
    "baseline": "A scenario does worse than in the baseline, or may do so.",
    "budget": "A scenario used more than its budget, or it was not measured.",
    "test": "Another test of the suite failed.",
    "known": "A scenario of the manifest did not run, or not as the manifest has it.",
}
_LEVELS: dict[Level, str] = {"failure": "error", "warning": "warning", "notice": "note"}


def render_sarif(view: ReportView) -> str:
    """Return `agent-eval.sarif`: sorted keys, two spaces, ASCII, a newline at the end."""
    found = list_all_annotations(view)
    run = {
        "tool": {"driver": {"name": "agent-eval", "rules": [_build_rule(kind) for kind in _RULES]}},
        "automationDetails": {"id": f"agent-eval/{view.suite}/"},
        "invocations": [_build_invocation(view, [a for _, a in found if not a.path])],
        "results": [_build_result(kind, a) for kind, a in found if a.path],
        "properties": {"conclusion": view.conclusion, "headline": view.headline},
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _build_rule(kind: AnnotationKind) -> dict[str, Any]:
    return {"id": f"agent-eval/{kind}", "shortDescription": {"text": _RULES[kind]}}


def _build_result(kind: AnnotationKind, annotation: Annotation) -> dict[str, Any]:
    place = {
        "artifactLocation": {"uri": quote(annotation.path), "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": annotation.start_line},
    }
    # The line is left out, because lines move.
    digest = hashlib.sha256(f"{kind}\0{annotation.path}\0{annotation.title}".encode()).hexdigest()
    return {
        "ruleId": f"agent-eval/{kind}",
        "level": _LEVELS[annotation.level],
        "message": _build_message(f"{annotation.title}\n{annotation.message}"),
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"agentEval/v1": digest[:32]},
    }


def _build_invocation(view: ReportView, unplaced: list[Annotation]) -> dict[str, Any]:
    """Return the run: whether its files are sound, the reasons of the verdict."""
    return {
        "executionSuccessful": not any(f.gates for f in view.findings),
        "toolExecutionNotifications": [
            *(_build_notification("error", reason) for reason in view.reasons),
            *(_build_notification("warning", reason) for reason in view.warnings),
            *(
                {
                    "level": _LEVELS[annotation.level],
                    "message": _build_message(f"{annotation.title}\n{annotation.message}"),
                }
                for annotation in unplaced
            ),
        ],
    }


def _build_notification(level: str, reason: ReasonRow) -> dict[str, Any]:
    return {
        "descriptor": {"id": f"agent-eval/gate/{reason.kind}"},
        "level": level,
        "message": _build_message(reason.line),
    }


def _build_message(text: str) -> dict[str, str]:
    """Return a plain text message in which `[text](target)` is no link (§3.11.6)."""
    shown = cut_bytes(visible_lines(text, MESSAGE_BYTES), MESSAGE_BYTES)
    return {"text": shown.replace("](", "] (")}
