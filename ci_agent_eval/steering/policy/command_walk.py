"""Every command that a text or a list of words would start, also through others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ci_agent_eval.steering.policy.arguments import Found, ShellText, text_of
from ci_agent_eval.steering.policy.detection import LONGEST, plain_of
from ci_agent_eval.steering.policy.option_parser import Layer
from ci_agent_eval.steering.policy.unwrap import unwrap
from ci_agent_eval.steering.policy.words import Code, Command, Scope, Text, known
from ci_agent_eval.steering.shells import reader_of

_LAYERS = 40


def commands_started(found: Found) -> Iterator[Command]:
    """Yield the commands in the order in which they stand, a wrapper before what it starts."""
    if len(text_of(found)) > LONGEST:
        return
    first: Layer
    if isinstance(found, ShellText):
        first = Text(plain_of(found.text), found.shell, same_shell=True)
    else:
        first = Command(known(*map(plain_of, found.words)))
    yield from _of([first], Scope(), _LAYERS)


def _of(layers: Iterable[Layer], scope: Scope, depth: int) -> Iterator[Command]:
    for layer in layers if depth else ():
        if isinstance(layer, Text):
            yield from _of_text(layer, scope, depth)
        elif not isinstance(layer, Code) and layer.words:
            yield layer
            yield from _of(unwrap(layer, scope) or (), scope, depth - 1)


def _of_text(text: Text, scope: Scope, depth: int) -> Iterator[Command]:
    effort = scope.effort
    effort.calls -= 1
    effort.characters -= len(text.text)
    if effort.calls < 0 or effort.characters < 0:
        return
    inner = scope if text.same_shell else scope.inner(text)
    yield from _of(reader_of(text.shell)(text.text, inner), inner, depth - 1)
