// Agents or models against scenarios: passed of judged iterations, each a link to its episodes.

const matrices = dataOf("matrix-data");
const MATRIX_ROWS_A_PAGE = 50;

function matrixCell(matrix, scenario, cell, column) {
  const own = { role: "cell", "data-column": matrix.columns[column] };
  if (!cell) return el("td", own, "–");
  const [passes, word] = cell;
  const href = freshAddress({ scenario: keyOf(scenario), [matrix.kind]: matrix.columns[column] });
  return el("td", own, el("a", { class: `matrix-cell ${word.replace(" ", "-")}`, href }, passes, " ", el("span", { class: "note" }, word)));
}

function matrixRow(matrix, [number, ...cells]) {
  const scenario = scenarios[number];
  const name = el("th", { scope: "row", role: "rowheader" }, el("a", { href: freshAddress({ scenario: keyOf(scenario) }) }, bdi(scenario.id)));
  return [el("tr", { role: "row" }, name, cells.map((cell, column) => matrixCell(matrix, scenario, cell, column)))];
}

function showMatrix(holder, matrix) {
  const id = `matrix-${matrix.kind}`;
  const heads = ["scenario", ...matrix.columns].map((name) => el("th", { scope: "col", role: "columnheader" }, bdi(name)));
  const body = el("tbody", { role: "rowgroup" });
  const table = el("table", { class: "stacked", role: "table", "aria-labelledby": id }, el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)), body);
  const scroll = el("div", { class: "scroll" }, table);
  holder.append(el("h3", { id }, `By ${matrix.kind}`), scroll);
  if (matrix.more) scroll.after(el("p", { class: "more" }, `${counted(matrix.more, `more ${matrix.kind}`)}: in results.json.`));
  paged(body, scroll, MATRIX_ROWS_A_PAGE, "scenario").show(matrix.rows, (row) => matrixRow(matrix, row));
}

for (const matrix of matrices) showMatrix(document.getElementById("matrix-list"), matrix);
