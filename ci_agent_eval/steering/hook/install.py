"""Installation and removal of the hook in a coding agent's settings.

opencode has no command hooks. It gets a plugin file that asks the hook; an error in
`tool.execute.before` becomes the call's result (https://opencode.ai/docs/plugins).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.agents import OPENCODE, TIMEOUT_S, Agent
from ci_agent_eval.steering.hook.options import ENABLE
from ci_agent_eval.steering.locations import CONFIG_NAME

HOOKS = "hooks"
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_MARK = "// Written by `agent-eval steer install`; `agent-eval steer uninstall` removes it."
_PLUGIN = re.compile(
    re.escape(_MARK) + r".*?^export const AgentEvalSteering\b.*?^}\r?(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""The plugin as any version wrote it."""
_NEW_SETTINGS = """\
# Settings of `agent-eval steer`.
session:
  bare_directory: covers_testpaths
"""


def find_program() -> Path:
    """Return the absolute path of `agent-eval`. Raises InputError.

    It is beside Python in a virtual environment, and elsewhere with `pip install --user`. A name
    alone would be looked up on the agent's PATH, and an agent that does not find a hook's program
    runs the call without a word.
    """
    beside = Path(sys.executable).with_name("agent-eval")
    on_path = shutil.which("agent-eval")
    for program in (beside, beside.with_suffix(".exe"), Path(sys.argv[0]), Path(on_path or "")):
        if program.stem == "agent-eval" and program.is_file():
            return program.absolute()
    raise InputError(f"{beside}: there is no such program; install ci-agent-eval with pip")


def build_hook_command(program: Path, agent: str, options: Mapping[str, str]) -> str:
    """Build the hook's command line."""
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return shlex.join([str(program), "steer", "hook", "--for", agent, ENABLE, *words])


def create_settings(folder: Path) -> Path | None:
    """Write the settings of a project without any; return the new file. Raises InputError."""
    path = folder / CONFIG_NAME
    with _describe_errors(path):
        if path.exists():
            return None
        path.write_text(_NEW_SETTINGS, encoding="utf-8")
    return path


def install_hook(agent: Agent, path: Path, command: str) -> bool:
    """Add the hook to the settings; return whether they changed. Raises InputError."""
    with _describe_errors(path):
        text = _read_text(path)
        if agent.name == OPENCODE:
            return _write_changed(path, text, _render_plugin(command) + _remove_plugin(text))
        return _write_changed(path, text, add_hook(text, command, agent))


def uninstall_hook(agent: Agent, path: Path) -> bool:
    """Remove the hook from the settings; return whether they changed. Raises InputError.

    A file that has our name, and contains nothing else, is deleted.
    """
    with _describe_errors(path):
        text = _read_text(path)
        left = _remove_plugin(text) if agent.name == OPENCODE else remove_hook(text, agent)
        changed = _write_changed(path, text, left)
        is_empty = not left.strip() or left == _render_settings(agent.initial)
        if changed and path.stem == "agent-eval" and is_empty:
            path.unlink()
    return changed


def read_hook_commands(agent: Agent, path: Path) -> list[str]:
    """Return the command lines of agent-eval's hooks in a file; empty if there is no file.

    Raises InputError.
    """
    with _describe_errors(path):
        text = _read_text(path)
        find = _find_plugin_command if agent.name == OPENCODE else partial(find_hooks, agent=agent)
        return find(text) if text.strip() else []


@contextmanager
def _describe_errors(path: Path) -> Iterator[None]:
    """Turn errors into an InputError that names the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start}); repair it first") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be changed ({error.strerror or error})") from None
    except InputError as error:
        raise InputError(f"{path}: {error}; nothing was changed") from None


def _read_text(path: Path) -> str:
    return path.read_bytes().decode() if path.exists() else ""


def _write_changed(path: Path, old_text: str, text: str) -> bool:
    """Replace a file's text at once, unless it is the same; return whether it changed."""
    if text == old_text:
        return False
    # Settings are often a symbolic link to a dotfile: replace its target.
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8", newline="")
    if path.exists():
        shutil.copymode(path, temporary)
    temporary.replace(path)
    return True


# Settings in JSON


def add_hook(text: str, command: str, agent: Agent) -> str:
    """Return the settings with exactly one hook of agent-eval per event.

    An empty text represents a missing file. Raises InputError if the settings are invalid, or
    have comments, which would be lost.
    """
    document = _load_settings(text, agent) if text.strip() else dict(agent.initial)
    others = _remove_hooks(document, agent.events)
    hooks, entry = others.get(HOOKS, {}), agent.build_entry(command)
    added = {event: [*hooks.get(event, []), entry] for event in agent.events}
    snippet = json.dumps({HOOKS: {event: [entry] for event in agent.events}})
    changed = {**others, HOOKS: {**hooks, **added}}
    return _render_change(text, document, changed, f"add this by hand: {snippet}")


