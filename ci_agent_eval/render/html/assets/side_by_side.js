// Two conversations side by side: like turns face each other, and differences are marked.

function vocabularyOf(turn) {
  return new Set([...wordsOf(turn.content ?? ""), ...(turn.tool_calls ?? []).map((call) => `call ${call.name}`)]);
}

// How well two turns face each other: 0 for other roles, else more the more words they share.
function likeness(left, right) {
  if (left.role !== right.role) return 0;
  const shared = [...left.words].filter((word) => right.words.has(word)).length;
  return 0.1 + shared / Math.max(left.words.size, right.words.size, 1);
}

// Pairs of turns in order, with the greatest likeness in total; a turn may face nothing.
function alignTurns(...sides) {
  const [left, right] = sides.map((turns) => turns.map((turn) => ({ turn, role: turn.role, words: vocabularyOf(turn) })));
  const width = right.length + 1;
  const best = new Float64Array((left.length + 1) * width);
  const isPair = new Uint8Array(best.length);
  for (let row = left.length - 1; row >= 0; row -= 1) {
    for (let column = right.length - 1; column >= 0; column -= 1) {
      const at = row * width + column;
      const like = likeness(left[row], right[column]);
      const skipped = Math.max(best[at + width], best[at + 1]);
      isPair[at] = like > 0 && like + best[at + width + 1] >= skipped;
      best[at] = isPair[at] ? like + best[at + width + 1] : skipped;
    }
  }
  const rows = [];
  for (let row = 0, column = 0; row < left.length || column < right.length; ) {
    const at = row * width + column;
    const isOver = row === left.length || column === right.length;
    const takesLeft = isOver ? row < left.length : isPair[at] || best[at + width] >= best[at + 1];
    const takesRight = isOver ? column < right.length : isPair[at] || !takesLeft;
    rows.push([takesLeft ? left[row].turn : undefined, takesRight ? right[column].turn : undefined]);
    row += takesLeft ? 1 : 0;
    column += takesRight ? 1 : 0;
  }
  return rows;
}

// The calls of a turn that the other turn does not make with the same arguments and result.
function differingCalls(turn, other) {
  const keys = [turn, other].map((one) => (one?.tool_calls ?? []).map((call) => JSON.stringify([call.name, call.arguments, call.result, call.error])));
  const pairs = commonPairs(...keys) ?? [];
  const common = new Set(pairs.map((pair) => pair[0]));
  return new Set(keys[0].keys().filter((at) => !common.has(at)));
}

function turnCell(turn, other, { name, agents }, kind) {
  const label = el("span", { class: "side-name" }, name);
  if (!turn) return el("div", { class: `cell ${kind} empty` }, label, el("p", { class: "note" }, "no such turn"));
  const item = turnItem(turn, agents);
  const differing = differingCalls(turn, other);
  item.querySelectorAll(":scope > .call").forEach((call, at) => {
    if (differing.has(at)) call.querySelector("summary").append(chip("warning", "differs"));
  });
  return el("div", { class: `cell ${kind}` }, label, el("ol", { class: "turns", role: "list" }, item));
}

function turnPair([left, right], sides) {
  const cells = [turnCell(left, right, sides[0], "before"), turnCell(right, left, sides[1], "now")];
  const texts = cells.map((cell) => cell.querySelector(".turn > .said"));
  if (texts[0] && texts[1] && left.role === right.role) markDifferences(...texts);
  return el("li", { class: "turn-pair" }, cells);
}

function sideBySide(left, right, names) {
  const missing = [left, right].filter((side) => !side.turns);
  if (missing.length) {
    return el("div", { class: "ways" }, el("div", { class: "cell before" }, conversation(left)), el("div", { class: "cell now" }, conversation(right)));
  }
  const sides = [left, right].map(({ agents }, at) => ({ name: names[at], agents }));
  return el("ol", { class: "turn-pairs", role: "list" }, alignTurns(left.turns, right.turns).map((row) => turnPair(row, sides)));
}
