"""Options of `agent-eval steer hook`. Imports nothing, because the hook starts for each command."""

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
    options = HookOptions()
    values: dict[str, str] = {}
    for name, value in _split_options(words):
        problem = None
        if name in {ENABLE, DISABLE}:
            options.enabled = name == ENABLE
        elif name not in _VALUED:
            problem = f"unknown option {name!r}"
        elif not value:
            problem = f"option {name} needs a value"
        else:
            values[name] = value
        options.problem = options.problem or problem
    options.agent, options.config, options.store = map(values.get, _VALUED)
    return options


def _split_options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield options with their values, given as two words or as one with `=`."""
    following = iter(words)
    for word in following:
        name, equals, value = word.partition("=")
        if equals:
            yield name, value
        else:
            yield name, next(following, None) if name in _VALUED else None
