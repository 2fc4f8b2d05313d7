// A conversation of the baseline beside one of this run, for each scenario that changed.

const talks = dataOf("talk-data");

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

// Built when it is seen first: there may be many, and long ones.
function showTalks() {
  for (const holder of document.querySelectorAll("[data-talks]")) {
    const folded = holder.closest("details");
    const build = () => {
      if (folded.open && !holder.hasChildNodes()) holder.append(...talkPanes(talks[holder.dataset.talks]));
    };
    folded.addEventListener("toggle", build);
    build();
  }
}
