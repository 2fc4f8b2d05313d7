// Any two episodes side by side, chosen with the button of their rows.

const comparison = document.getElementById("compare");
const comparisonStatus = document.getElementById("compare-status");
let comparedEpisodes = "";

function chosenEpisodes() {
  return listed("compare").map((number) => episodeByNumber.get(number)).filter(Boolean).slice(0, 2);
}

function chooseEpisode(number) {
  const chosen = listed("compare");
  const next = chosen.includes(number) ? chosen.filter((one) => one !== number) : [...chosen.slice(-1), number];
  changeView({ compare: next.join(",") });
}

function episodeTitle(episode) {
  return [bdi(episode.scenario.id), " ", iterationText(episode)];
}

function comparedHead(episode) {
  const address = addressOf({ compare: "", episode: String(episode.number) });
  return el(
    "div",
    { class: "compared" },
    el("h3", {}, chip(episode.outcome), " ", el("a", { href: address }, episodeTitle(episode)), episode.scenario.agent ? el("span", { class: "agent" }, bdi(episode.scenario.agent)) : ""),
    el("p", { class: "note" }, [episode.model, ...episodeFigures(episode)].filter(Boolean).join(" · ")),
    episode.reason ? textBlock(episode.reason, "reason") : "",
    listOf(episode.assertions, checkItem, "checks"),
  );
}

function comparisonParts([left, right]) {
  const swap = el("a", { class: "plain-button", href: addressOf({ compare: `${right.number},${left.number}` }) }, "Swap sides");
  const close = el("a", { class: "plain-button", href: addressOf({ compare: "" }) }, "Close");
  return [
    el("p", { class: "note" }, swap, " ", close),
    el("div", { class: "ways" }, comparedHead(left), comparedHead(right)),
    sideBySide(left, right, [left, right].map((episode) => `${iterationText(episode)}, ${episode.outcome}`)),
  ];
}

function describeChoice(chosen) {
  if (chosen.length !== 1) return [];
  const cancel = el("a", { href: addressOf({ compare: "" }) }, "cancel");
  return [el("span", {}, ...episodeTitle(chosen[0])), " is chosen. Choose the other episode with the button “compare” of its row, or ", cancel, "."];
}

function showComparison({ isAddress }) {
  const chosen = chosenEpisodes();
  const numbers = chosen.map((episode) => String(episode.number));
  for (const [number, row] of rows) row.pick.setAttribute("aria-pressed", String(numbers.includes(number)));
  comparisonStatus.replaceChildren(...describeChoice(chosen));
  comparison.hidden = chosen.length < 2;
  if (numbers.join() === comparedEpisodes && !isAddress) return;
  comparedEpisodes = numbers.join();
  if (comparison.hidden) return;
  document.getElementById("compare-body").replaceChildren(...comparisonParts(chosen));
  const title = document.getElementById("compare-title");
  title.scrollIntoView();
  title.focus({ preventScroll: true });
}

followers.push(showComparison);
