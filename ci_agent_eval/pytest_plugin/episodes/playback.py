"""`--episode-playback`: play recorded trajectories to the tests in place of their agents.

Only `agent-eval mutate` gives the option, with a file of the plays. The Nth iteration of a test
gets its Nth play. No agent, model or judge is asked, and connections beyond this machine are
refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.contract.playback import Play, PlaybackPlan
from ci_agent_eval.model_traffic.network_guard import refuse_connections
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.iterations import get_base_nodeid, get_iteration
from ci_agent_eval.recording.playback import EpisodePlayback


class SuitePlayback:
    """A plugin object that selects the tests with plays, and gives each episode its play."""

    def __init__(self, plays: Mapping[str, Sequence[Play]]) -> None:
        self._plays = plays
        self._uncovered: set[str] = set()
        """Tests whose unchanged recording does not pass: their other plays say nothing."""

    @classmethod
    def register(cls, config: pytest.Config) -> None:
        """Read the file of the option, and register the plugin object."""
        file = Path(str(config.option.episode_playback))
        plan = PlaybackPlan.model_validate_json(file.read_bytes())
        playback = cls({test.nodeid: test.plays for test in plan.tests})
        most = max((len(test.plays) for test in plan.tests), default=1)
        config.stash[options.FORCED_ITERATIONS] = IterationRange(most)
        config.pluginmanager.register(playback, "ci_agent_eval_playback")
        guards = ExitStack()
        guards.enter_context(refuse_connections(config.getini("cassette_allowed_hosts")))
        config.add_cleanup(guards.close)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep one item for each play, and nothing else."""
        others = [item for item in items if self._find_play(item) is None]
        items[:] = [item for item in items if self._find_play(item) is not None]
        if others:
            config.hook.pytest_deselected(items=others)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Give the episode its play; skip a change of a recording that does not pass unchanged."""
        play = self._find_play(item)
        if play is None or detection.EPISODE not in item.stash:
            return
        if get_base_nodeid(item) in self._uncovered:
            pytest.skip("its unchanged recording does not pass")
        item.stash[detection.EPISODE].playback = EpisodePlayback(play)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Remember a test whose unchanged recording does not pass, or that did not use it."""
        if get_iteration(item).number > 1 or detection.EPISODE not in item.stash:
            return
        state = item.stash[detection.EPISODE]
        final, playback = state.final_episode, state.playback
        is_exact = playback is not None and playback.build_record().is_exact
        if final is None or not final.is_passing() or not is_exact:
            self._uncovered.add(get_base_nodeid(item))

    def _find_play(self, item: pytest.Item) -> Play | None:
        number, plays = get_iteration(item).number, self._plays.get(get_base_nodeid(item), ())
        is_played = number <= len(plays) and detection.is_episode(item)
        return plays[number - 1] if is_played else None
