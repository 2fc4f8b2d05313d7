// The history of a scenario: a small line for each figure, and the same as a table.

const runLabels = [...dataOf("run-data"), "this run"];
const HISTORY = [["passes", 1, 4, 1], ["cost per episode", 2, 5, 0], ["p95 latency", 3, 6, 0]];
const [LINE_WIDTH, LINE_HEIGHT] = [160, 32];

// A line from the oldest run to this one; runs without the figure leave a gap.
function historyLine(points, value, least) {
  const known = points.map((point) => point[value]);
  const top = Math.max(least, ...known.filter((one) => one !== null)) || 1;
  const step = LINE_WIDTH / Math.max(points.length - 1, 1);
  const place = (at) => [at * step, LINE_HEIGHT - (known[at] / top) * LINE_HEIGHT];
  const dots = [...known.keys()].filter((at) => known[at] !== null);
  const lines = dots.filter((at) => known[at - 1] !== null && at > 0).map((at) => {
    const [[x1, y1], [x2, y2]] = [place(at - 1), place(at)];
    return svg("line", { x1, y1, x2, y2 });
  });
  const marks = dots.map((at) => svg("circle", { cx: place(at)[0], cy: place(at)[1], r: at === points.length - 1 ? 4 : 2 }));
  return svg("svg", { class: "history-line", viewBox: `-5 -5 ${LINE_WIDTH + 10} ${LINE_HEIGHT + 10}`, "aria-hidden": "true" }, lines, marks);
}

function historyTable(points) {
  const head = el("thead", {}, el("tr", {}, ["run", ...HISTORY.map(([name]) => name)].map((name) => el("th", { scope: "col" }, name))));
  const row = (point) => el("tr", {}, el("th", { scope: "row" }, bdi(runLabels[point[0]])), HISTORY.map(([, words]) => el("td", {}, point[words])));
  return el("details", {}, el("summary", {}, "As a table"), el("table", { class: "history-table" }, head, el("tbody", {}, points.map(row))));
}

function historyOf(points) {
  const figures = HISTORY.filter(([, , value]) => points.some((point) => point[value] !== null));
  const shown = figures.map(([name, words, value, least]) =>
    el("figure", {}, el("figcaption", {}, `${name}: ${points.at(-1)[words]}`), historyLine(points, value, least)),
  );
  return [
    el("h3", { class: "label" }, `History over ${counted(points.length - 1, "run")} of the baseline`),
    el("div", { class: "history" }, shown),
    historyTable(points),
  ];
}
