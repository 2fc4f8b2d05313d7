// Small pictures: budgets against their limits, pass rates in their interval, iterations.

function budgetBars(budgets) {
  return el("ul", { class: "budgets" }, budgets.map(budgetBar));
}

// The used share of a limit; infinite: it was not measured.
function shareOf(budget) {
  if (budget.used === undefined) return Infinity;
  return budget.limit ? budget.used / budget.limit : budget.used && Number.MAX_VALUE;
}

function budgetBar(budget) {
  const measured = budget.used !== undefined;
  const [limit, used] = measured ? distinct(budget.format, budget.limit, budget.used) : [WRITERS[budget.format][0](budget.limit), "not measured"];
  const over = budget.over || !measured;
  return el(
    "li",
    { class: `budget${over ? " over" : ""}${budget.soft ? " soft" : ""}` },
    el("span", { class: "name" }, bdi(budget.name), budget.soft ? " (soft)" : ""),
    el(
      "span",
      { class: "value" },
      `${used} `,
      el("span", { class: "of" }, `of ${limit}`),
      over && measured ? el("span", { class: "unseen" }, ", over its limit") : "",
    ),
    svg(
      "svg",
      { class: "bar", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "track", width: 100, height: 6, rx: 1 }),
      measured
        ? svg("rect", { class: "fill", width: Math.min(shareOf(budget), 1) * 100, height: 6, rx: 1 })
        : undefined,
    ),
  );
}

// The budgets of several episodes: of each the one that came nearest to its limit, or went over.
function worstBudgets(episodes) {
  const worst = new Map();
  for (const episode of episodes) {
    for (const budget of episode.budgets ?? []) {
      if (episode.outcome === "skipped") continue;
      const known = worst.get(budget.name);
      if (!known || (shareOf(budget)) > (shareOf(known))) {
        worst.set(budget.name, budget);
      }
    }
  }
  return [...worst.values()];
}

function rangeBar([low, high, rate, required]) {
  const at = (share) => share * 100;
  return svg(
    "svg",
    { class: "range", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "track", y: 3, width: 100, height: 4 }),
    svg("rect", { class: "within", x: at(low), y: 3, width: Math.max(at(high - low), 1), height: 4 }),
    svg("rect", { class: "needed", x: Math.min(at(required), 99), width: 1, height: 10 }),
    svg("rect", { class: "rate", x: Math.min(at(rate), 98) - 0.5, width: 2.5, height: 10 }),
  );
}

const MOST_SQUARES = 40;

// One square for each episode of a scenario, in its order.
function iterationStrip(episodes) {
  const shown = episodes.slice(0, MOST_SQUARES);
  const rest = episodes.length - shown.length;
  return el(
    "span",
    { class: "strip", "aria-hidden": "true" },
    shown.map((episode) => el("i", { class: episode.outcome })),
    rest > 0 ? el("span", { class: "rest" }, `+${figure(rest)}`) : "",
  );
}
