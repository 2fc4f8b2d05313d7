// Parsers of JUnit's XML for Node: `junit_node.mjs PARSER NODE_MODULES FILE...` prints cases and
// failures. Each is imported alone, from the pinned packages beside the benchmarks.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [name, modules, ...files] = process.argv.slice(2);
const required = createRequire(pathToFileURL(`${modules}/`));
const imported = async (path) => import(pathToFileURL(`${modules}/${path}`));
const list = (value) => [value ?? []].flat();

const parsers = {
  // What dorny/test-reporter reads JUnit with.
  async xml2js() {
    const { parseStringPromise } = required("xml2js");
    const reports = [];
    for (const file of files) reports.push(await parseStringPromise(await readFile(file, "utf8")));
    const cases = reports.flatMap((r) => r.testsuites.testsuite).flatMap((s) => s.testcase);
    return [cases.length, cases.filter((c) => c.failure).length];
  },
  async junit2json() {
    const { parse } = await imported("junit2json/dist/esm/index.js");
    const reports = [];
    for (const file of files) reports.push(await parse(await readFile(file, "utf8")));
    const cases = reports.flatMap((r) => list(r.testsuite)).flatMap((s) => list(s.testcase));
    return [cases.length, cases.filter((c) => c.failure?.length).length];
  },
  // What ctrf-io/github-test-reporter reads JUnit with.
  async "junit-to-ctrf"() {
    const { convertJUnitToCTRFReport } = await imported("junit-to-ctrf/dist/index.js");
    const { results } = await convertJUnitToCTRFReport(`${process.cwd()}/junit-*.xml`);
    return [results.tests.length, results.tests.filter((t) => t.status === "failed").length];
  },
  // What testbeats reads JUnit with.
  async "test-results-parser"() {
    const { parse } = required("test-results-parser");
    const result = parse({ type: "junit", files });
    return [result.total, result.failed];
  },
};

console.log(...(await parsers[name]()));
