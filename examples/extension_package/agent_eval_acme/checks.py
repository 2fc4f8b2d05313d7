"""A check for scenario files: `expect: [{ShortReply: {words: 20}}]`."""

from __future__ import annotations

from dataclasses import dataclass

from ci_agent_eval.contract.episode import Assertion, Episode


@dataclass(frozen=True)
class ShortReply:
    """The agent's last reply has at most `words` words."""

    words: int = 30

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        turns = episode.trajectory.agent_turns if episode.trajectory else ()
        found = len(turns[-1].content.split()) if turns else 0
        passed = bool(turns) and found <= self.words
        reason = f"it has {found}" if turns else "there is no reply"
        return (Assertion(name=f"at most {self.words} words", passed=passed, reason=reason),)
