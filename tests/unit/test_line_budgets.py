"""`make line-budgets` fails for a package that outgrew its number."""

from __future__ import annotations

from scripts import line_budgets


def test_packages_over_or_without_a_budget_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(line_budgets, "ROOT", tmp_path)
    (tmp_path / "line_budgets.toml").write_text("[lines]\nrender = 3\nnew = 0\n")
    render, new = (tmp_path / "ci_agent_eval" / name for name in ("render/html", "new"))
    for folder in (render, new):
        folder.mkdir(parents=True)
    (render / "page.py").write_text("x = 1\n" * 3)

    assert line_budgets.main() == 0

    (render / "page.py").write_text("x = 1\n" * 4)
    (new / "module.py").write_text("x = 1\n")
    assert line_budgets.main() == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("new has 1 lines, and line_budgets.toml allows 0;")
    assert second.startswith("render has 4 lines, and line_budgets.toml allows 3;")
