"use strict";
// Exact fractions: [numerator, denominator] of BigInts in lowest terms, the denominator positive.
const fraction = (n, d) => {
  let [a, b] = [n < 0n ? -n : n, d];
  while (b) [a, b] = [b, a % b];
  return [n / a, d / a];
};
const add = (x, y) => fraction(x[0] * y[1] + y[0] * x[1], x[1] * y[1]);
const times = (x, y) => fraction(x[0] * y[0], x[1] * y[1]);
const minus = x => [-x[0], x[1]];
const compare = (x, y) => { const d = x[0] * y[1] - y[0] * x[1]; return d > 0n ? 1 : d < 0n ? -1 : 0; };
const ZERO = [0n, 1n], ONE = [1n, 1n];
const asText = x => x[1] === 1n ? `${x[0]}` : `${x[0]}/${x[1]}`;

function read(text) {
  const found = /^\s*(\d{0,9})(?:\.(\d{0,9}))?(?:\s*\/\s*(\d{1,9}))?\s*$/.exec(text);
  if (!found || !(found[1] || found[2])) return null;
  const digits = found[2] || "", below = BigInt(found[3] || 1) * 10n ** BigInt(digits.length);
  if (below === 0n) return null;
  const value = fraction(BigInt((found[1] || "0") + digits), below);
  return compare(value, ONE) > 0 ? null : value;
}

// The AND-OR tree of the three-node problem, with the values backed up from its leaves.
function solve({eta, r0, r1, r2, belief}, tie) {
  const search = (b, reward) => ({
    action: "search", reward: add(times(b, add(reward, ONE)), minus(ONE)), outcomes: [
      {observation: "found", probability: b, value: ZERO},
      {observation: "not found", probability: add(ONE, minus(b)), value: ZERO}]});
  const back = node => {
    node.q = node.outcomes.reduce((sum, o) => add(sum, times(o.probability, o.value)), node.reward);
    return node;
  };
  const shelf = (name, share, reward) => {
    const b = times(share, belief), only = back(search(b, reward));
    return {observation: name, probability: share, belief: b, value: only.q, actions: [only]};
  };
  const here = back(search(belief, r0));
  const down = back({action: "descend", reward: ZERO, outcomes: [shelf("c1", eta, r1), shelf("c2", add(ONE, minus(eta)), r2)]});
  const order = compare(here.q, down.q), best = order > 0 || (order === 0 && tie === "search") ? here : down;
  return {belief, value: best.q, actions: [here, down], tied: order === 0, best: best.action};
}

// The formulas of the appendix, computed on their own; the tree must have the same values.
function formulas({eta, r0, r1, r2, belief}) {
  const up = r => add(r, ONE), rest = add(ONE, minus(eta));
  const bracket = add(times(times(eta, eta), up(r1)), times(times(rest, rest), up(r2)));
  return {search: add(times(belief, up(r0)), minus(ONE)), descend: add(times(belief, bracket), minus(ONE)), bracket,
          first: times(eta, belief), second: times(rest, belief)};
}

// For tests: the values of a setting of texts such as "3/4", as texts.
function values(setting, tie) {
  const given = Object.fromEntries(Object.entries(setting).map(([name, text]) => [name, read(text)]));
  const tree = solve(given, tie), hand = formulas(given), [here, down] = tree.actions;
  const shelves = down.outcomes.map(o => [asText(o.probability), asText(o.belief), asText(o.value)]);
  return {search: asText(here.q), descend: asText(down.q), value: asText(tree.value), shelves, best: tree.best, tied: tree.tied,
          agree: compare(hand.search, here.q) === 0 && compare(hand.descend, down.q) === 0};
}

// --- numbers as text -------------------------------------------------------------------------------------------------

let form = "decimals";
const PLACES = 4n;

function rounded(x) {  // [text, whether it is exact], of at most four decimals, half away from zero
  const scale = 10n ** PLACES, size = (x[0] < 0n ? -x[0] : x[0]) * scale;
  const units = (2n * size + x[1]) / (2n * x[1]);
  const digits = String(units).padStart(Number(PLACES) + 1, "0");
  const text = `${digits.slice(0, -4)}.${digits.slice(-4)}`.replace(/\.?0+$/, "");
  return [(x[0] < 0n && units ? "−" : "") + text, size % x[1] === 0n];
}
const shown = x => form === "fractions" ? asText(x).replace("-", "−") : rounded(x)[0];
const equals = x => form === "fractions" || rounded(x)[1] ? "=" : "≈";
const factor = x => x[0] < 0n || (form === "fractions" && x[1] !== 1n) ? `(${shown(x)})` : shown(x);

// --- the tree as a drawing -------------------------------------------------------------------------------------------

const svg = (tag, attributes, text = "") =>
  `<${tag}${Object.entries(attributes).map(([k, v]) => ` ${k}="${v}"`).join("")}>${text}</${tag}>`;

