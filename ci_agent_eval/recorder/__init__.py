"""Recording an episode while its test runs."""

from ci_agent_eval.recorder.checked import Clock
from ci_agent_eval.recorder.complaints import complaints
from ci_agent_eval.recorder.draft import EpisodeFields, draft_episode
from ci_agent_eval.recorder.episode import EpisodeRecorder, Locate
from ci_agent_eval.recorder.turn import Tokens, TurnRecorder

__all__ = [
    "Clock",
    "EpisodeFields",
    "EpisodeRecorder",
    "Locate",
    "Tokens",
    "TurnRecorder",
    "complaints",
    "draft_episode",
]
