// Formats of numbers, equal to those of the comment (`render/numbers.py`).

const SCIENTIFIC_FROM = 1e15;
const MAX_DIGITS = 12;

function figure(number) {
  if (Math.abs(number) >= SCIENTIFIC_FROM) return Number(number.toPrecision(3)).toExponential();
  return decimals(number, 0);
}

function counted(number, noun, nouns = `${noun}s`) {
  return `${figure(number)} ${number === 1 ? noun : nouns}`;
}

// An exact half goes to the even digit, as in Python; `toFixed` always takes the higher one.
function roundedText(value, places) {
  const text = value.toFixed(places);
  const isHalf = Math.abs((value * 2 ** (places + 1)) % 2) === 1;
  return isHalf && Number(text.at(-1)) % 2 ? (value - 0.25 * 10 ** -places).toFixed(places) : text;
}

function decimals(value, places, isTrimmed = false) {
  if (Math.abs(value) >= SCIENTIFIC_FROM) return figure(value);
  const [whole, part = ""] = roundedText(value, places).split(".");
  const shown = isTrimmed ? part.replace(/0+$/, "") : part;
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (shown && `.${shown}`);
}

function money(dollars, digits = 2) {
  if (dollars >= 1 || dollars === 0) return `$${decimals(dollars, Math.max(2, digits))}`;
  if (dollars < 1e-8) return "under $0.00000001";
  const [exponent] = dollars.toExponential(15).split("e").slice(-1);
  const places = Math.max(2, digits - 1 - Number(exponent));
  const [whole, cents] = roundedText(dollars, places).split(".");
  return `$${whole}.${cents.slice(0, 2)}${cents.slice(2).replace(/0+$/, "")}`;
}

function milliseconds(value, digits = 1) {
  if (value < 10) return `${decimals(value, digits, true)} ms`;
  if (value < 100_000) return `${decimals(value, digits - 1, true)} ms`;
  return `${decimals(value / 1000, digits)} s`;
}

function seconds(value, digits = 1) {
  if (value < 120 || digits > 1 || value >= SCIENTIFIC_FROM) return `${decimals(value, digits)} s`;
  const whole = Number(roundedText(value, 0));
  return `${figure(Math.floor(whole / 60))} min ${whole % 60} s`;
}

function amount(value, digits = 2) {
  return decimals(value, digits, true);
}

const WRITERS = { count: [amount, 2], money: [money, 2], milliseconds: [milliseconds, 1], seconds: [seconds, 1] };

// Two figures of a budget with enough digits to look different.
function distinct(format, limit, used) {
  const [write, digits] = WRITERS[format];
  for (let more = digits; more < MAX_DIGITS; more += 1) {
    const pair = [write(limit, more), write(used, more)];
    if (pair[0] !== pair[1] || limit === used) return pair;
  }
  return [String(limit), String(used)];
}