def remove_hook(text: str, agent: Agent) -> str:
    """Return the settings without hooks of agent-eval in any event, or containers left empty.

    Raises InputError if the settings are invalid, or have comments, which would be lost.
    """
    if not text.strip():
        return text
    document = _load_settings(text, agent)
    changed = _remove_hooks(document, document.get(HOOKS, {}))
    remedy = "remove the hooks with `agent-eval steer hook` by hand"
    return _render_change(text, document, changed, remedy)


def find_hooks(text: str, agent: Agent) -> list[str]:
    """Return the command lines of agent-eval's hooks. Raises InputError."""
    hooks = _load_settings(text, agent).get(HOOKS, {})
    items = [item for event in agent.events for item in hooks.get(event, [])]
    candidates = [hook for item in items for hook in (_get_group(item) or [item])]
    return [str(_get_command(hook)) for hook in candidates if is_own_hook(_get_command(hook))]


def is_own_hook(command: object) -> bool:
    """Return whether a hook's command is a hook of agent-eval."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    program = PurePath(words[0].replace("\\", "/")).name.removesuffix(".exe") if words else ""
    return program == "agent-eval" and words[1:3] == ["steer", "hook"]


def parse_commented_json(text: str) -> Any:
    """Parse JSON with comments and trailing commas. Raises ValueError or RecursionError."""
    plain = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", text)
    return json.loads(_TRAILING_COMMA.sub(lambda match: match[0].lstrip(","), plain))


def _load_settings(text: str, agent: Agent) -> dict[str, Any]:
    """Parse settings, and check the parts that are used here. Raises InputError."""
    try:
        document = parse_commented_json(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error}); repair it first") from None
    if not isinstance(document, dict):
        raise InputError("is not a JSON object; repair it first")
    hooks = document.get(HOOKS, {})
    for event in agent.events:
        if not isinstance(hooks, dict) or not isinstance(hooks.get(event, []), list):
            raise InputError(f"{HOOKS}.{event} is not a list of hooks; repair it first")
    return document


def _render_change(text: str, old: object, new: Mapping[str, object], remedy: str) -> str:
    """Return the new settings; the old text if nothing changed. Raises InputError for comments."""
    if new == old:
        return text
    try:
        json.loads(text or "{}")
    except ValueError:
        raise InputError(
            f"has comments or trailing commas, which would be lost; {remedy}"
        ) from None
    return _render_settings(new)


def _render_settings(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _get_group(item: object) -> list[object] | None:
    """Return the hooks of a group; None if the item of an event's list is a hook itself."""
    group = item.get(HOOKS) if isinstance(item, dict) else None
    return group if isinstance(group, list) else None


def _get_command(hook: object) -> object:
    return hook.get("command", hook.get("bash")) if isinstance(hook, dict) else None


def _remove_hooks(document: Mapping[str, Any], events: Collection[str]) -> dict[str, Any]:
    """Return settings without the hooks of agent-eval, and without the containers left empty."""
    hooks = document.get(HOOKS, {})
    left = {
        event: _remove_items(items) if event in events and isinstance(items, list) else items
        for event, items in hooks.items()
    }
    left = {event: items for event, items in left.items() if items or items == hooks[event]}
    others = {key: value for key, value in document.items() if key != HOOKS or left or not hooks}
    return {**others, HOOKS: left} if left else others


def _remove_items(items: list[object]) -> list[object]:
    others: list[object] = []
    for item in items:
        group = _get_group(item)
        if group is None or not isinstance(item, dict):
            others += [] if is_own_hook(_get_command(item)) else [item]
            continue
        hooks = [hook for hook in group if not is_own_hook(_get_command(hook))]
        others += [{**item, HOOKS: hooks}] if hooks or not group else []
    return others


# The plugin of opencode


def _render_plugin(command: str) -> str:
    template = Path(__file__).with_name("opencode_plugin.js").read_text(encoding="utf-8")
    words = json.dumps(shlex.split(command))
    return template.replace("{command}", words).replace("{timeout}", str(TIMEOUT_S * 1000))


def _remove_plugin(text: str) -> str:
    """Return what others wrote after the plugin.

    Raises InputError unless the file is missing, empty or begins with the plugin.
    """
    if not text.strip():
        return ""
    plugin = _PLUGIN.match(text)
    if plugin is None:
        raise InputError("was not written by agent-eval; move it first")
    return text[plugin.end() :]


def _find_plugin_command(text: str) -> list[str]:
    """Return the command line of the hook in the plugin, if any. Raises InputError."""
    match = re.search(r"^const COMMAND = (.*)$", text, re.MULTILINE)
    if match is None or not text.startswith(_MARK):
        return []
    try:
        return [shlex.join(json.loads(match[1]))]
    except (ValueError, TypeError):
        raise InputError("COMMAND is not a list of words; run `agent-eval steer install`") from None
