"""Archives of report folders, honest and hostile, as workflow runs leave them."""

from __future__ import annotations

import io
import stat
import struct
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import Session
from tests.builders import episode, junit_case_of, junit_xml, write_run

Members = dict[str, bytes | str]


def zipped(members: Members, *more: tuple[str | zipfile.ZipInfo, bytes | str]) -> bytes:
    """Return a zip archive of these members; `more` may be what no honest archive holds."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, content in [*members.items(), *more]:
            opened.writestr(name, content)
    return buffer.getvalue()


def report_files(*episodes: Episode, commit: str | None = None, **fields: Any) -> Members:
    """Return the files of a run's report folder, what a reporter wrote among them.

    `fields` are those of its session.
    """
    items = episodes or (episode(),)
    said = {"state": "finished", "exit_status": 0, "selected": len(items), **fields}
    session = Session(commit=commit, **said)
    with tempfile.TemporaryDirectory() as folder:
        junit = junit_xml(*(junit_case_of(item) for item in items))
        run = write_run(Path(folder), *items, session=session, junit=junit)
        files: Members = {file.name: file.read_bytes() for file in sorted(run.iterdir())}
    return {**files, "comment.md": "@everyone, trust me", "verdict.json": "{}"}


def report_zip(*episodes: Episode, commit: str | None = None, **fields: Any) -> bytes:
    """Return an honest artifact."""
    return zipped(report_files(*episodes, commit=commit, **fields))


def hostile_zips(commit: str) -> dict[str, tuple[bytes, str]]:
    """Return archives that must be refused, each with a part of the sentence that does so."""
    good = report_files(commit=commit)
    rest = {name: content for name, content in good.items() if name != "results.json"}
    link = zipfile.ZipInfo("results.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    whole = zipped(good)
    return {
        "bomb": (zipped({**good, "results.json": b"0" * (20 << 20)}), "300 times at most"),
        "traversal": (zipped({**good, "../../evil": "x"}), "leads outside"),
        "absolute": (zipped({**good, "/etc/evil": "x"}), "leads outside"),
        "link": (zipped(rest, (link, "/etc/passwd")), "is a link or a device"),
        "two gigabytes": (_declaring(whole, 2 << 30), "unpacks to 2,048 MiB"),
        "twice": (zipped(good, ("results.json", "{}")), "'results.json' twice"),
        "cut off": (whole[: len(whole) // 2], "cannot be read as a zip archive"),
        "no archive": (b"<html>" * 100, "cannot be read as a zip archive"),
        "wrong schema": (
            zipped({**good, "results.json": _WRONG}),
            "schema_version: Input should be '1'",
        ),
        "no JSON": (zipped({**good, "results.json": "{"}), "results.json"),
        "no session": (zipped({"results.json": good["results.json"]}), "no session.json says"),
        "odd session": (zipped({**good, "session.json": "[]"}), "session.json"),
        "foreign commit": (report_zip(commit="f" * 40), "about commit ffff"),
        "no commit": (report_zip(), "it names no commit"),
        "nothing": (zipped({"readme.txt": "hello"}), "holds no results"),
    }


_WRONG = '{"schema_version":"1.0","episodes":[{"scenario_id":"refund","outcome":"great"}]}'


def _declaring(archive: bytes, size: int) -> bytes:
    """Rewrite the sizes that the central directory declares for its first member."""
    data = bytearray(archive)
    at = data.index(b"PK\x01\x02")
    data[at + 20 : at + 28] = struct.pack("<II", size // 10, size)
    return bytes(data)
