// The table of scenarios: how each stands, and under it why and what it used.

const SCENARIOS_A_PAGE = 50;
const STATUS_WORDS = { passing: "passing", failing: "failing", errored: "not judged", skipped: "skipped", incomplete: "not every iteration judged" };
const COLUMNS = ["Scenario", "Passes", "Pass rate", "Cost per episode", "p95 latency", "Budgets"];

const scenarios = dataOf("scenario-data");
for (const scenario of scenarios) scenario.episodes = [];

// The id as addresses hold it: control characters are written out in `id` alone.
function keyOf(scenario) {
  return scenario.key ?? scenario.id;
}

function scenarioName(scenario) {
  return [
    bdi(scenario.id),
    scenario.agent ? el("span", { class: "agent" }, bdi(scenario.agent)) : "",
    scenario.unnamed ? el("span", { class: "agent" }, "no agent named") : "",
  ];
}

function scenarioChips(scenario) {
  return [
    (scenario.against ?? []).map((found) => chip(found.gates ? "failed" : "warning", found.kind)),
    scenario.evaluation ? chip("plain", scenario.score ? `evaluation, score ${scenario.score}` : "evaluation") : "",
    scenario.advisory ? chip("plain", "advisory") : "",
    scenario.quarantine ? chip("plain", "in quarantine") : "",
    scenario.over ? chip("warning", "over budget") : "",
    scenario.flaky ? chip("warning", `flaky: ${counted(scenario.flaky, "retry", "retries")}`) : "",
  ];
}

function causeItem(cause, ran) {
  return el(
    "li",
    {},
    cause.name ? el("strong", {}, bdi(cause.name)) : "",
    cause.iterations && ran > 1 ? el("span", { class: "note" }, ` in ${figure(cause.iterations)} of ${figure(ran)} iterations`) : "",
    cause.reason ? textBlock(cause.reason, "reason") : "",
    placeOf(cause.place),
  );
}

// The usage of all iterations and attempts.
function totalsOf({ stop, used = {} }) {
  return [
    stop,
    used.turns && counted(used.turns, "turn"),
    used.tool_calls && counted(used.tool_calls, "tool call"),
    used.tokens && counted(used.tokens, "token"),
    used.duration_ms !== undefined && milliseconds(used.duration_ms),
    used.cost_usd !== undefined && money(used.cost_usd),
  ].filter(Boolean);
}

function scenarioDetail(scenario, budgets) {
  const totals = totalsOf(scenario);
  const [passed, failed, errors] = scenario.tally;
  const causes = scenario.causes ?? [];
  const link = el("a", { class: "plain-button", href: freshAddress({ scenario: keyOf(scenario), agent: scenario.agent ?? "" }) }, `Show its ${counted(scenario.episodes.length, "episode")}`);
  const against = scenario.against ?? [];
  return [
    against.length || scenario.compared ? el("h3", { class: "label" }, "Against the baseline") : "",
    against.length ? el("ul", { class: "causes", role: "list" }, against.map((found) => el("li", {}, bdi(found.what)))) : "",
    ...(scenario.compared ? comparedParts(scenario.compared) : []),
    causes.length ? el("h3", { class: "label" }, "Why") : "",
    causes.length
      ? el("ul", { class: "causes", role: "list" }, causes.map((cause) => causeItem(cause, passed + failed + errors)))
      : "",
    budgets.length ? el("h3", { class: "label" }, "Budgets, the nearest to each limit") : "",
    budgets.length ? budgetBars(budgets) : "",
    el(
      "p",
      { class: "note" },
      [scenario.required, totals.length && `all together: ${totals.join(" · ")}`].filter(Boolean).join(" · "),
      " ",
      placeOf(scenario.place),
    ),
    scenario.tries ? el("p", { class: "note" }, scenario.tries.join(" · ")) : "",
    link,
  ];
}

function budgetCell(budgets) {
  if (!budgets.length) return "–";
  const worst = budgets.reduce((a, b) => (shareOf(b) > shareOf(a) ? b : a));
  return el("ul", { class: "budgets small" }, budgetBar(worst));
}

