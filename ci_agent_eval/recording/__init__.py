"""Recording an episode while its test runs."""

from ci_agent_eval.recording.budgets import Clock
from ci_agent_eval.recording.check_value import list_failure_reasons
from ci_agent_eval.recording.episode import EpisodeRecorder, Locate
from ci_agent_eval.recording.recorded_turns import EpisodeFields, build_initial_episode
from ci_agent_eval.recording.turn import Reply, Tokens, TurnRecorder

__all__ = [
    "Clock",
    "EpisodeFields",
    "EpisodeRecorder",
    "Locate",
    "Reply",
    "Tokens",
    "TurnRecorder",
    "build_initial_episode",
    "list_failure_reasons",
]
