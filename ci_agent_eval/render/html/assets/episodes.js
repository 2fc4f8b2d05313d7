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

function matches(episode, outcomes, words) {
  if (outcomes.length && !outcomes.includes(episode.outcome)) return false;
  if (view.over && !episode.over) return false;
  if (view.kind && (view.kind === "evaluation") !== Boolean(episode.evaluation)) return false;
  if (view.agent && episode.scenario.agent !== view.agent) return false;
  if (view.model && episode.model !== view.model) return false;
  if (view.scenario && keyOf(episode.scenario) !== view.scenario) return false;
  return words.every((word) => haystack(episode).includes(word));
}

function iterationText(episode) {
  const attempt = episode.attempts ? `, attempt ${episode.attempt ?? 1} of ${episode.attempts}` : "";
  return `#${episode.iteration}${attempt}`;
}

function headlineOf(episode) {
  const failed = (episode.assertions ?? []).find((check) => !check.passed && check.severity !== "warning");
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
    el("span", { class: "figures-line" }, episodeFigures(episode).join(" · ")),
  );
  const pick = el(
    "button",
    { type: "button", class: "pick", "aria-pressed": "false" },
    "compare",
    el("span", { class: "unseen" }, " ", bdi(episode.scenario.id), ` ${iterationText(episode)}`),
  );
  const item = el("li", { class: `episode ${episode.outcome}` }, el("div", { class: "row" }, el("h3", {}, button), pick), panel);
  const set = discloses(button, panel, () => episodePanel(episode));
  button.addEventListener("click", () => changeView({ episode: panel.hidden ? "" : String(episode.number) }));
  pick.addEventListener("click", () => chooseEpisode(String(episode.number)));
  rows.set(String(episode.number), { item, button, pick, set });
  return [item];
}

// The listed episodes by their number.
const rows = new Map();
const status = document.getElementById("episode-status");
const list = document.getElementById("episode-list");
const episodePages = paged(list, list, EPISODES_A_PAGE, "episode");
const episodeByNumber = new Map(episodes.map((episode) => [String(episode.number), episode]));

function findEpisodes() {
  const [outcomes, words] = [listed("outcome"), view.q.toLowerCase().split(/\s+/).filter(Boolean)];
  const order = ORDERS[view.order] ?? ORDERS.worst;
  return episodes.filter((episode) => matches(episode, outcomes, words)).sort(order[1]);
}

function listEpisodes() {
  const found = findEpisodes();
  const all = found.length === episodes.length;
  status.textContent = all ? counted(episodes.length, "episode") : `${figure(found.length)} of ${counted(episodes.length, "episode")}`;
  const wanted = episodeByNumber.get(view.episode);
  // The open episode is on the first page, wherever the order puts it.
  const isFar = wanted && !found.slice(0, EPISODES_A_PAGE).includes(wanted);
  const shown = isFar ? [wanted, ...found.filter((episode) => episode !== wanted)] : found;
  rows.clear();
  episodePages.show(shown, episodeItem);
  if (!view.episode && view.scenario && shown.length) rows.get(String(shown[0].number)).set(true);
}

let listedView;

function showEpisodes({ isAddress }) {
  for (const each of refreshers) each();
  const key = JSON.stringify(FILTERS.map((name) => view[name]));
  if (key !== listedView || (episodeByNumber.has(view.episode) && !rows.has(view.episode))) {
    listedView = key;
    listEpisodes();
  } else if (isAddress) {
    for (const [number, row] of rows) if (number !== view.episode) row.set(false);
  }
  rows.get(view.episode)?.set(true);
  if (isAddress) goToEpisodes();
}

function goToEpisodes() {
  const row = rows.get(view.episode);
  if (row) {
    row.item.scrollIntoView();
    row.button.focus({ preventScroll: true });
  } else if (FILTERS.some((name) => view[name] !== NO_VIEW[name])) {
    const title = document.getElementById("episodes-title");
    title.scrollIntoView();
    title.focus({ preventScroll: true });
  }
}

