// The causes: one of them is shown beside their list, with what the agent did before and now.

const causeLinks = [...document.querySelectorAll(".cause")];
const causePanels = [...document.querySelectorAll(".cause-panel")];

function chooseCause(number) {
  changeView({ cause: number === 1 ? "" : String(number) });
  causeLinks[number - 1].focus();
  causePanels[number - 1].scrollIntoView({ block: "nearest" });
}

function shownCause() {
  return causePanels[view.cause - 1] ? Number(view.cause) : 1;
}

function stepCause(step) {
  const next = shownCause() + step;
  // The first key shows where the selection is.
  const isThere = document.activeElement === causeLinks[shownCause() - 1];
  if (causeLinks.length) chooseCause(isThere && causeLinks[next - 1] ? next : shownCause());
}

function iterationLink(episode) {
  return el(
    "a",
    { class: `iteration-link ${episode.outcome}`, href: freshAddress({ scenario: keyOf(episode.scenario), episode: String(episode.number) }) },
    `${episode.iteration} `,
    el("span", { "aria-hidden": "true" }, { passed: "✓", failed: "✕", error: "!" }[episode.outcome] ?? "–"),
    el("span", { class: "unseen" }, episode.outcome),
  );
}

const MOST_ITERATIONS = 30;

// Built when the cause is shown first: there may be many.
function completeCause(panel) {
  const holder = panel.querySelector("[data-scenario]");
  if (holder) {
    const own = scenarios[holder.dataset.scenario].episodes.slice(0, MOST_ITERATIONS).sort((a, b) => a.iteration - b.iteration);
    holder.prepend(...(own.length ? ["Iterations ", ...own.flatMap((episode) => [iterationLink(episode), " "])] : []));
  }
  for (const exchange of panel.querySelectorAll("[data-exchange]")) {
    const [before, now] = [...exchange.children].map((side) => side.querySelectorAll("[data-marks]"));
    if (now) before.forEach((text, at) => markDifferences(text, now[at]));
  }
  delete panel.dataset.new;
}

for (const panel of causePanels) panel.dataset.new = "";

function showCause({ isAddress }) {
  causePanels.forEach((panel, at) => {
    const isShown = at + 1 === shownCause();
    panel.hidden = !isShown;
    if (isShown) causeLinks[at].setAttribute("aria-current", "true");
    else causeLinks[at].removeAttribute("aria-current");
    if (isShown && "new" in panel.dataset) completeCause(panel);
    if (isShown && isAddress && view.cause) panel.scrollIntoView({ block: "nearest" });
  });
}

causeLinks.forEach((link, at) => {
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    chooseCause(at + 1);
  });
});
followers.push(showCause);
