from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api_errors import (
    CommentsRefusedError,
    NotAllowedError,
    NotFoundError,
    Purpose,
    build_error,
    make_printable_line,
)
from tests.tables import each_row

POST = Purpose("post the comment on #7", "pull-requests")


@each_row(
    ("status", "message", "kind", "sentence"),
    [
        (401, "Bad credentials", PublishError, "answered 401 (Bad credentials). Pass a token"),
        (403, "Resource not accessible by integration", NotAllowedError, "403 (Resource not"),
        (
            403,
            "Resource not accessible by personal access token",
            NotAllowedError,
            "403 (Resource not",
        ),
        (403, "You must authenticate via a GitHub App.", NotAllowedError, "GITHUB_TOKEN"),
        (403, "Issues are disabled for this repo", CommentsRefusedError, "Issues switched off"),
        (410, "Issues are disabled for this repo", CommentsRefusedError, "Issues switched off"),
        (410, "This issue was deleted", PublishError, "410 (This issue was deleted)"),
        (
            403,
            "Unable to create comment because issue is locked",
            CommentsRefusedError,
            "Unlock it",
        ),
        (404, "Not Found", NotFoundError, "Check the repository's name"),
        (422, "Validation Failed", PublishError, "422 (Validation Failed)"),
        (502, "Bad gateway", PublishError, "status page"),
        (302, "", PublishError, "answered 302."),
    ],
)
def test_each_refusal_has_its_sentence(
    status: int, message: str, kind: type[PublishError], sentence: str
):
    error = build_error(POST, status, {"message": message})

    assert type(error) is kind
    assert str(error).startswith("Could not post the comment on #7: ")
    assert sentence in str(error)


def test_a_missing_permission_is_named():
    error = build_error(POST, 403, {"message": "Resource not accessible by integration"})

    assert isinstance(error, NotAllowedError)
    assert error.permission == "pull-requests"


def test_githubs_details_are_repeated():
    errors = [{"field": "body", "code": "custom", "message": "is too long"}, "and more", 3]

    error = build_error(POST, 422, {"message": "Validation Failed", "errors": errors})

    assert "422 (Validation Failed; body is too long; and more)" in str(error)


def test_a_secret_that_github_repeats_is_struck_out():
    error = build_error(POST, 422, {"message": "no token ghs_secret here"}, secret="ghs_secret")

    assert "no token *** here" in str(error)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
bodies = st.dictionaries(st.sampled_from(["message", "errors", "x"]), json_values)


@given(st.integers(100, 599), bodies | json_values)
def test_any_answer_makes_one_printable_line(status: int, data: Any):
    text = str(build_error(POST, status, data))

    assert text.isprintable()
    assert len(text) < 700


@given(st.text())
def test_foreign_text_becomes_one_bounded_line(text: str):
    shown = make_printable_line(text)

    assert shown.isprintable()
    assert len(shown) <= 301
