// Puts the parts together, follows addresses such as #episode-7, and prepares for print.

const MOST_PRINTED = 500;

function showEpisodesOf(scenario) {
  filter.scenario = scenario;
  refresh();
  const title = document.getElementById("episodes-title");
  title.scrollIntoView();
  title.focus({ preventScroll: true });
}

function followAddress() {
  const asked = /^#episode-(\d+)$/.exec(location.hash);
  if (!asked) return;
  const number = Number(asked[1]);
  if (!opened.has(number)) {
    const episode = episodes.find((one) => one.number === number);
    if (!episode) return;
    Object.assign(filter, { words: [], outcomes: new Set(), over: false, kind: "", agent: "", scenario: episode.scenario });
    document.getElementById("search").value = "";
    refresh();
    episodePages.all(Infinity);
  }
  opened.get(number)();
}

showFilters(document.getElementById("filters"));
refresh();
const scenarioPages = showScenarios(document.getElementById("scenario-list"), showEpisodesOf);
showTalks();
followAddress();
addEventListener("hashchange", followAddress);
addEventListener("beforeprint", () => {
  scenarioPages?.all(MOST_PRINTED);
  episodePages.all(MOST_PRINTED);
  document.querySelectorAll("details").forEach((folded) => {
    folded.open = true;
  });
});
