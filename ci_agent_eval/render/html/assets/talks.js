// A conversation of the base beside one of this run, for each scenario that changed.

const talks = dataOf("talk-data");

function talkPane(title, note, content) {
  return el("div", { class: "talk" }, el("h3", { class: "label" }, title), el("p", { class: "note" }, note), content);
}

function talkPanes(pair) {
  const episode = episodes.find((one) => one.number === pair.now);
  return [
    talkPane(
      "A conversation before",
      `iteration ${pair.iteration}, ${pair.outcome}`,
      pair.turns
        ? conversation({ turns: pair.turns })
        : el("p", { class: "note" }, "It was left out for its size; it is in the results of the baseline."),
    ),
    episode
      ? talkPane("A conversation now", `iteration ${episode.iteration}, ${episode.outcome}`, conversation(episode))
      : talkPane("A conversation now", "", el("p", { class: "note" }, "None is on this page.")),
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
