"""No secret reaches a file or the terminal through an episode."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.pytest_plugin.episodes.episode_files import redact_model
from ci_agent_eval.redaction import REDACTED, Redactor

SECRET = "Zx9-plain-value"
REDACTOR = Redactor((SECRET,))


NEEDED = {
    "passed": True,
    "value": 1,
    "role": "assistant",
    "limit": 1,
    "requests": 1,
    "kind": "database",
    "score": 0.5,
    "recorded_at": 1,
}
"""What the contract requires besides texts."""
NEEDED_OF = {
    "Fault": {"kind": "garbage", "value": {SECRET: [SECRET]}},
    "Instructions": {"kind": "agent"},
}
"""What single models require."""


def full_of(text: str, annotation: Any) -> Any:
    """Return a value of the type with the text wherever one can be; None where none can."""
    if annotation is str:
        return text
    if "JsonValue" in str(annotation):
        return {text: [text]}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return model_full_of(text, annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        inner = full_of(text, parts[0])
        return None if inner is None else [inner]
    if origin is dict:
        return {text: full_of(text, parts[1])}
    found = (full_of(text, part) for part in parts if origin is not Literal)
    return next((value for value in found if value is not None), None)


def model_full_of(text: str, model: type[BaseModel]) -> dict[str, Any]:
    extra = {"more": text} if model.model_config.get("extra") == "allow" else {}
    fields = {name: full_of(text, field.annotation) for name, field in model.model_fields.items()}
    needed = {name: value for name, value in NEEDED.items() if name in fields}
    needed |= NEEDED_OF.get(model.__name__, {})
    return {k: v for k, v in fields.items() if v is not None} | needed | extra


def texts_in(value: Any) -> int:
    if isinstance(value, dict):
        return sum(texts_in(key) + texts_in(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(texts_in(item) for item in value)
    return int(value == SECRET)


def test_every_text_of_an_episode_is_redacted():
    # Built from the contract itself, so that a field added later is covered too.
    episode = Episode.model_validate(full_of(SECRET, Episode))
    before = episode.model_dump(mode="json")
    assert texts_in(before) >= 25
    after = redact_model(episode, REDACTOR)
    assert SECRET not in after.model_dump_json()
    assert after.model_dump_json().count(REDACTED) == texts_in(before)
    assert (after.key[2:], after.outcome) == (episode.key[2:], episode.outcome)


def test_the_fixed_words_of_the_contract_are_no_secrets():
    words = Redactor(("required", "p95", "assistant", "passed"))
    episode = Episode.model_validate(
        {
            "scenario_id": "a",
            "outcome": "passed",
            "trajectory": {"turns": [{"role": "assistant", "content": "passed"}]},
        }
    )
    assert redact_model(episode, REDACTOR) is episode
    after = redact_model(episode, words)
    assert (after.gate, after.outcome) == ("required", "passed")
    assert after.trajectory is not None
    assert (after.trajectory.turns[0].role, after.trajectory.turns[0].content) == (
        "assistant",
        REDACTED,
    )


def test_no_file_of_ours_holds_a_secret_and_episodes_that_differ_in_it_are_kept_apart(
    suite, monkeypatch
):
    monkeypatch.setenv("DESK_API_KEY", SECRET)
    suite.write(f"""
        import pytest

        @pytest.mark.parametrize("key", ["{SECRET}", "ghp_{"a" * 36}", "ghp_{"b" * 36}"])
        def test_keys(episode, key):
            with episode.turn(f"my key is {{key}}") as turn:
                turn.tool_call("login", {{"key": key, key: 1}})
                raise ConnectionError(f"refused {{key}}")
    """)
    ran = suite.run()
    for file in [ran.folder / "results.json", *ran.folder.glob("episodes/*.jsonl")]:
        text = file.read_text()
        assert SECRET not in text
        assert "ghp_" not in text
        assert "refused [redacted]" in text
    assert SECRET not in "".join(str(p) for p in ran.properties.values())
    assert [e.nodeid for e in ran.results.episodes] == [
        "test_suite.py::test_keys[[redacted]]",
        "test_suite.py::test_keys[[redacted]]#2",
        "test_suite.py::test_keys[[redacted]]#3",
    ]
