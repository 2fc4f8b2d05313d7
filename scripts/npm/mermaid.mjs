// Parse every Mermaid block of the Markdown files named on the command line with Mermaid's own
// parser; exit 1 when one is no diagram, or when there is none at all.
import { readFile } from "node:fs/promises";
import DOMPurify from "dompurify";

// Without a DOM there is nothing to purify with, and what is parsed here is never shown.
DOMPurify.addHook ??= () => {};
DOMPurify.sanitize ??= (text) => text;
const { default: mermaid } = await import("mermaid");

let blocks = 0;
let wrong = 0;
for (const path of process.argv.slice(2)) {
  const text = await readFile(path, "utf8");
  for (const [, block] of text.matchAll(/^```mermaid\n(.*?)^```$/gms)) {
    blocks += 1;
    try {
      await mermaid.parse(block);
    } catch (error) {
      wrong += 1;
      console.error(`${path}: ${error.message}`);
    }
  }
}
console.log(`mermaid: ${blocks} charts, ${wrong} of them wrong`);
process.exit(blocks > 0 && wrong === 0 ? 0 : 1);
