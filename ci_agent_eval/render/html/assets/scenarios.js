// The table of scenarios: how each stands, and under it why and what it used.

const SCENARIOS_A_PAGE = 50;
const STATUS_WORDS = { passing: "passing", failing: "failing", errored: "not judged", skipped: "skipped", incomplete: "not every iteration judged" };
const COLUMNS = ["Scenario", "Passes", "Pass rate", "Cost per episode", "p95 latency", "Budgets"];

const scenarios = dataOf("scenario-data");

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

function scenarioDetail(scenario, budgets, showEpisodes) {
  const [passed, failed, errors] = scenario.tally;
  const causes = scenario.causes ?? [];
  const button = el("button", { type: "button", class: "plain-button" }, `Show its ${counted(scenario.episodes.length, "episode")}`);
  button.addEventListener("click", () => showEpisodes(scenario));
  const against = scenario.against ?? [];
  return [
    against.length ? el("h3", { class: "label" }, "Against the baseline") : "",
    against.length ? el("ul", { class: "causes", role: "list" }, against.map((found) => el("li", {}, bdi(found.what)))) : "",
    causes.length ? el("h3", { class: "label" }, "Why") : "",
    causes.length
      ? el("ul", { class: "causes", role: "list" }, causes.map((cause) => causeItem(cause, passed + failed + errors)))
      : "",
    budgets.length ? el("h3", { class: "label" }, "Budgets, the nearest to each limit") : "",
    budgets.length ? budgetBars(budgets) : "",
    el(
      "p",
      { class: "note" },
      [scenario.required, scenario.totals && `all together: ${scenario.totals.join(" · ")}`].filter(Boolean).join(" · "),
      " ",
      placeOf(scenario.place),
    ),
    scenario.tries ? el("p", { class: "note" }, scenario.tries.join(" · ")) : "",
    button,
  ];
}

function budgetCell(budgets) {
  if (!budgets.length) return "–";
  const worst = budgets.reduce((a, b) => ((b.share ?? Infinity) > (a.share ?? Infinity) ? b : a));
  return el("ul", { class: "budgets small" }, budgetBar(worst));
}

function scenarioRows(scenario, number, showEpisodes) {
  const budgets = worstBudgets(scenario.episodes);
  const panel = el("td", { colspan: COLUMNS.length, id: `scenario-${number}` });
  const button = el("button", { type: "button", class: "opener" }, scenarioName(scenario));
  const detail = el("tr", { class: "detail" }, panel);
  const row = el(
    "tr",
    { class: `scenario ${scenario.gated ? "failing" : scenario.status}` },
    el(
      "th",
      { scope: "row" },
      el(
        "span",
        { class: `dot ${scenario.gated ? "failing" : scenario.status}` },
        el("span", { class: "unseen" }, `${scenario.gated ? "fails the gate" : STATUS_WORDS[scenario.status]}: `),
      ),
      button,
      scenarioChips(scenario).flat(),
    ),
    el("td", { class: "passes" }, el("span", {}, scenario.passes), iterationStrip(scenario.episodes)),
    el("td", {}, scenario.rate ?? "–", scenario.range ? rangeBar(scenario.range) : ""),
    el("td", { class: "number" }, scenario.cost ?? "–"),
    el("td", { class: "number" }, scenario.latency ?? "–"),
    el("td", {}, budgetCell(budgets)),
  );
  const set = discloses(button, panel, () => scenarioDetail(scenario, budgets, showEpisodes));
  const follow = () => {
    detail.hidden = panel.hidden;
  };
  button.addEventListener("click", follow);
  set((scenario.status === "failing" || scenario.gated) && number < 3);
  follow();
  return [row, detail];
}

function showScenarios(holder, showEpisodes) {
  if (!scenarios.length) {
    holder.append(el("p", { class: "status" }, "There are no scenarios."));
    return undefined;
  }
  const body = el("tbody");
  const table = el(
    "table",
    { class: "scenarios", "aria-labelledby": "scenarios-title" },
    el("thead", {}, el("tr", {}, COLUMNS.map((name, at) => el("th", { scope: "col", class: at === 3 || at === 4 ? "number" : undefined }, name)))),
    body,
  );
  const scroll = el("div", { class: "scroll" }, table);
  holder.append(scroll);
  const pages = paged(body, scroll, SCENARIOS_A_PAGE, "scenario");
  pages.show([...scenarios.keys()], (number) => scenarioRows(scenarios[number], number, showEpisodes));
  return pages;
}
