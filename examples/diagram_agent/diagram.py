"""A diagram agent that writes D2 text. What it understands is SCRIPTED: patterns, not a model.

Everything around the patterns is real: the canvas, its D2 text, the state that lives from
turn to turn, the tools it calls. It has one mistake of the kind a prompt change brings in.
"""

import re
from dataclasses import dataclass, field

TIERS = ("Frontend", "Backend", "Database")

DRAW = re.compile(r"(?:create|add|draw) (?:boxes? )?(.+?)(?:[.!]|$)", re.IGNORECASE)
CONNECT = re.compile(r"connect (.+?) to (.+?)(?:[.!]|$)", re.IGNORECASE)
ARTICLE = re.compile(r"^(?:a|an|the) ", re.IGNORECASE)


@dataclass
class Canvas:
    """The diagram as D2 source (https://d2lang.com): a line for each shape or connection."""

    lines: list[str] = field(default_factory=list)

    @property
    def content(self):
        return "\n".join(self.lines)

    @property
    def shapes(self):
        return [line for line in self.lines if "->" not in line]

    @property
    def connections(self):
        return [line for line in self.lines if "->" in line]


@dataclass
class Reply:
    text: str
    tool_calls: list[dict]
    source: str = "scripted"


class DiagramAgent:
    """Has `respond`, `reset`, and two things to observe: `canvas` and `state`."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.canvas = Canvas()
        self.state = {"edits": 0, "last_shape": None}

    async def respond(self, message):
        calls = []
        for names in DRAW.findall(message):
            for name in self._shapes_of(names):
                self._draw(name, calls)
        for source, target in CONNECT.findall(message):
            self._connect(source, target, calls)
        done = f"I made {len(calls)} change{'s' * (len(calls) != 1)}."
        return Reply(done if calls else "What shall I draw?", calls)

    def _shapes_of(self, names):
        if "three-tier" in names.lower():
            return TIERS
        return [ARTICLE.sub("", name.strip()) for name in names.split(" and ")]

    def _draw(self, name, calls):
        self.canvas.lines.append(name)
        self.state = {"edits": self.state["edits"] + 1, "last_shape": name}
        calls.append({"name": "draw_shape", "arguments": {"label": name}, "result": name})

    def _connect(self, source, target, calls):
        # Mistake: the arrow is drawn although a shape may not be there.
        self.canvas.lines.append(f"{source} -> {target}")
        self.state = {**self.state, "edits": self.state["edits"] + 1}
        arguments = {"from": source, "to": target}
        calls.append({"name": "connect", "arguments": arguments, "result": "ok"})
