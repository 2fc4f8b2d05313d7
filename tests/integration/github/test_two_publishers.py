"""Two publishers of one suite at the same time leave one comment, whichever acts when."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import pytest

from ci_agent_eval.github.client import Connection
from ci_agent_eval.github.comment import upsert_comment
from ci_agent_eval.github.publication import PublishedPart
from tests.github_fake import FaultKind
from tests.integration.github.rig import BOT, MARKER, REPO, TOKEN, Rig
from tests.samples import run_sample

ORDERS = ["".join("A" if n in at else "B" for n in range(8)) for at in combinations(range(8), 4)]


class Turns:
    """Who may call next: the order that is given, then whoever comes."""

    def __init__(self, order: str) -> None:
        self._order = order
        self._gone: set[str] = set()
        self._changed = threading.Condition()

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        """Wait until it is this publisher's turn, and let nobody else act during it."""
        with self._changed:
            self._changed.wait_for(lambda: self._next() in {name, ""}, timeout=600)
            yield
            self._order = self._order.replace(name, "", 1)
            self._changed.notify_all()

    def leave(self, name: str) -> None:
        """Give up all later turns."""
        with self._changed:
            self._gone.add(name)
            self._changed.notify_all()

    def _next(self) -> str:
        return next((name for name in self._order if name not in self._gone), "")


class Publisher(threading.Thread):
    """Posts one text, each of its calls when it is its turn."""

    def __init__(self, name: str, rig: Rig, turns: Turns) -> None:
        super().__init__(name=name)
        self.rig, self.turns = rig, turns
        self.part: PublishedPart | None = None

    @property
    def body(self) -> str:
        return f"{MARKER}\nby {self.name}\n"

    def run(self) -> None:
        try:
            with self.rig.connect(Connection(REPO, TOKEN, self.rig.fake.url)) as api:
                self.part = publish(_Waiting(api, self), self.body, self.rig)
        finally:
            self.turns.leave(self.name)


class _Waiting:
    """The API, of which the calls about comments wait for their turn."""

    def __init__(self, api: Any, publisher: Publisher) -> None:
        self._api, self._publisher = api, publisher

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._api, name)
        if name not in {"comments", "create_comment", "update_comment", "delete_comment"}:
            return found

        def call(*arguments: Any) -> Any:
            with self._publisher.turns.take(self._publisher.name):
                return found(*arguments)

        return call


def publish(api: Any, body: str, rig: Rig) -> PublishedPart:
    return upsert_comment(api, 7, body=body, marker=MARKER, author=BOT, log=rig.log)


def race(rig: Rig, order: str) -> Sequence[Publisher]:
    turns = Turns(order)
    publishers = [Publisher(name, rig, turns) for name in "AB"]
    for one in publishers:
        one.start()
    for one in publishers:
        one.join()
    return publishers


@pytest.mark.parametrize("order", run_sample([(order,) for order in ORDERS], range(0, 70, 7)))
def test_one_comment_is_left_in_every_order(rig: Rig, order: str):
    publishers = race(rig, order)

    (left,) = rig.comments
    posts = [one.body["body"] for one in rig.fake.writes if one.method == "POST"]
    assert left.id == min(one.id for one in rig.comments)
    # As if they had come one after the other: the later one's text stands.
    changes = [one.body["body"] for one in rig.fake.writes if one.method == "PATCH"]
    assert left.body == [*posts, *changes][-1]
    assert len(posts) < 2 or left.body == posts[-1]
    assert [one.part.status for one in publishers if one.part] in (
        ["created", "updated"],
        ["updated", "created"],
    )


def post_of_another(rig: Rig, api: Any) -> Any:
    """An API in which somebody else posts right before our own first post."""

    class Racing:
        def __getattr__(self, name: str) -> Any:
            return getattr(api, name)

        def create_comment(self, issue: int, body: str) -> Any:
            rig.fake.add_comment(REPO, 7, BOT, f"{MARKER}\nof another job\n")
            return api.create_comment(issue, body)

    return Racing()


PASSING: tuple[FaultKind, ...] = ("server_error", "bad_gateway_after_work", "cut_after")


@pytest.mark.parametrize("kind", PASSING)
def test_a_delete_that_goes_wrong_for_a_moment_is_repeated(rig: Rig, kind: FaultKind):
    rig.fake.faults.add(kind, on="DELETE *")
    with rig.connect(Connection(REPO, TOKEN, rig.fake.url)) as api:
        part = publish(post_of_another(rig, api), f"{MARKER}\nours\n", rig)

    assert part.status == "updated"
    assert [one.body for one in rig.comments] == [f"{MARKER}\nours\n"]


def test_a_duplicate_that_cannot_be_deleted_is_left_to_the_next_run(rig: Rig):
    rig.fake.faults.add("unprocessable", on="DELETE *")
    with rig.connect(Connection(REPO, TOKEN, rig.fake.url)) as api:
        publish(post_of_another(rig, api), f"{MARKER}\nours\n", rig)
        assert len(rig.comments) == 2
        assert any("second comment of ours" in text for level, text in rig.said)

        publish(api, f"{MARKER}\nours\n", rig)

    assert [one.body for one in rig.comments] == [f"{MARKER}\nours\n"]


def test_a_third_and_younger_comment_gets_its_text_written_by_its_own_publisher(rig: Rig):
    with rig.connect(Connection(REPO, TOKEN, rig.fake.url)) as api:

        class Crowded:
            def __getattr__(self, name: str) -> Any:
                return getattr(api, name)

            def create_comment(self, issue: int, body: str) -> Any:
                rig.fake.add_comment(REPO, 7, BOT, f"{MARKER}\nfirst\n")
                made = api.create_comment(issue, body)
                rig.fake.add_comment(REPO, 7, BOT, f"{MARKER}\nthird\n")
                return made

        publish(Crowded(), f"{MARKER}\nsecond\n", rig)

    assert [one.body for one in rig.comments] == [f"{MARKER}\nfirst\n"]