// From left to right, or from top to bottom on a narrow page. From left to right an arc leaves behind its node's text.
function drawn(tree, narrow) {
  const size = narrow ? {width: 376, height: 476, font: 13} : {width: 1230, height: 440, font: 17};
  const levels = narrow ? [22, 122, 228, 334, 436] : [22, 270, 590, 880, 1110];
  const slots = narrow ? [28, 78, 170, 224, 280, 334] : [30, 100, 190, 260, 340, 410];
  const at = (level, slot) => narrow ? [slot, levels[level]] : [levels[level], slot];
  const middle = pair => (pair[0] + pair[1]) / 2;
  let arcs = [], nodes = [];
  const plan = new Set([tree, ...tree.actions.filter(action => action.action === tree.best)]);
  const text = (x, y, words, kind, anchor) => {
    const wide = 0.63 * size.font * words.length;  // no text is cut off at an edge
    const held = anchor === "end" ? Math.max(x, wide) : anchor === "start" ? Math.min(x, size.width - wide) : x;
    nodes.push(svg("text",
      {x: held, y, class: kind, "text-anchor": anchor, "font-size": kind === "beside" ? size.font - 1 : size.font}, words));
  };
  const symbol = ([x, y], kind, onPlan) => {
    const r = narrow ? 9 : 11, mark = `${kind}${onPlan ? " plan" : ""}`;
    nodes.push(kind === "and" ? svg("circle", {cx: x, cy: y, r: r - 1, class: mark})
      : svg("polygon", {class: mark, points: (narrow ? [[x, y - r], [x - r, y + r - 2], [x + r, y + r - 2]]
        : [[x + r, y], [x - r + 2, y - r], [x - r + 2, y + r]]).join(" ")}));
  };
  // A node with its lines of text beside it; returns where its arcs begin.
  const node = (place, kind, words, onPlan, side = 1) => {
    symbol(place, kind, onPlan);
    const gap = !narrow ? 17 : place[1] === levels[0] ? 20 : 13;  // the arc from the root starts below its text
    words.forEach((line, i) => text(place[0] + gap * side,
      place[1] + (i - (words.length - 1) / 2) * (size.font + 3) + size.font / 3, line, i === (kind === "and" ? 0 : 1) ? "name" : "",
      side < 0 ? "end" : "start"));
    const longest = Math.max(...words.map(line => line.length));
    return narrow ? place : [place[0] + 24 + 0.6 * size.font * longest, place[1]];
  };
  const arc = ([x, y], [u, v], words, onPlan, side, share = 0.5) => {
    const points = narrow ? [[x, y], [u, v]] : [[x, y], [x + 44, v], [u, v]];
    arcs.push(svg("polyline", {points: points.join(" "), class: `arc${onPlan ? " plan" : ""}`}));
    if (narrow) text(x + share * (u - x) + side * 5, y + share * (v - y) + 4, words, "beside", side < 0 ? "end" : "start");
    else text(u - 16, v - 7, words, "beside", "end");
  };
  // What has the probability 0 is drawn pale.
  const drawPale = (pale, draw) => {
    if (!pale) return draw();
    const [oldArcs, oldNodes] = [arcs, nodes];
    [arcs, nodes] = [[], []];
    draw();
    const group = `<g class="never">${arcs.join("")}${nodes.join("")}</g>`;
    [arcs, nodes] = [oldArcs, [group, ...oldNodes]];
  };
  const outcomes = (action, from, level, pair, onPlan) => action.outcomes.forEach((o, i) =>
    drawPale(o.probability[0] === 0n, () => {
      const to = at(level, pair[i]), used = onPlan && o.probability[0] !== 0n;
      arc(from, to, shown(o.probability), used, i ? 1 : -1, i ? 0.68 : 0.44);
      if (!narrow) return node(to, "or", [o.observation], used);
      symbol(to, "or", used);
      text(to[0], to[1] + 23, i ? "not" : "found", "", "middle");
    }));
  const star = action => tree.tied || action.action === tree.best ? " ★" : "";
  const [here, down] = tree.actions, tops = [slots.slice(0, 2), [middle(slots.slice(2, 4)), middle(slots.slice(4))]];
  const root = at(0, middle(tops.map(middle)));
  const start = node(root, "or", [`b = ${shown(tree.belief)}`, `V ${shown(tree.value)}`], true);
  const [first, second] = [here, down].map((action, i) => {
    const place = at(1, middle(tops[i])), onPlan = plan.has(action);
    arc(start, place, `R ${shown(action.reward)}`, onPlan, i ? 1 : -1);
    return node(place, "and", [action.action + star(action), `Q ${shown(action.q)}`], onPlan);
  });
  outcomes(here, first, 2, tops[0], plan.has(here));
  down.outcomes.forEach((o, i) => drawPale(o.probability[0] === 0n, () => {
    const or = at(2, tops[1][i]), and = at(3, tops[1][i]), only = o.actions[0];
    const onPlan = plan.has(down) && o.probability[0] !== 0n;
    arc(second, or, `${narrow ? "" : "o = "}${o.observation}: ${shown(o.probability)}`, onPlan, i ? 1 : -1);
    const next = node(or, "or", [`b = ${shown(o.belief)}`, `V ${shown(o.value)}`], onPlan, narrow ? -1 : 1);
    arc(next, and, `R ${shown(only.reward)}`, onPlan, -1);
    const then = node(and, "and", [`search${onPlan ? " ★" : ""}`, `Q ${shown(only.q)}`], onPlan, narrow ? -1 : 1);
    outcomes(only, then, 4, slots.slice(2 + 2 * i, 4 + 2 * i), onPlan);
  }));
  const label = `AND-OR tree: search ${shown(here.q)}, descend ${shown(down.q)}`;
  return svg("svg", {viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": label}, arcs.join("") + nodes.join(""));
}

// --- the formulas with numbers ---------------------------------------------------------------------------------------

const name = (letter, index) => `<var>${letter}</var><sub>${index}</sub>`;
const squared = x => `${form === "fractions" && x[1] !== 1n ? `(${shown(x)})` : shown(x)}²`;

function written(setting, tree) {
  const {eta, r0, r1, r2, belief} = setting, hand = formulas(setting), rest = add(ONE, minus(eta));
  const line = parts => `<p>${parts.map(part => `<span class="step">${part}</span>`).join(" ")}</p>`;
  const b = "<var>b</var>", up = r => `(${shown(r)} + 1)`;
  const order = compare(hand.bracket, add(r0, ONE)), sign = order > 0 ? "&gt;" : order < 0 ? "&lt;" : "=";
  const says = belief[0] === 0n ? "the item is not there: both actions cost 1"
    : order > 0 ? "descending is better" : order < 0 ? "searching is better" : "a tie";
  return [
    line([`Q(${b}, search)`, `= ${b} (${name("r", 0)} + 1) − 1`, `= ${factor(belief)} · ${up(r0)} − 1`, `${equals(hand.search)} <b>${shown(hand.search)}</b>`]),
    line([`${name("b", 1)} = η ${b} = ${factor(eta)} · ${factor(belief)} ${equals(hand.first)} ${shown(hand.first)},`,
          `${name("b", 2)} = (1 − η) ${b} = ${factor(rest)} · ${factor(belief)} ${equals(hand.second)} ${shown(hand.second)}`]),
    line([`Q(${b}, descend)`, `= ${b} [η² (${name("r", 1)} + 1) + (1 − η)² (${name("r", 2)} + 1)] − 1`,
          `= ${factor(belief)} · [${squared(eta)} · ${up(r1)} + ${squared(rest)} · ${up(r2)}] − 1`,
          `${equals(hand.descend)} <b>${shown(hand.descend)}</b>`]),
    line([`The belief cancels: descending is better if η² (${name("r", 1)} + 1) + (1 − η)² (${name("r", 2)} + 1) &gt; ${name("r", 0)} + 1.`,
          `Here ${shown(hand.bracket)} ${sign} ${shown(add(r0, ONE))}:`, `${says}.`]),
  ].join("");
}

// --- the page --------------------------------------------------------------------------------------------------------

const page = document.querySelector("main"), controls = page.querySelector("form");
const setting = {};
let waiting = false;

function redraw() {
  waiting = false;
  form = controls.elements.form.value;
  const tree = solve(setting, controls.elements.tie.value), narrow = page.clientWidth < 700;
  page.querySelector(".tree").innerHTML = drawn(tree, narrow);
  page.querySelector(".formulas").innerHTML = written(setting, tree);
  const [here, down] = tree.actions, other = tree.best === "search" ? down : here;
  page.querySelector(".decision").innerHTML = tree.tied
    ? `A tie: both actions have the value ${shown(tree.value)}. The rule chooses to <b>${tree.best}</b>.`
    : `The better action: <b>${tree.best}</b>, with the value ${shown(tree.value)} against ${shown(other.q)}.`;
}
const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(redraw); } };

for (const row of page.querySelectorAll(".slider")) {
  const [slider, field] = row.querySelectorAll("input"), wrong = row.querySelector(".wrong"), key = slider.name;
  const accept = (value, typed) => {
    wrong.textContent = value ? "" : "a number from 0 to 1, such as 3/4 or 0.75";
    field.setAttribute("aria-invalid", String(!value));
    if (!value) return;
    setting[key] = value;
    if (typed) slider.value = Number(value[0] * 1000000n / value[1]) / 1000000;
    later();
  };
  slider.addEventListener("input", () => { field.value = slider.value; accept(read(slider.value), false); });
  field.addEventListener("input", () => accept(read(field.value), true));
  accept(read(field.value), true);
}
controls.addEventListener("change", later);
controls.addEventListener("submit", event => event.preventDefault());
addEventListener("resize", later);
redraw();