// A figure of the baseline before the one of this run, where they differ.
function beforeNow(former, present, write = String) {
  const [was, now] = [former, present].map((value) => (value === undefined ? undefined : write(value)));
  const is = el("span", { class: "is" }, now ?? "–");
  if (was === undefined || was === now) return [is];
  const unseen = (text) => el("span", { class: "unseen" }, text);
  return [el("span", { class: "was" }, unseen("before: "), was, " →", unseen(" now:")), " ", is];
}

// On a phone the rows are no rows of a table for the style sheet; they stay so for screen readers.
function setTableRoles(...rows) {
  for (const row of rows) {
    row.setAttribute("role", "row");
    for (const cell of row.children) cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
  }
}

function scenarioRows(scenario) {
  const number = scenarios.indexOf(scenario);
  const was = scenario.was ?? {};
  const budgets = worstBudgets(scenario.episodes);
  const panel = el("td", { colspan: COLUMNS.length, id: `scenario-${number}` });
  const button = el("button", { type: "button", class: "opener" }, scenarioName(scenario));
  const detail = el("tr", { class: "detail" }, panel);
  const status = scenario.gated ? "failing" : scenario.status;
  const dot = el("span", { class: `dot ${status}` }, el("span", { class: "unseen" }, `${scenario.gated ? "fails the gate" : STATUS_WORDS[scenario.status]}: `));
  const row = el(
    "tr",
    { class: `scenario ${status}` },
    el("th", { scope: "row" }, dot, button, scenarioChips(scenario).flat()),
    el("td", { class: "passes" }, el("span", {}, beforeNow(was.passes, scenario.passes)), iterationStrip(scenario.episodes)),
    el("td", {}, scenario.rate ?? "–", scenario.range ? rangeBar(scenario.range) : ""),
    el("td", { class: "number" }, beforeNow(was.cost, scenario.cost, money)),
    el("td", { class: "number" }, beforeNow(was.latency, scenario.latency, milliseconds)),
    el("td", {}, budgetCell(budgets)),
  );
  row.querySelectorAll("td").forEach((cell, at) => cell.setAttribute("data-column", COLUMNS[at + 1]));
  setTableRoles(row, detail);
  const set = discloses(button, panel, () => scenarioDetail(scenario, budgets));
  const follow = () => {
    detail.hidden = panel.hidden;
  };
  button.addEventListener("click", follow);
  set(keyOf(scenario) === view.scenario);
  follow();
  return [row, detail];
}

function buildScenarioTable(holder) {
  if (!scenarios.length) {
    holder.append(el("p", { class: "status" }, "There are no scenarios."));
    return undefined;
  }
  const body = el("tbody", { role: "rowgroup" });
  const table = el(
    "table",
    { class: "scenarios stacked", role: "table", "aria-labelledby": "scenarios-title" },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, COLUMNS.map((name, at) => el("th", { scope: "col", role: "columnheader", class: at === 3 || at === 4 ? "number" : undefined }, name)))),
    body,
  );
  const scroll = el("div", { class: "scroll" }, table);
  holder.append(scroll);
  return paged(body, scroll, SCENARIOS_A_PAGE, "scenario");
}

const scenarioStatus = document.getElementById("scenario-status");
const scenarioPages = buildScenarioTable(document.getElementById("scenario-list"));
let listedScenarios;

function describeScenarios(found) {
  if (found.length === scenarios.length) return [];
  const all = el("a", { href: addressOf({ scenario: "", agent: "", episode: "" }) }, "show all");
  const words = found.length
    ? `${figure(found.length)} of ${counted(scenarios.length, "scenario")}; `
    : `The address names a scenario that is not in this report; `;
  return [words, all];
}

function showScenarios() {
  const key = JSON.stringify([view.scenario, view.agent]);
  if (key === listedScenarios || !scenarioPages) return;
  listedScenarios = key;
  const found = scenarios.filter(
    (scenario) => (!view.scenario || keyOf(scenario) === view.scenario) && (!view.agent || scenario.agent === view.agent),
  );
  scenarioPages.show(found, scenarioRows);
  scenarioStatus.replaceChildren(...describeScenarios(found));
}

followers.push(showScenarios);
