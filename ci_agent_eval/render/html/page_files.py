"""The files that the page names, with their addresses where the repository is known."""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_agent_eval.render.html.page_limits import PageText
from ci_agent_eval.render.links import Links, is_web_address, line_number


@dataclass(slots=True)
class PageFiles:
    """Numbers files in the order of their use; the page holds their list once."""

    texts: PageText
    links: Links
    _numbers: dict[str, int] = field(default_factory=dict)

    def locate(self, file: str | None, line: int | None) -> list[int] | None:
        """Return a place as the file's number and its line, 0 where that is not known."""
        if not file:
            return None
        number = self._numbers.setdefault(file, len(self._numbers))
        return [number, line_number(line) or 0]

    def list_files(self) -> list[list[str | None]]:
        """Return every file: its name, and the address that `#L` and a line may follow."""
        return [[self.texts.name(file), self._address(file)] for file in self._numbers]

    def _address(self, file: str) -> str | None:
        url = self.links.blob(file, None)
        return url if is_web_address(url) else None
