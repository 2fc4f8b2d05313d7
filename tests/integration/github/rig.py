"""A publish against the loopback GitHub, and everything a test wants to see of it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from ci_agent_eval.github.client import Connection, open_api
from ci_agent_eval.github.event import Event
from ci_agent_eval.github.publication import Publication, PublishOptions, PublishResult
from ci_agent_eval.github.publish import PublishEnvironment, publish_to_github
from ci_agent_eval.github.runner_files import RunnerFiles
from ci_agent_eval.render.formats.annotations import Annotation
from tests.github_fake import FakeGitHub

REPO = "octo/shop"
SHA = "a" * 40
TOKEN = "ghs_very_secret_0123456789"
MARKER = "<!-- agent-eval suite=shop -->"
BOT = "github-actions[bot]"
START = 1_767_229_000.0


def annotations(number: int) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(f"tests/test_{n}.py", n, n, "failure", f"case {n}", f"failed {n}")
        for n in range(1, number + 1)
    )


def publication(**overrides: Any) -> Publication:
    fields: dict[str, Any] = {
        "headline": "❌ Agent evals failed: 1 of 3 scenarios fails",
        "marker": MARKER,
        "comment_body": f"{MARKER}\n### ❌ Agent evals failed: 1 of 3 scenarios fails\n\nmore\n",
        "fallback_body": f"{MARKER}\n### ❌ Agent evals failed: 1 of 3 scenarios fails\n",
        "comment_state": "0123456789abcdef",
        "link_prefixes": (),
        "check_name": "agent-eval",
        "check_title": "1 of 3 scenarios fails",
        "check_summary": "one fails",
        "conclusion": "failure",
        "annotations": annotations(2),
        "step_summary": "the whole summary",
        "outputs": {"conclusion": "failure"},
        **overrides,
    }
    return Publication(**fields)


def pull_event(**overrides: Any) -> Event:
    fields: dict[str, Any] = {
        "name": "pull_request",
        "repository": REPO,
        "head_sha": SHA,
        "pulls": (7,),
        "run_url": f"https://github.com/{REPO}/actions/runs/1",
        **overrides,
    }
    return Event(**fields)


@dataclass
class Rig:
    """A fake GitHub with one pull request, and a publisher with a clock that only sleeping moves."""

    fake: FakeGitHub
    folder: Path
    naps: list[float] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)
    emitted: list[str] = field(default_factory=list)
    results: list[PublishResult] = field(default_factory=list)
    interrupt_at: int = 0
    """Which nap, from 1, ends in a KeyboardInterrupt; 0: none."""

    def __post_init__(self) -> None:
        self.fake.token(TOKEN)
        self.fake.add_repo(REPO)
        self.fake.add_pull(REPO, 7, SHA)

    @property
    def step_summary(self) -> Path:
        return self.folder / "step_summary.md"

    @property
    def outputs(self) -> Path:
        return self.folder / "outputs"

    def publish(
        self,
        shown: Publication | None = None,
        *,
        event: Event | None = None,
        settings: PublishOptions | None = None,
        api_url: str | None = None,
        token: str | None = TOKEN,
        patience_s: float = 300,
    ) -> PublishResult:
        event = event or pull_event()
        url = api_url or self.fake.url
        link = Connection(event.repository, token or "", url, timeout_s=5, patience_s=patience_s)
        words = count()
        result = publish_to_github(
            shown or publication(),
            event,
            settings or PublishOptions(),
            connect=(lambda: self.connect(link)) if token else None,
            around=PublishEnvironment(
                files=RunnerFiles(self.step_summary, self.outputs),
                log=self.log,
                emit=self.emitted.append,
                token=lambda: f"word{next(words)}",
            ),
        )
        self.results.append(result)
        return result

    def connect(self, link: Connection) -> Any:
        return open_api(
            link,
            sleep=self.nap,
            clock=lambda: START + sum(self.naps),
            log=self.log,
        )

    def nap(self, seconds: float) -> None:
        self.naps.append(seconds)
        if len(self.naps) == self.interrupt_at:
            raise KeyboardInterrupt

    def log(self, level: str, text: str) -> None:
        self.said.append((level, text))

    @property
    def comments(self) -> list[Any]:
        return self.fake.comments(REPO, 7)

    @property
    def ours(self) -> list[Any]:
        return [c for c in self.comments if c.body.startswith(MARKER) and c.author == BOT]

    @property
    def check_runs(self) -> list[Any]:
        return self.fake.check_runs(REPO)

    def everything_said(self) -> str:
        sentences = [part.sentence for result in self.results for part in result.parts]
        return "\n".join([*(text for _, text in self.said), *self.emitted, *sentences])


def leave_open(rig: Rig, external_id: str = "agent-eval:0123", app: str = "github-actions") -> Any:
    """Leave a check run of other results in progress, as a killed publish does."""
    run = rig.fake.world.add_check_run(REPO, app, "agent-eval", SHA)
    run.status, run.external_id = "in_progress", external_id
    return run


def open_rig(folder: Path) -> Iterator[Rig]:
    """Yield a rig whose publishing breaks no rule of GitHub's description and says no token."""
    with FakeGitHub() as fake:
        rig = Rig(fake, folder)
        yield rig
        assert fake.violations == []
        assert TOKEN not in rig.everything_said()
