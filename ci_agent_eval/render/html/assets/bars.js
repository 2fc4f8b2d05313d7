// Small pictures: budgets against their limits, pass rates in their interval, iterations.

function budgetBars(budgets) {
  return el("ul", { class: "budgets" }, budgets.map(budgetBar));
}

function budgetBar(budget) {
  const measured = budget.share !== undefined;
  const over = budget.over || !measured;
  return el(
    "li",
    { class: `budget${over ? " over" : ""}${budget.soft ? " soft" : ""}` },
    el("span", { class: "name" }, bdi(budget.name), budget.soft ? " (soft)" : ""),
    el(
      "span",
      { class: "value" },
      `${budget.used} `,
      el("span", { class: "of" }, `of ${budget.limit}`),
      over && measured ? el("span", { class: "unseen" }, ", over its limit") : "",
    ),
    svg(
      "svg",
      { class: "bar", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "track", width: 100, height: 6, rx: 1 }),
      measured
        ? svg("rect", { class: "fill", width: Math.min(budget.share, 1) * 100, height: 6, rx: 1 })
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
      if (!known || (budget.share ?? Infinity) > (known.share ?? Infinity)) {
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
