// The view as the address holds it: filters, the open episode and the selected cause.
//
// `#scenario=ID` is the link of comments. A copied address shows the same view again, and so do
// the browser's buttons "back" and "forward".

const NO_VIEW = { scenario: "", agent: "", model: "", outcome: "", over: "", kind: "", q: "", order: "worst", episode: "", compare: "", cause: "", keys: "" };
const FILTERS = ["scenario", "agent", "model", "outcome", "over", "kind", "q", "order"];

const view = { ...NO_VIEW };

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // written by hand, with a lone percent sign
  }
}

function readAddress() {
  const found = { ...NO_VIEW };
  const former = /^#episode-(\d+)$/.exec(location.hash);
  if (former) found.episode = former[1];
  for (const part of location.hash.slice(1).split("&")) {
    const [name, ...value] = part.split("=");
    if (value.length && Object.hasOwn(NO_VIEW, name)) found[name] = decode(value.join("="));
  }
  return found;
}

function addressOf(change) {
  const wanted = { ...view, ...change };
  const parts = Object.keys(NO_VIEW)
    .filter((name) => wanted[name] !== NO_VIEW[name])
    .map((name) => `${name}=${encodeURIComponent(wanted[name]).replaceAll("%2C", ",")}`);
  return `#${parts.join("&")}`;
}

// The address of a view without the present filters.
function freshAddress(change) {
  return addressOf({ ...NO_VIEW, keys: view.keys, ...change });
}

// What follows a change of the view: `show(how)`, in this order; `how.from` is the address, or "".
const followers = [];

function showView(how = {}) {
  for (const follow of followers) follow(how);
}

// Changes the view and the address; `replace`: without a new entry in the history.
function changeView(change, { replace = false } = {}) {
  const address = addressOf(change);
  Object.assign(view, change);
  if (address !== location.hash && !(address === "#" && !location.hash)) {
    history[replace ? "replaceState" : "pushState"](null, "", address);
  }
  showView();
}

function followAddress() {
  Object.assign(view, readAddress());
  showView({ isAddress: true });
}

// Values of a filter that may have several: "failed,error".
function listed(name) {
  return view[name].split(",").filter(Boolean);
}
