// Written by `agent-eval steer install`; `agent-eval steer uninstall` removes it.
import { spawn } from "node:child_process"

const COMMAND = {command}
const TIMEOUT_MS = {timeout}
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
