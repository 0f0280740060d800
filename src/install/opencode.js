// @MARK@ opencode`; `portcullis uninstall opencode` removes it.
// Asks Portcullis before every tool. Whatever goes wrong, the tool does not run.
import { spawn } from "node:child_process"

const PROGRAM = @PROGRAM@
const ARGUMENTS = @ARGUMENTS@
// OpenCode itself waits without a limit.
const LIMIT_MS = 45_000

function ask(event, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(PROGRAM, ARGUMENTS, { cwd, stdio: ["pipe", "pipe", "pipe"] })
    const limit = setTimeout(() => {
      child.kill("SIGKILL")
      reject(new Error("Portcullis gave no answer in time, so this does not run"))
    }, LIMIT_MS)
    let said = ""
    let why = ""
    child.stdout.on("data", (data) => (said += data))
    child.stderr.on("data", (data) => (why += data))
    child.on("error", (error) => {
      clearTimeout(limit)
      reject(new Error(`Portcullis cannot be started, so this does not run: ${error.message}`))
    })
    child.stdin.on("error", () => {})
    child.on("close", (code) => {
      clearTimeout(limit)
      let answer
      try {
        answer = JSON.parse(said)
      } catch {
        answer = undefined
      }
      if (code === 0 && answer?.decision === "allow") resolve()
      else reject(new Error(answer?.reason ?? (why.trim() || "Portcullis gave no answer, so this does not run")))
    })
    child.stdin.end(JSON.stringify(event))
  })
}

// What was judged is what runs: nobody after this changes the arguments.
function freeze(value) {
  if (value !== null && typeof value === "object") {
    Object.values(value).forEach(freeze)
    Object.freeze(value)
  }
  return value
}

export const Portcullis = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    freeze(output.args)
    const { sessionID, callID, tool } = input
    await ask({ event: "tool.execute.before", sessionID, callID, tool, args: output.args, directory }, directory)
  },
  "tool.execute.after": async (input, output) => {
    const { sessionID, callID, tool, args } = input
    const event = { event: "tool.execute.after", sessionID, callID, tool, args: args ?? {}, output: output?.output, directory }
    await ask(event, directory).catch(() => {})
  },
})
