// One episode opened: why it ended so, its conversation, and beside it what was checked.

const LONG = 1500;
const SHORT_CALL = 400;

function textBlock(text, kind) {
  const block = el("div", { class: `text ${kind}`, dir: "auto" });
  if (text.length <= LONG) {
    block.append(text);
    return [block];
  }
  block.append(text.slice(0, LONG), "…");
  const button = el("button", { type: "button", class: "whole" }, `Show all ${counted(text.length, "character")}`);
  button.addEventListener("click", () => {
    block.replaceChildren(text);
    block.tabIndex = -1;
    block.focus();
    button.remove();
  });
  return [block, button];
}

function callPart(title, text, kind) {
  if (text === undefined) return [];
  return [el("dt", {}, title), el("dd", {}, textBlock(text, `code ${kind}`))];
}

function toolCall(call) {
  const size = (call.arguments ?? "").length + (call.result ?? "").length;
  const note = callNote(call);
  const summary = el(
    "summary",
    {},
    el("span", { class: "tool" }, bdi(call.name)),
    call.error === undefined ? "" : chip("error"),
    note ? el("span", { class: "note" }, bdi(note)) : "",
  );
  return el(
    "details",
    { class: `call${call.error === undefined ? "" : " broken"}`, open: call.error !== undefined || size <= SHORT_CALL },
    summary,
    el(
      "dl",
      {},
      callPart("Arguments", call.arguments, ""),
      callPart("Result", call.result, ""),
      callPart("Error", call.error, "error"),
      call.result_unseen ? [el("dt", {}, "Result"), el("dd", { class: "note" }, "not seen in the model traffic")] : [],
    ),
  );
}

function turnDetails(turn) {
  const details = answerDetails(turn);
  if (!details.length) return "";
  const pairs = details.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, bdi(value))]);
  return el("details", { class: "answer" }, el("summary", {}, "Model and settings"), el("dl", {}, pairs));
}

function turnItem(turn, agents = []) {
  return el(
    "li",
    { class: `turn ${turn.role} depth-${turnDepth(turn)}` },
    el(
      "div",
      { class: "speaker" },
      el("strong", {}, turn.role),
      turn.agent === undefined ? "" : el("span", { class: "note" }, "agent ", bdi(agentLabel(agents, turn.agent))),
      el("span", { class: "note" }, turnNotes(turn).join(" · ")),
    ),
    turn.content ? textBlock(turn.content, "said") : "",
    listOf(turn.attachments, (file) => el("li", { class: "note" }, bdi(fileText(file))), "files"),
    (turn.error ?? undefined) === undefined ? "" : el("div", { class: "note" }, chip("error"), " ", bdi(turn.error)),
    (turn.tool_calls ?? []).map(toolCall),
    turnDetails(turn),
  );
}

function conversation(episode) {
  if (episode.left_out) {
    return el("p", { class: "note" }, "The conversation was left out for its size; it is in results.json.");
  }
  if (!episode.turns) return el("p", { class: "note" }, "No conversation was recorded.");
  return el("ol", { class: "turns", role: "list" }, episode.turns.map((turn) => turnItem(turn, episode.agents)));
}

function checkItem(check) {
  const kind = check.passed ? "passed" : check.severity === "warning" ? "warning" : "failed";
  return el(
    "li",
    { class: `check ${kind}` },
    el("span", { class: "mark", "aria-hidden": "true" }, check.passed ? "✓" : check.severity === "warning" ? "!" : "✕"),
    el(
      "div",
      {},
      el("span", { class: "unseen" }, `${kind}: `),
      bdi(check.name),
      (check.score ?? Number(check.passed)) === Number(check.passed) ? "" : el("span", { class: "note" }, ` score ${amount(check.score)}`),
      check.reason ? textBlock(check.reason, "reason") : "",
      placeOf(check.place),
    ),
  );
}

function scoreItem(score) {
  return el(
    "li",
    {},
    bdi(score.name),
    el("strong", {}, ` ${amount(score.value)}`),
    score.reason ? textBlock(score.reason, "reason") : "",
  );
}

function aside(title, list) {
  return list ? [el("h4", { class: "label" }, title), list] : [];
}

function listOf(items, make, kind) {
  return items?.length ? el("ul", { class: kind, role: "list" }, items.map(make)) : undefined;
}

function facts(episode) {
  const known = [
    ["Test", episode.test && el("code", {}, episode.test)],
    ["Place", placeOf(episode.place)],
    ["Model", episode.model && el("code", {}, episode.model)],
    ["Stopped", episode.stopped],
    ["Used", episodeFigures(episode).join(" · ")],
    ["Model traffic", trafficNotes(episode.traffic).join(" · ")],
  ];
  return el(
    "dl",
    { class: "facts" },
    known.filter(([, value]) => value).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
  );
}

const SIDES = { before: "before: ", now: "after: " };

function stateLine([kind, text]) {
  return el("li", { class: kind }, SIDES[kind] ? el("span", { class: "unseen" }, SIDES[kind]) : "", bdi(text));
}

function metadata(episode) {
  if (!episode.metadata) return [];
  return [el("details", {}, el("summary", {}, "Metadata"), el("div", { class: "text code" }, episode.metadata))];
}

function episodePanel(episode) {
  const checks = [...(episode.assertions ?? [])].sort((a, b) => a.passed - b.passed);
  return [
    episode.reason
      ? el("div", { class: `callout ${episode.outcome}` }, el("span", { class: "unseen" }, "Reason: "), textBlock(episode.reason, "cause"))
      : "",
    el(
      "div",
      { class: "panes" },
      el(
        "div",
        { class: "said-pane" },
        el("h4", { class: "label" }, "Conversation"),
        conversation(episode),
        aside("State", listOf(episode.states, stateLine, "diff")),
      ),
      el(
        "div",
        { class: "side" },
        aside("Checks", listOf(checks, checkItem, "checks")),
        aside("Budgets", episode.budgets && budgetBars(episode.budgets)),
        aside("Scores", listOf(episode.scores, scoreItem, "scores")),
        el("h4", { class: "label" }, "Episode"),
        facts(episode),
        metadata(episode),
      ),
    ),
  ];
}