followers.push(showEpisodes);

function changeFilter(change, how) {
  changeView({ ...change, episode: "" }, how);
}

function toggle(text, kind, isOn, change) {
  const button = el("button", { type: "button", class: `toggle ${kind}`, "aria-pressed": "false" }, text);
  button.addEventListener("click", () => changeFilter(change()));
  refreshers.push(() => button.setAttribute("aria-pressed", String(isOn())));
  return button;
}

const refreshers = [];

function outcomeToggles() {
  const counts = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0]));
  for (const episode of episodes) counts[episode.outcome] += 1;
  return OUTCOMES.filter((outcome) => counts[outcome]).map((outcome) =>
    toggle(
      [`${outcome} `, el("span", { class: "tally" }, figure(counts[outcome]))],
      outcome,
      () => listed("outcome").includes(outcome),
      () => ({ outcome: OUTCOMES.filter((one) => (one === outcome) !== listed("outcome").includes(one)).join(",") }),
    ),
  );
}

function choice(label, options, key) {
  const select = el("select", {}, options.map(([value, text]) => el("option", { value }, text)));
  select.addEventListener("change", () => changeFilter({ [key]: select.value }));
  refreshers.push(() => {
    select.value = view[key];
  });
  return el("label", {}, el("span", {}, label), select);
}

function searchField() {
  const input = el("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", placeholder: "Text, tool, test, scenario" });
  let waiting;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    // What is typed at a stretch is one entry of the history.
    waiting = setTimeout(() => {
      waiting = undefined;
      changeFilter({ q: input.value.trim() }, { replace: view.q !== "" });
    }, 120);
  });
  refreshers.push(() => {
    if (waiting === undefined && input.value.trim() !== view.q) input.value = view.q;
  });
  return el("label", { class: "search" }, el("span", {}, "Search"), input);
}

function scenarioChip() {
  const button = el("button", { type: "button", class: "toggle scenario-chip", hidden: true });
  button.addEventListener("click", () => {
    changeFilter({ scenario: "" });
    document.getElementById("search").focus();
  });
  refreshers.push(() => {
    button.hidden = !view.scenario;
    if (!view.scenario) return;
    const known = scenarios.find((scenario) => keyOf(scenario) === view.scenario);
    button.replaceChildren(
      "Scenario ",
      known ? bdi(known.id) : "that is not in this report",
      el("span", { class: "unseen" }, ", remove this filter"),
      el("span", { "aria-hidden": "true" }, " ✕"),
    );
  });
  return button;
}

const MOST_NAMES = 200;

function nameChoice(label, key, names) {
  const known = [...new Set(names.filter(Boolean))];
  if (known.length < 2) return "";
  return choice(label, [["", "all"], ...known.slice(0, MOST_NAMES).map((name) => [name, name])], key);
}

function kindChoice() {
  const evaluations = episodes.filter((episode) => episode.evaluation).length;
  if (!evaluations || evaluations === episodes.length) return "";
  return choice("Kind", [["", "all"], ["strict", "strict tests"], ["evaluation", "evaluations"]], "kind");
}

function showFilters(form) {
  form.addEventListener("submit", (event) => event.preventDefault());
  const over = episodes.some((episode) => episode.over)
    ? toggle("over budget", "over", () => Boolean(view.over), () => ({ over: view.over ? "" : "1" }))
    : "";
  form.append(
    searchField(),
    el("div", { class: "toggles", role: "group", "aria-label": "Outcome" }, outcomeToggles(), over),
    nameChoice("Agent", "agent", scenarios.map((scenario) => scenario.agent)),
    nameChoice("Model", "model", episodes.map((episode) => episode.model)),
    kindChoice(),
    choice("Order", Object.entries(ORDERS).map(([key, [text]]) => [key, text]), "order"),
    scenarioChip(),
  );
  form.hidden = false;
}
