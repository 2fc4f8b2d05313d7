// A conversation of the baseline beside one of this run, for each scenario that changed.

function sideHead(title, note) {
  return el("div", {}, el("h3", { class: "label" }, title), el("p", { class: "note" }, note));
}

function talkPanes(pair) {
  const episode = episodeByNumber.get(String(pair.now));
  const before = { turns: pair.turns, left_out: !pair.turns };
  return [
    el(
      "div",
      { class: "ways" },
      sideHead("A conversation before", `iteration ${pair.iteration}, ${pair.outcome}`),
      sideHead("A conversation now", episode ? `iteration ${episode.iteration}, ${episode.outcome}` : "none is on this page"),
    ),
    episode ? sideBySide(before, episode, ["before", "now"]) : conversation(before),
  ];
}

// How a scenario differs from the baseline: notes, its tool calls, and both conversations.
function comparedParts({ notes = [], steps, talk }) {
  return present(
    ...notes.map((note) => el("p", { class: "note" }, bdi(note))),
    listOf(steps, stateLine, "diff"),
    talk && el("div", { class: "talks" }, talkPanes(talk)),
  );
}
