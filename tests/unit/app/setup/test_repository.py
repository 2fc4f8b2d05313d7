from __future__ import annotations

from ci_agent_eval.app.setup.repository import ProjectRepository
from tests.tables import each_row

AGENT = "from agents import Agent\n\nagent = Agent(name='desk')\n"


def test_an_agent_of_a_test_is_not_the_projects(tmp_path):
    for name in ("tests/main.py", "app/test_main.py", "app/conftest.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(AGENT)
    assert ProjectRepository(tmp_path, tmp_path).agent is None
    (tmp_path / "app/desk.py").write_text(AGENT)
    assert ProjectRepository(tmp_path, tmp_path).agent.file == "app/desk.py"


@each_row(
    ("address", "name"),
    [
        ("https://github.com/octo/shop.git", "octo/shop"),
        ("https://github.com/octo/shop", "octo/shop"),
        ("git@github.com:octo/shop.git", "octo/shop"),
        ("ssh://git@github.com/octo/my.shop/", "octo/my.shop"),
        ("https://gitlab.com/octo/shop.git", None),
        ("https://github.com.example.org/octo/shop.git", None),
        ("../shop.git", None),
    ],
)
def test_the_name_on_github_is_that_of_origin(tmp_path, address, name):
    (tmp_path / ".git").mkdir()
    other = '[remote "fork"]\n\turl = https://github.com/someone/shop.git\n'
    origin = f'[remote "origin"]\n\tfetch = +refs/heads/*\n\turl = {address}\n'
    (tmp_path / ".git/config").write_text(f"[core]\n\tbare = false\n{other}{origin}")
    assert ProjectRepository.find(tmp_path).find_github_name("github.com") == name
