"""The settings file of a project, as the hook reads it."""

from __future__ import annotations

from tests.integration.steering.hook_events import (
    CLAUDE,
    ENABLE,
    decided,
    is_denied,
    renamed,
)


def test_a_directory_that_covers_testpaths_of_the_event_s_folder_is_denied(hook, tmp_path):
    (tmp_path / "steer.yaml").write_text("session: {bare_directory: covers_testpaths}\n")
    for name, testpaths in (("a", "tests"), ("b", "tests docs")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pytest.ini").write_text(f"[pytest]\ntestpaths = {testpaths}\n")
    event = renamed(CLAUDE, "pytest tests/")
    options = (ENABLE, "--config", "steer.yaml")

    assert is_denied(hook({**event, "cwd": str(tmp_path / "a")}, *options))
    assert not is_denied(hook({**event, "cwd": str(tmp_path / "b")}, *options))


def test_the_settings_reach_the_hook(hook, tmp_path):
    (tmp_path / "steer.yaml").write_text(
        "session:\n  pytest_full_suite_steering_message: Not so fast.\n"
        "  dangerous_commands: [force-push]\n"
    )
    config = ("--config", "steer.yaml")
    said = decided(hook(CLAUDE, *config, PYTEST_FULL_SUITE_STEERING_ENABLED="true"))

    assert said["hookSpecificOutput"]["permissionDecisionReason"] == "Not so fast."
    assert decided(hook(CLAUDE, *config, "--disable-pytest-full-suite-steering")) == ""
    push = renamed(CLAUDE, "git push -f")
    assert is_denied(hook(push, *config))
    assert is_denied(hook(push, *config))


def test_the_settings_of_the_project_are_found_from_within_it(hook, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "agent-eval-steering.yaml").write_text(
        "session: {pytest_full_suite_steering_enabled: true}\n"
    )
    (project / "other.yaml").write_text("session: {}\n")
    named = {"CLAUDE_PROJECT_DIR": str(project)}

    assert is_denied(hook(CLAUDE, **named))
    assert b"steering is off" in hook(CLAUDE, "--config", "other.yaml", **named).stderr
    assert b"other.yaml: there is no such file" in hook(CLAUDE, "--config", "other.yaml").stderr
