"""Options of `agent-eval steer hook`, parsed without click. Imports little."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENABLE = "--enable-pytest-full-suite-steering"
DISABLE = "--disable-pytest-full-suite-steering"
_VALUED = ("--for", "--config", "--store")


class HookOptions:
    """The options of the command; `problem` describes invalid usage."""

    # A dataclass or named tuple would take a tenth as long to define as Python takes to start.
    def __init__(
        self,
        agent: str | None = None,
        config: str | None = None,
        store: str | None = None,
        enabled: bool | None = None,
        problem: str | None = None,
    ) -> None:
        self.agent = agent
        self.config = config
        self.store = store
        self.enabled = enabled
        self.problem = problem


def parse_hook_options(words: Sequence[str]) -> HookOptions:
    """Parse the words after `agent-eval steer hook`. Never raises."""
    values: dict[str, str] = {}
    enabled: bool | None = None
    problem: str | None = None
    for name, value in _split_options(words):
        if name in {ENABLE, DISABLE}:
            enabled = name == ENABLE
        elif name not in _VALUED:
            problem = problem or f"unknown option {name!r}"
        elif not value:
            problem = problem or f"option {name} needs a value"
        else:
            values[name] = value
    return HookOptions(
        values.get("--for"), values.get("--config"), values.get("--store"), enabled, problem
    )


def _split_options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield options with their values, given as two words or as one with `=`."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if equals:
            yield name, value
        else:
            yield name, next(rest, None) if name in _VALUED else None
