"""What is to be published, as values already rendered, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ci_agent_eval.render.formats.annotations import Annotation

Conclusion = Literal["success", "failure"]
"""GitHub passes a required check that is `neutral` or `skipped`; those are never used."""

CommentMode = Literal["update", "on-failure", "on-change", "off"]
"""When a pull request gets our comment, and when the one that is there is written anew."""

Status = Literal["created", "updated", "unchanged", "withheld", "written", "skipped", "failed"]
"""`withheld`: not wanted now; `skipped`: not possible here, for no fault of this run."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Everything one report puts on GitHub. Markdown in it is already within its limits."""

    headline: str
    """The verdict in one sentence of our own words; stands in for a text that is unfit to send."""
    marker: str
    """First line of the comment: the HTML comment by which it is found again."""
    comment_body: str
    """The comment, marker first."""
    fallback_body: str
    """The verdict alone, marker first; sent when the comment fails its last safety check."""
    comment_state: str
    """What the comment says, in one word, as it stands in the comment."""
    link_prefixes: tuple[str, ...]
    """The addresses that links may lead to, as `render.guard` takes them."""
    check_name: str
    check_title: str
    check_summary: str
    conclusion: Conclusion
    differs: bool | None = None
    """Whether anything fails or is not as in the baseline; None: there is none."""
    annotations: tuple[Annotation, ...] = ()
    """The most important first."""
    left_out: str = ""
    """Says how many annotations were too many, for the log; empty: none."""
    step_summary: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """The action's outputs by name."""


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """What the user wants published."""

    comment: CommentMode = "update"
    check_run: bool = True
    comment_author: str | None = None
    """Login that our comments carry; None: the token's own, for an app's token
    `github-actions[bot]`."""
    in_workflow: bool = True
    """Whether standard output is read by GitHub's runner, so that workflow commands work."""


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """What became of one thing that was to be published."""

    name: str
    """Such as `comment on #7` or `check run`."""
    status: Status
    sentence: str
    """What happened, and after a failure what to do."""
    url: str | None = None

    @property
    def is_published(self) -> bool:
        """Whether it is there now as it should be."""
        return self.status not in {"skipped", "failed"}


@dataclass(frozen=True, slots=True)
class PublishResult:
    """What became of everything that was to be published."""

    files: tuple[PublishedPart, ...] = ()
    """Step summary and outputs."""
    check_run: PublishedPart | None = None
    """None: not asked for."""
    comments: tuple[PublishedPart, ...] = ()
    """One for each pull request."""

    @property
    def parts(self) -> tuple[PublishedPart, ...]:
        """All of them, in the order they were published."""
        check_run = () if self.check_run is None else (self.check_run,)
        return (*self.files, *self.comments, *check_run)

    @property
    def comment(self) -> PublishedPart | None:
        """The first comment; None where there is none."""
        return self.comments[0] if self.comments else None

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each part that is not there."""
        return tuple(part.sentence for part in self.parts if not part.is_published)

    @property
    def failed(self) -> bool:
        """Whether something that was asked for could have been published, and was not."""
        return any(part.status == "failed" for part in self.parts)
