"""The rendered content to publish, and the result of publishing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ci_agent_eval.render.formats.annotations import Annotation
from ci_agent_eval.render.links import DetailsPage

Conclusion = Literal["success", "failure"]
"""GitHub passes a required check that is `neutral` or `skipped`, so these are never used."""

CommentMode = Literal["update", "on-failure", "on-change", "off"]
"""When our comment is created or updated."""

Status = Literal["created", "updated", "unchanged", "withheld", "written", "skipped", "failed"]
"""`withheld`: not wanted now; `skipped`: impossible here, without a failure of this run."""


@dataclass(frozen=True, slots=True)
class Publication:
    """All content of one report for GitHub. Its Markdown is within GitHub's limits."""

    headline: str
    """The verdict in one sentence without untrusted text; replaces unsafe texts."""
    marker: str
    """First line of the comment: the HTML comment that identifies it."""
    comment_body: str
    """The comment, starting with the marker."""
    fallback_body: str
    """Marker and verdict alone; sent if the comment fails its final safety check."""
    comment_state: str
    """Hash of the comment's statements, as embedded in the comment."""
    link_prefixes: tuple[str, ...]
    """Allowed prefixes of links, for `render.guard`."""
    check_name: str
    check_title: str
    check_summary: str
    conclusion: Conclusion
    render_with_details: Callable[[DetailsPage], str] | None = None
    """Renders the comment with links to a page of details; None: it links to the conversations."""
    differs: bool | None = None
    """Whether any test fails or differs from the baseline; None without a baseline."""
    annotations: tuple[Annotation, ...] = ()
    """Most important first."""
    left_out: str = ""
    """Log message with the number of dropped annotations; empty: none."""
    step_summary: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """The action's outputs by name."""


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """The requested publications."""

    comment: CommentMode = "update"
    check_run: bool = True
    comment_author: str | None = None
    """Login of our comments' author; None: the token's own (`github-actions[bot]` for an app's
    token).
    """
    in_workflow: bool = True
    """Whether GitHub's runner reads standard output, so that workflow commands work."""


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """The result of publishing one part."""

    name: str
    """Such as `comment on #7` or `check run`."""
    status: Status
    sentence: str
    """The result in words, and the remedy after a failure."""
    url: str | None = None

    @property
    def is_published(self) -> bool:
        """Whether it is up to date on GitHub."""
        return self.status not in {"skipped", "failed"}


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The results of publishing all parts."""

    files: tuple[PublishedPart, ...] = ()
    """Step summary and outputs."""
    check_run: PublishedPart | None = None
    """None: not requested."""
    comments: tuple[PublishedPart, ...] = ()
    """One per pull request."""

    @property
    def parts(self) -> tuple[PublishedPart, ...]:
        """All parts in the order of publication."""
        check_run = () if self.check_run is None else (self.check_run,)
        return (*self.files, *self.comments, *check_run)

    @property
    def comment(self) -> PublishedPart | None:
        """The first comment; None if there is none."""
        return self.comments[0] if self.comments else None

    @property
    def problems(self) -> tuple[str, ...]:
        """The sentences of all unpublished parts."""
        return tuple(part.sentence for part in self.parts if not part.is_published)

    @property
    def has_failures(self) -> bool:
        """Whether publishing a requested part failed."""
        return any(part.status == "failed" for part in self.parts)
