// Differences of two texts: words that only one of them has are marked.

const MOST_CELLS = 1_000_000;

// The places of a longest common subsequence, as pairs; undefined if comparing would take too long.
function commonPairs(before, now) {
  const pairs = [];
  let start = 0;
  let [endBefore, endNow] = [before.length, now.length];
  while (start < Math.min(endBefore, endNow) && before[start] === now[start]) {
    pairs.push([start, start]);
    start += 1;
  }
  const tail = [];
  while (endBefore > start && endNow > start && before[endBefore - 1] === now[endNow - 1]) {
    endBefore -= 1;
    endNow -= 1;
    tail.unshift([endBefore, endNow]);
  }
  const [rows, columns] = [endBefore - start, endNow - start];
  if (rows * columns > MOST_CELLS) return undefined;
  const width = columns + 1;
  const lengths = new Uint16Array((rows + 1) * width);
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      lengths[row * width + column] =
        before[start + row] === now[start + column]
          ? lengths[(row + 1) * width + column + 1] + 1
          : Math.max(lengths[(row + 1) * width + column], lengths[row * width + column + 1]);
    }
  }
  for (let row = 0, column = 0; row < rows && column < columns; ) {
    if (before[start + row] === now[start + column]) {
      pairs.push([start + row, start + column]);
      row += 1;
      column += 1;
    } else if (lengths[(row + 1) * width + column] >= lengths[row * width + column + 1]) row += 1;
    else column += 1;
  }
  return [...pairs, ...tail];
}

function wordsOf(text) {
  return text.split(/(\s+)/).filter(Boolean);
}

// The text with the words marked that are not in `common`; neighbours share a mark.
function markedText(words, common, kind) {
  const found = [];
  let open = [];
  const close = () => {
    const blank = open.length && /^\s+$/.test(open.at(-1)) ? open.pop() : "";
    if (open.length) found.push(el("mark", { class: kind }, open.join("")));
    found.push(blank);
    open = [];
  };
  words.forEach((word, at) => {
    if (!common.has(at)) open.push(word);
    else if (open.length && /^\s+$/.test(word)) open.push(word);
    else {
      close();
      found.push(word);
    }
  });
  close();
  return found;
}

// Marks both texts where they differ; texts that are too long stay as they are.
function markDifferences(before, now) {
  const words = [before, now].map((holder) => wordsOf(holder.textContent));
  const pairs = commonPairs(...words);
  if (!pairs) return;
  [before, now].forEach((holder, side) => {
    const common = new Set(pairs.map((pair) => pair[side]));
    if (common.size < words[side].length) {
      holder.replaceChildren(...markedText(words[side], common, side ? "now" : "before"));
    }
  });
}
