"""The full answer to a hook event: with the settings, the parsers and the memory of sessions."""

# ruff: noqa: PLC0415 - modules are imported only for the events that need them

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.coding_agents import CodingAgent, HookEvent, HookRequest
from ci_agent_eval.steering.hook.event_answer import answer_event
from ci_agent_eval.steering.hook.options import ENABLE, HookOptions
from ci_agent_eval.steering.locations import find_root, find_settings, get_default_store_path
from ci_agent_eval.steering.policy.model import Decision, DetectionResult
from ci_agent_eval.steering.policy.reactor import Adviser


def answer_fully(options: HookOptions, data: bytes, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the texts for standard output and standard error. Never raises."""

    def review(request: HookRequest, agent: CodingAgent, event: HookEvent) -> Decision:
        return _review_request(options, environ, request, agent, event)

    return answer_event(BytesIO(data), options.agent, review)


def _review_request(
    options: HookOptions,
    environ: Mapping[str, str],
    request: HookRequest,
    agent: CodingAgent,
    event: HookEvent,
) -> Decision:
    if options.problem is not None:
        raise InputError(options.problem)
    from ci_agent_eval.steering.hook.request_review import build_reviewer
    from ci_agent_eval.steering.settings_loader import load_steering_settings

    settings = load_steering_settings(
        root=Path(find_root(environ)),
        environ=environ,
        enabled=options.enabled,
        config=Path(find_settings(environ, options.config)) if options.config else None,
    )
    if settings.is_idle:
        raise InputError(f"steering is off; switch it on with {ENABLE}")
    store = options.store or get_default_store_path(environ, str(Path.home()))
    reviewer = build_reviewer(settings, Path(store), time.time, _build_adviser)
    return reviewer(request, agent, event)


def _build_adviser(folder: Path) -> Adviser:
    def advise(run: DetectionResult) -> str | None:
        from ci_agent_eval.steering.advice import find_advice

        return find_advice(folder, os.environ, run)

    return advise
