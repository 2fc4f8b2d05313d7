from __future__ import annotations

from ci_agent_eval.app.setup.repository import ProjectRepository

AGENT = "from agents import Agent\n\nagent = Agent(name='desk')\n"


def test_an_agent_of_a_test_is_not_the_projects(tmp_path):
    for name in ("tests/main.py", "app/test_main.py", "app/conftest.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(AGENT)
    assert ProjectRepository(tmp_path, tmp_path).agent is None
    (tmp_path / "app/desk.py").write_text(AGENT)
    assert ProjectRepository(tmp_path, tmp_path).agent.file == "app/desk.py"
