"""Model requests without a recorded answer in replay, also where their error was caught."""

from __future__ import annotations

from ci_agent_eval.pytest_plugin.collection.detection import EpisodeItem


def list_unanswered_requests(state: EpisodeItem) -> list[str]:
    """Return the problem of an episode with refused model requests: the first one's message."""
    cassette = None if state.running is None else state.running.cassette
    refused = [] if cassette is None else cassette.refusals
    return [f"the cassette did not answer a request: {refused[0]}"] if refused else []


def note_cassette_misses(state: EpisodeItem) -> None:
    """Record the cassette misses of requests outside of runs, too."""
    if state.recorder is not None and state.running is not None and state.running.cassette:
        state.recorder.note_cassette_misses(state.running.cassette.misses)
