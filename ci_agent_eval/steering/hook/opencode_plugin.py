"""The plugin file that makes opencode ask the hook, because opencode has no command hooks. Pure.

https://opencode.ai/docs/plugins: an error in `tool.execute.before` becomes the call's result.
"""

from __future__ import annotations

import json
import re
import shlex

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.agent_settings import TIMEOUT_S

_MARK = "// Written by `agent-eval steer install`; `agent-eval steer uninstall` removes it."

_PLUGIN = """
import { spawn } from "node:child_process"

const COMMAND = %(command)s
const TIMEOUT_MS = %(timeout)d
const WITHOUT_COMMANDS = new Set(["read", "edit", "write", "patch", "apply_patch", "glob", "grep",
  "list", "webfetch", "websearch", "todowrite", "todoread", "task", "skill", "question"])

// Resolves to the message of a held call; undefined if the call may run.
const ask = (event, cwd) => new Promise((resolve, reject) => {
  const hook = spawn(COMMAND[0], COMMAND.slice(1), { cwd, timeout: TIMEOUT_MS })
  let out = "", err = ""
  hook.stdout.on("data", (data) => { out += data })
  hook.stderr.on("data", (data) => { err += data })
  hook.stdin.on("error", () => {})
  hook.on("error", reject)
  hook.on("close", () => {
    if (out === "" && err !== "") return reject(new Error(err.trim()))
    try { resolve(out ? JSON.parse(out).reason : undefined) } catch (error) { reject(error) }
  })
  hook.stdin.end(JSON.stringify(event))
})

export const AgentEvalSteering = async ({ client, directory }) => {
  const answers = new Map()
  return {
    event: async ({ event }) => {
      const part = event.type === "message.part.updated" ? event.properties.part : undefined
      if (part?.type !== "tool") return
      if (["completed", "error"].includes(part.state?.status)) answers.delete(part.callID)
      else answers.set(part.callID, part.messageID)
    },
    "tool.execute.before": async (input, output) => {
      if (WITHOUT_COMMANDS.has(input.tool)) return
      const event = {
        hook_event_name: "tool.execute.before", session_id: input.sessionID, cwd: directory,
        tool_name: input.tool, tool_input: output.args, answer_id: answers.get(input.callID),
      }
      const reason = await ask(event, directory).catch((error) => {
        const message = `agent-eval steer hook: ${error.message}`
        client.app.log({ body: { service: "agent-eval", level: "error", message } }).catch(() => {})
      })
      if (reason) throw new Error(reason)
    },
  }
}
"""


_WRITTEN = re.compile(
    re.escape(_MARK) + r".*?^export const AgentEvalSteering\b.*?^}\r?(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""The plugin as any version wrote it."""


def render_plugin(command: str) -> str:
    """Return the plugin's text for a command line of the hook."""
    values = {"command": json.dumps(shlex.split(command)), "timeout": TIMEOUT_S * 1000}
    return _MARK + "\n" + (_PLUGIN % values).lstrip()


def remove_plugin(text: str) -> str:
    """Return what others wrote after the plugin.

    Raises InputError unless the file is missing, empty or begins with the plugin.
    """
    if not text.strip():
        return ""
    plugin = _WRITTEN.match(text)
    if plugin is None:
        raise InputError("was not written by agent-eval; move it first")
    return text[plugin.end() :]


def find_plugin_command(text: str) -> str | None:
    """Return the command line of the hook in the plugin; None if there is none.

    Raises InputError if it is invalid.
    """
    match = re.search(r"^const COMMAND = (.*)$", text, re.MULTILINE)
    if match is None or not text.startswith(_MARK):
        return None
    try:
        return shlex.join(json.loads(match[1]))
    except (ValueError, TypeError):
        raise InputError("COMMAND is no list of words; run `agent-eval steer install`") from None
