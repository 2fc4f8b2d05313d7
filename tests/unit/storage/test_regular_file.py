from __future__ import annotations

import pytest

from ci_agent_eval.storage import regular_file


@pytest.fixture(params=["flag", "no flag, as on Windows"])
def link(request, tmp_path, monkeypatch):
    if request.param != "flag":
        monkeypatch.setattr(regular_file, "_NO_FOLLOW", 0)
    (tmp_path / "target.json").write_text("{}")
    path = tmp_path / "link.json"
    path.symlink_to("target.json")
    return path


def test_links_are_refused(link):
    with pytest.raises(OSError, match=r"link\.json"):
        regular_file.open_regular(link)


def test_links_are_followed_on_request(link):
    with regular_file.open_regular(link, follow=True) as file:
        assert file.read() == b"{}"
