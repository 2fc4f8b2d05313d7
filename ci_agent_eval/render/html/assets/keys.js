// Keys: every control is reached with Tab; these are shorter ways.

const keyList = document.getElementById("keys");

function stepEpisode(step) {
  const openers = [...document.querySelectorAll("#episode-list .opener")];
  const at = openers.findIndex((opener) => opener.closest(".episode").contains(document.activeElement));
  const next = openers[at < 0 ? 0 : at + step];
  if (!next) return;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  j: () => stepCause(1),
  k: () => stepCause(-1),
  n: () => stepEpisode(1),
  p: () => stepEpisode(-1),
  c: () => document.activeElement.closest(".episode")?.querySelector(".pick").click(),
  "/": () => document.getElementById("search").focus(),
  "?": () => keyList.showModal(),
};

document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input, select, textarea");
  if (field && event.key === "Escape") field.blur();
  if (field || keyList.open || event.ctrlKey || event.metaKey || event.altKey) return;
  if (view.keys === "off" || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

const showKeys = document.getElementById("show-keys");
showKeys.hidden = false;
showKeys.addEventListener("click", KEYS["?"]);
// Speech input types single letters: they can be turned off (WCAG 2.1.4).
const useKeys = document.getElementById("use-keys");
useKeys.addEventListener("change", () => changeView({ keys: useKeys.checked ? "" : "off" }));
followers.push(() => {
  useKeys.checked = view.keys !== "off";
});
document.getElementById("hide-keys").addEventListener("click", () => keyList.close());

// Links to sections keep the view in the address.
for (const link of document.querySelectorAll("nav a")) {
  link.addEventListener("click", (event) => {
    const target = document.getElementById(link.hash.slice(1));
    event.preventDefault();
    target.scrollIntoView();
    const heading = target.querySelector("h2");
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  });
}
