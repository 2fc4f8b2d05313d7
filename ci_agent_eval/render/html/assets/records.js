// Episodes, turns and budgets as their JSON holds them, in the words of the page.

const CALL_NOTES = { refused: "refused", failed: "failed", replayed: "replayed", unattributed: "not attributed to an episode" };
const PRICE_NOTES = { unpriced_models: "cost unknown: no price of", vendor_priced_models: "priced as the API's vendor:" };
const USUAL_ENDS = [undefined, "stop", "tool_call"];
const MAX_DEPTH = 4;

function present(...parts) {
  return parts.filter((part) => part !== undefined && part !== "" && part !== false && part !== null);
}

function columnText(value) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  return Number.isInteger(value) ? figure(value) : String(Number(value.toPrecision(6)));
}

function episodeFigures(episode) {
  return present(
    episode.turn_count && counted(episode.turn_count, "turn"),
    episode.tool_calls && counted(episode.tool_calls, "tool call"),
    episode.duration_ms !== undefined && milliseconds(episode.duration_ms),
    episode.tokens !== undefined && counted(episode.tokens, "tokens", "tokens"),
    episode.cost !== undefined && money(episode.cost),
    episode.rate_limited && `rate limited ${counted(episode.rate_limited, "time")}`,
    episode.misses && counted(episode.misses, "cassette miss", "cassette misses"),
    ...testRuns(episode.runs ?? []),
    episode.judge && counted(episode.judge.calls ?? 0, "call of the judge", "calls of the judge"),
    ...(episode.faults ?? []),
    ...Object.entries(episode.columns ?? {}).map(([name, value]) => `${name} ${columnText(value)}`),
  ).filter(Boolean);
}

// The full test runs that were held back, and the test runs that ran, with the time of their calls.
function testRuns(runs) {
  const [held, ...ran] = ["held", "full", "targeted"].map((extent) => runs.filter((run) => run.extent === extent));
  const parts = ran.filter((group) => group.length).map((group) => {
    const known = group.map((run) => run.duration_ms).filter((time) => time !== null);
    const total = known.length ? seconds(known.reduce((a, b) => a + b, 0) / 1000) : "not measured";
    const note = known.length && known.length < group.length ? `, ${known.length} measured` : "";
    return `${counted(group.length, `${group[0].extent} test run`)} (${total}${note})`;
  });
  return held.length ? [`${counted(held.length, "full test run")} held back`, ...parts] : [];
}

function trafficNotes(traffic) {
  if (!traffic) return [];
  const requests = traffic.requests || traffic.vendor_priced_models ? traffic.requests && counted(traffic.requests, "request") : "no model traffic seen";
  return [
    requests,
    ...Object.entries(CALL_NOTES).map(([name, text]) => traffic[name] && `${figure(traffic[name])} ${text}`),
    traffic.is_shared && "with requests from outside the test's context",
    ...Object.entries(PRICE_NOTES).map(([name, text]) => traffic[name]?.length && `${text} ${traffic[name].join(", ")}`),
  ].filter(Boolean);
}

function agentLabel(agents, id) {
  const agent = agents.find((one) => one.id === id) ?? { id };
  return agent.id + (agent.name ? ` ${agent.name}` : "") + (agent.relation ? ` (${agent.relation})` : "");
}

function fileText(file) {
  const size = file.size_bytes === undefined ? "" : counted(file.size_bytes, "byte");
  return present(file.media_type ?? "file", size, file.sha256 && `sha256 ${file.sha256}`).join(", ");
}

// Source, latency, tokens and cost of a turn, and an unusual end.
function turnNotes(turn) {
  const { tokens } = turn;
  const part = (name) => (tokens[name] ? ` (${figure(tokens[name])} ${name})` : "");
  return present(
    turn.source,
    turn.latency_ms !== undefined && milliseconds(turn.latency_ms),
    tokens && `${figure(tokens.input ?? 0)}${part("cached")} tokens in, ${figure(tokens.output ?? 0)}${part("reasoning")} out`,
    turn.cost_usd !== undefined && money(turn.cost_usd),
    !USUAL_ENDS.includes(turn.finish_reason) && `finished: ${turn.finish_reason}`,
  );
}

// Names and values of the model's answer that few readers need.
function answerDetails(turn) {
  const [asked, answered] = [turn.requested_model, turn.response_model];
  const model = asked && answered && asked !== answered ? `${answered} (requested: ${asked})` : (answered ?? asked);
  const settings = Object.entries(turn.settings ?? {}).sort().map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return [
    ["Model", model],
    ["Finish reason", turn.finish_reason],
    ["First token", turn.first_byte_ms === undefined ? undefined : milliseconds(turn.first_byte_ms)],
    ["Settings", settings.join(", ")],
    ["Typed output", turn.typed_output],
  ].filter(([, value]) => value !== undefined && value !== "");
}

// A call that was held back took no time: this stands in the duration's place.
function callNote(call) {
  if (call.steered_by) return `held back by ${call.steered_by}`;
  return call.duration_ms === undefined ? "" : milliseconds(call.duration_ms);
}

function turnDepth(turn) {
  return Math.min((turn.agent ?? "").split(".").length - 1, MAX_DEPTH);
}
