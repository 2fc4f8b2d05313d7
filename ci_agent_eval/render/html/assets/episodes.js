// The list of episodes: filters, their order, and each one opened on demand.

const EPISODES_A_PAGE = 50;
const OUTCOMES = ["passed", "failed", "error", "skipped"];
const WEIGHT = { failed: 0, error: 1, skipped: 2, passed: 3 };
const ORDERS = {
  worst: ["failed first", (a, b) => WEIGHT[a.outcome] - WEIGHT[b.outcome]],
  name: ["by scenario", () => 0],
  cost: ["most costly first", (a, b) => (b.cost ?? -1) - (a.cost ?? -1)],
  latency: ["slowest first", (a, b) => (b.latency ?? -1) - (a.latency ?? -1)],
};

const episodes = dataOf("episode-data");
for (const scenario of scenarios) scenario.episodes = [];
for (const episode of episodes) {
  episode.scenario = scenarios[episode.scenario];
  episode.scenario.episodes.push(episode);
}

// Everything that is said in an episode, to search in; made when it is searched first.
const haystacks = new WeakMap();

function texts(value, found = []) {
  if (typeof value === "string") found.push(value);
  else if (value && typeof value === "object") Object.values(value).forEach((part) => texts(part, found));
  return found;
}

function haystack(episode) {
  let text = haystacks.get(episode);
  if (text === undefined) {
    const { scenario, ...own } = episode;
    text = texts([scenario.id, scenario.agent ?? "", own]).join("\n").toLowerCase();
    haystacks.set(episode, text);
  }
  return text;
}

const filter = { words: [], outcomes: new Set(), over: false, kind: "", agent: "", scenario: null, order: "worst" };

function matches(episode) {
  if (filter.outcomes.size && !filter.outcomes.has(episode.outcome)) return false;
  if (filter.over && !episode.over) return false;
  if (filter.kind && (filter.kind === "evaluation") !== Boolean(episode.evaluation)) return false;
  if (filter.agent && episode.scenario.agent !== filter.agent) return false;
  if (filter.scenario && episode.scenario !== filter.scenario) return false;
  return filter.words.every((word) => haystack(episode).includes(word));
}

function iterationText(episode) {
  const attempt = episode.attempts ? `, attempt ${episode.attempt ?? 1} of ${episode.attempts}` : "";
  return `#${episode.iteration}${attempt}`;
}

function headlineOf(episode) {
  const failed = (episode.checks ?? []).find((check) => !check.passed && !check.warning);
  return failed?.name ?? episode.reason?.slice(0, 160) ?? "";
}

function episodeItem(episode) {
  const panel = el("div", { class: "panel", id: `panel-${episode.number}` });
  const button = el(
    "button",
    { type: "button", class: "opener", id: `episode-${episode.number}` },
    chip(episode.outcome),
    el("span", { class: "title" }, scenarioName(episode.scenario), el("span", { class: "iteration" }, iterationText(episode))),
    episode.evaluation ? chip("plain", "evaluation") : "",
    episode.over ? chip("warning", "over budget") : "",
    el("span", { class: "headline" }, episode.outcome === "passed" ? "" : headlineOf(episode)),
    el("span", { class: "figures-line" }, (episode.figures ?? []).join(" · ")),
  );
  const item = el("li", { class: `episode ${episode.outcome}` }, el("h3", {}, button), panel);
  const set = discloses(button, panel, () => episodePanel(episode));
  button.addEventListener("click", () => {
    history.replaceState(null, "", panel.hidden ? "#episodes" : `#episode-${episode.number}`);
  });
  opened.set(episode.number, () => {
    set(true);
    item.scrollIntoView();
    button.focus({ preventScroll: true });
  });
  return [item];
}

const opened = new Map();
const status = document.getElementById("episode-status");
const list = document.getElementById("episode-list");
const episodePages = paged(list, list, EPISODES_A_PAGE, "episode");

function showFound() {
  opened.clear();
  const found = episodes.filter(matches).sort(ORDERS[filter.order][1]);
  episodePages.show(found, episodeItem);
  const all = found.length === episodes.length;
  status.textContent = all ? counted(episodes.length, "episode") : `${figure(found.length)} of ${counted(episodes.length, "episode")}`;
  return found;
}

function toggle(text, kind, isOn, change) {
  const button = el("button", { type: "button", class: `toggle ${kind}`, "aria-pressed": "false" }, text);
  button.addEventListener("click", () => {
    change();
    refresh();
  });
  refreshers.push(() => button.setAttribute("aria-pressed", String(isOn())));
  return button;
}

const refreshers = [];

function refresh() {
  for (const each of refreshers) each();
  showFound();
}

function outcomeToggles() {
  const counts = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0]));
  for (const episode of episodes) counts[episode.outcome] += 1;
  return OUTCOMES.filter((outcome) => counts[outcome]).map((outcome) =>
    toggle(
      [`${outcome} `, el("span", { class: "tally" }, figure(counts[outcome]))],
      outcome,
      () => filter.outcomes.has(outcome),
      () => filter.outcomes.delete(outcome) || filter.outcomes.add(outcome),
    ),
  );
}

function choice(label, options, key) {
  const select = el("select", {}, options.map(([value, text]) => el("option", { value }, text)));
  select.addEventListener("change", () => {
    filter[key] = select.value;
    refresh();
  });
  refreshers.push(() => {
    select.value = filter[key];
  });
  return el("label", {}, el("span", {}, label), select);
}

function searchField() {
  const input = el("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", placeholder: "Text, tool, test, scenario" });
  let waiting;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      filter.words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      refresh();
    }, 120);
  });
  return el("label", { class: "search" }, el("span", {}, "Search"), input);
}

function scenarioChip() {
  const button = el("button", { type: "button", class: "toggle scenario-chip", hidden: true });
  button.addEventListener("click", () => {
    filter.scenario = null;
    refresh();
    document.getElementById("search").focus();
  });
  refreshers.push(() => {
    button.hidden = !filter.scenario;
    if (!filter.scenario) return;
    button.replaceChildren(
      "Scenario ",
      ...scenarioName(filter.scenario).filter(Boolean),
      el("span", { class: "unseen" }, ", remove this filter"),
      el("span", { "aria-hidden": "true" }, " ✕"),
    );
  });
  return button;
}

const MOST_AGENTS = 200;

function agentChoice() {
  const agents = [...new Set(scenarios.map((scenario) => scenario.agent).filter(Boolean))];
  if (agents.length < 2) return "";
  const options = agents.slice(0, MOST_AGENTS).map((agent) => [agent, agent]);
  return choice("Agent", [["", "all"], ...options], "agent");
}

function kindChoice() {
  const evaluations = episodes.filter((episode) => episode.evaluation).length;
  if (!evaluations || evaluations === episodes.length) return "";
  return choice("Kind", [["", "all"], ["strict", "strict tests"], ["evaluation", "evaluations"]], "kind");
}

function showFilters(form) {
  form.addEventListener("submit", (event) => event.preventDefault());
  const over = episodes.some((episode) => episode.over)
    ? toggle("over budget", "over", () => filter.over, () => { filter.over = !filter.over; })
    : "";
  form.append(
    searchField(),
    el("div", { class: "toggles", role: "group", "aria-label": "Outcome" }, outcomeToggles(), over),
    agentChoice(),
    kindChoice(),
    choice("Order", Object.entries(ORDERS).map(([key, [text]]) => [key, text]), "order"),
    scenarioChip(),
  );
  form.hidden = false;
}
