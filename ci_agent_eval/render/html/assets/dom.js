// Making elements: text goes in as text and nowhere else, so that no text becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return node;
}

function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function dataOf(id) {
  const holder = document.getElementById(id);
  const value = JSON.parse(holder.textContent);
  holder.remove(); // its text is not needed twice
  return value;
}

const places = dataOf("place-data");

function placeOf(place) {
  if (!place) return undefined;
  const [file, url] = places[place[0]];
  const text = place[1] ? `${file}:${place[1]}` : file;
  if (!url) return el("code", { class: "place" }, text);
  return el("a", { class: "place", href: place[1] ? `${url}#L${place[1]}` : url }, text);
}

function chip(kind, text = kind) {
  return el("span", { class: `chip ${kind}` }, text);
}

function bdi(text) {
  return el("bdi", {}, text);
}

// A button that opens and closes what `build` makes, once it is wanted for the first time.
function discloses(button, panel, build) {
  let built = false;
  button.setAttribute("aria-controls", panel.id);
  const set = (open) => {
    if (open && !built) {
      built = true;
      panel.append(...build());
    }
    button.setAttribute("aria-expanded", String(open));
    panel.hidden = !open;
  };
  set(false);
  button.addEventListener("click", () => set(panel.hidden));
  return set;
}

// Shows the first entries of a list and a button for the next ones.
function paged(list, after, size, noun) {
  const button = el("button", { type: "button", class: "more-button" });
  let items = [];
  let make;
  let shown = 0;
  const more = (focus) => {
    const next = items.slice(shown, shown + size).flatMap((item) => make(item));
    list.append(...next);
    shown = Math.min(shown + size, items.length);
    const left = items.length - shown;
    button.hidden = left === 0;
    button.textContent = `Show ${figure(Math.min(size, left))} more of ${counted(left, noun)}`;
    if (focus && next.length) next[0].querySelector("button")?.focus();
  };
  button.addEventListener("click", () => more(true));
  after.after(button);
  return {
    show(newItems, makeItem) {
      [items, make, shown] = [newItems, makeItem, 0];
      list.replaceChildren();
      more(false);
    },
    all(most) {
      while (shown < items.length && shown < most) more(false);
    },
  };
}
