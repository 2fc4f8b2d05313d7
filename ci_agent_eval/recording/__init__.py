"""Recording an episode while its test runs."""

from ci_agent_eval.recording.episode import EpisodeRecorder, Locate
from ci_agent_eval.recording.failure_reasons import list_failure_reasons
from ci_agent_eval.recording.initial_episode import EpisodeFields, build_initial_episode
from ci_agent_eval.recording.turn import Reply, Tokens, TurnRecorder
from ci_agent_eval.recording.validation import Clock

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
