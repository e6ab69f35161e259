"use strict";
// An icicle of a hierarchy on one canvas: a row a level, a node as wide as its share of the items, coloured by how well
// a search does there. Only what is at least half a pixel wide is drawn on its own; thinner neighbours are drawn
// together in their mean colour, so that the cost is bound by pixels, not by nodes.
//
// The tree arrives as parallel arrays in breadth-first order (parents first, siblings in item order):
//   parent, start, size (in items), level, label, id (none, or empty where it is the label), and one array a measure;
//   items hold label, id, and the measures that they have, in slice order.
// A second icicle on the page has the same parts, their ids ending in "-2". What is looked at, and by which measure,
// stands in the address, so that back and forward work and a view can be handed on.
function icicle(suffix) {
  const part = name => document.getElementById(name + suffix);
  const payload = JSON.parse(part("payload").textContent);
  const tree = payload.tree, items = payload.items, measures = payload.measures;
  const count = tree.parent.length, total = tree.size[0];
  const canvas = part("icicle"), pen = canvas.getContext("2d");
  const tip = part("tip"), crumbs = part("crumbs"), search = part("search"), hits = part("hits");
  const picker = part("measure"), legend = part("legend"), deeper = part("deeper");
  const LOWEST = 22, HIGHEST = 96;  // of a level, in pixels
  const SIGNS = new Intl.Segmenter();  // what readers take for one character
  const RTL = /^\P{L}*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u;
  const PAPER = "680px";            // of A4 and letter, within their margins

  // --- the tree: children of a node are contiguous in breadth-first order
  const firstChild = new Int32Array(count).fill(-1), childCount = new Int32Array(count);
  for (let i = 1; i < count; i++) {
    const p = tree.parent[i];
    if (firstChild[p] < 0) firstChild[p] = i;
    childCount[p]++;
  }
  const rows = [];               // first node of each level, and one past the last
  for (let i = 0; i < count; i++) {
    const l = tree.level[i];
    if (rows.length <= l) rows.push([i, i]);
    rows[l][1] = i + 1;
  }
  const withItems = items.label.length > 0;

  let focus = 0, hover = -1, measure = measures[0];

  // --- colour: orange (bad) over grey to blue (good); lightness falls towards both ends, so that it reads in grey as well
  //     (on a dark page, lightness rises towards both ends)
  const LIGHT = [[179, 88, 6], [224, 163, 92], [236, 236, 236], [124, 165, 205], [33, 82, 148]];
  const DARK = [[242, 153, 74], [158, 98, 45], [58, 64, 71], [58, 105, 158], [122, 180, 245]];
  const atNight = window.matchMedia("screen and (prefers-color-scheme: dark)");
  let stops = atNight.matches ? DARK : LIGHT;
  function shade(value, m) {     // red, green and blue
    if (value === null || Number.isNaN(value)) return stops === DARK ? [92, 92, 92] : [207, 207, 207];
    let t = (value - m.low) / (m.high - m.low);
    t = Math.min(1, Math.max(0, t)) * (stops.length - 1);
    const k = Math.min(stops.length - 2, Math.floor(t)), f = t - k;
    return stops[k].map((x, i) => Math.round(x + f * (stops[k + 1][i] - x)));
  }
  function rgb(c) { return "rgb(" + c.join(",") + ")"; }
  function ink(c) {              // black or white, whichever stands out more: 4.5 to 1 on any colour
    const [r, g, b] = c.map(x => x <= 10 ? x / 3295 : Math.pow((x / 255 + 0.055) / 1.055, 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
  }

  function format(value, m) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const text = m.percent ? (100 * value).toFixed(1) + " %" : value.toFixed(3);
    return text.replace(/^-(?=[0.]+$)/, "").replace("-", "−");
  }
  function shortened(text, most) {  // the middle left out, or the end where there is room for less than a word
    const signs = Array.from(SIGNS.segment(text), sign => sign.segment), tail = most >= 12 ? (most - 1) >> 1 : 0;
    if (signs.length <= most) return text;
    return signs.slice(0, most - 1 - tail).join("") + "…" + signs.slice(signs.length - tail).join("");
  }
  function fitted(text, width) {    // as much of the text as the pen has room for
    let most = text.length, shown = text;
    for (let wide; most > 3 && (wide = pen.measureText(shown).width) > width;) {
      most = Math.max(3, Math.min(most - 1, Math.floor(most * width / wide)));
      shown = shortened(text, most);
    }
    return shown;
  }
  function counted(n, noun) { return n + " " + noun + (n === 1 ? "" : "s"); }

  // --- geometry: the focus node fills the width; its ancestors are the breadcrumbs
  function scale() {
    const width = canvas.clientWidth;
    return { width, from: tree.start[focus], per: width / tree.size[focus] };
  }
  // As many levels as fit on the screen, and no less than eight; few levels are drawn high, so that names have room.
  function room() { return Math.max(8 * LOWEST, Math.min(0.7 * window.innerHeight, 560)); }
  function rowsShown() { return Math.min(rows.length - tree.level[focus], Math.floor(room() / LOWEST)); }
  function band() {
    const bands = rowsShown() + (withItems ? 1 : 0);
    return Math.max(LOWEST, Math.min(HIGHEST, Math.floor(Math.min(room(), 400) / bands)));
  }

  // First node of a level whose items end after `position`: levels are sorted by start.
  function seek(level, position) {
    let low = rows[level][0], high = rows[level][1];
    while (low < high) {
      const mid = (low + high) >> 1;
      if (tree.start[mid] + tree.size[mid] <= position) low = mid + 1; else high = mid;
    }
    return low;
  }

  function paint() {
    const began = performance.now();
    const { width, from, per } = scale(), to = from + tree.size[focus];
    const high = band(), height = (rowsShown() + (withItems && measure.items ? 1 : 0)) * high;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = height + "px";
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    const base = tree.level[focus], values = tree[measure.key];
    for (let level = base; level < base + rowsShown(); level++) {
      const y = (level - base) * high;
      paintRow(seek(level, from), rows[level][1], to, from, per, y, high, values,
        i => tree.start[i], i => tree.size[i], i => tree.label[i]);
    }
    if (withItems && measure.items) {
      paintRow(from, total, to, from, per, rowsShown() * high, high, items[measure.items],
        i => i, () => 1, i => items.label[i]);
    }
    if (hover >= 0) outline(hover, from, per, base, high);
    canvas.dataset.paint = (performance.now() - began).toFixed(1);
    canvas.dataset.focus = String(focus);
  }

  function paintRow(i, end, to, from, per, y, high, values, start, size, label) {
    let runFrom = -1, runTo = 0, runSum = 0, runWeight = 0;
    function flush() {
      if (runFrom < 0) return;
      pen.fillStyle = rgb(shade(runWeight ? runSum / runWeight : null, measure));
      pen.fillRect(runFrom, y, Math.max(0.5, runTo - runFrom), high - 1);
      runFrom = -1; runSum = 0; runWeight = 0;
    }
    for (; i < end && start(i) < to; i++) {
      const x = (start(i) - from) * per, w = size(i) * per, v = values[i];
      if (w < 1.5) {             // too thin to stand alone: gather, up to a pixel
        if (runFrom < 0) runFrom = x;
        runTo = x + w;
        if (v !== null) { runSum += v * size(i); runWeight += size(i); }
        if (runTo - runFrom >= 1) flush();
        continue;
      }
      flush();
      const back = shade(v, measure);
      pen.fillStyle = rgb(back);
      pen.fillRect(x, y, w - (w > 3 ? 1 : 0), high - 1);
      pen.fillStyle = ink(back);
      write(label(i), Math.max(x, 0), y, Math.min(x + w, (to - from) * per) - Math.max(x, 0), high);
    }
    flush();
  }

  function write(text, x, y, w, high) {  // a name into its box, or upwards where the box is narrow and high
    const upwards = w < 60 && high >= 44;
    if (upwards ? w < 14 : w < 34) return;
    pen.save();
    pen.beginPath(); pen.rect(x + 1, y, w - 2, high - 1); pen.clip();
    pen.translate(upwards ? x + w / 2 : x + 4, upwards ? y + high - 4 : y + high / 2);
    if (upwards) pen.rotate(-Math.PI / 2);
    pen.direction = RTL.test(text) ? "rtl" : "ltr";
    pen.fillText(fitted(text, (upwards ? high : w) - 8), 0, 0);
    pen.restore();
  }

  function outline(i, from, per, base, high) {
    const isItem = i >= count;
    const x = ((isItem ? i - count : tree.start[i]) - from) * per;
    const w = (isItem ? 1 : tree.size[i]) * per;
    const level = isItem ? base + rowsShown() : tree.level[i];
    pen.strokeStyle = stops === DARK ? "#fff" : "#111"; pen.lineWidth = 2;
    pen.strokeRect(x + 1, (level - base) * high + 1, Math.max(2, w - 2), high - 3);
  }

  // --- what stands under a point: a node, count + item, or -1
  function at(px, py) {
    const { from, per } = scale(), base = tree.level[focus];
    const level = base + Math.floor(py / band()), position = from + px / per;
    if (position < from || position >= from + tree.size[focus] || level < base) return -1;
    if (level >= base + rowsShown()) return withItems && measure.items ? count + Math.floor(position) : -1;
    const i = seek(level, position);
    return i < rows[level][1] && tree.start[i] <= position ? i : -1;
  }

  function path(i) {             // the nodes from the root to i; of a long path the two ends, with null between
    const nodes = [];
    for (let k = i; k >= 0; k = tree.parent[k]) nodes.push(k);
    nodes.reverse();
    return nodes.length <= 10 ? nodes : [...nodes.slice(0, 3), null, ...nodes.slice(-6)];
  }

  function describe(i) {
    const lines = [];
    if (i >= count) {
      const k = i - count;
      lines.push(items.label[k], items.id[k] ? "item " + items.id[k] : "item");
      for (const m of measures) if (m.items) lines.push(m.name + ": " + format(items[m.items][k], m));
      return lines;
    }
    lines.push(path(i).map(k => k === null ? "…" : tree.label[k]).join(" › "), counted(tree.size[i], "item"));
    if (tree.id[i]) lines.push("id " + tree.id[i]);
    for (const m of measures) lines.push(m.name + ": " + format(tree[m.key][i], m));
    return lines;
  }

  function showTip(i, x, y) {
    if (i < 0) { tip.hidden = true; return; }
    tip.replaceChildren(...describe(i).map((line, k) => {
      const div = document.createElement("div");
      div.textContent = line;
      if (k === 0) div.className = "first";
      return div;
    }));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 8)) + "px";
    tip.style.top = (y + 18 + box.height > window.innerHeight ? y - box.height - 10 : y + 18) + "px";
  }

  // --- the view: what fills the width, and what colours, as they stand in the address
  function remember() {
    const view = new URLSearchParams(location.hash.slice(1));
    view.set("node" + suffix, String(focus));
    view.set("by" + suffix, measure.key);
    if ("#" + view !== location.hash) location.hash = String(view);
  }
  function recall(event) {
    const view = new URLSearchParams(location.hash.slice(1)), node = Number(view.get("node" + suffix));
    const by = measures.find(m => m.key === view.get("by" + suffix)) || measures[0];
    if (event && node === focus && by === measure) return;
    measure = by;
    picker.value = String(measures.indexOf(measure));
    showLegend();
    show(Number.isInteger(node) && node >= 0 && node < count ? node : 0);
  }
  function zoom(i) {
    if (i >= count) return;
    show(i);
    remember();
  }
  function show(i) {
    focus = i; hover = -1; tip.hidden = true;
    crumbs.replaceChildren();
    path(i).forEach((k, n) => {
      if (n) crumbs.append(" › ");
      if (k === null) { crumbs.append("…"); return; }
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = k === i ? tree.label[k] : shortened(tree.label[k], 40);
      button.title = tree.label[k];
      if (k === i) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => { zoom(k); canvas.focus(); });
      crumbs.append(button);
    });
    const hidden = rows.length - tree.level[focus] - rowsShown();
    deeper.textContent = hidden > 0 ? "not drawn: " + counted(hidden, "deeper level") + "; click a node to zoom in" : "";
    paint();
  }

  canvas.addEventListener("mousemove", event => {
    const box = canvas.getBoundingClientRect();
    const i = at(event.clientX - box.left, event.clientY - box.top);
    if (i !== hover) { hover = i; paint(); }
    showTip(i, event.clientX, event.clientY);
  });
  canvas.addEventListener("mouseleave", () => { hover = -1; tip.hidden = true; paint(); });
  canvas.addEventListener("click", event => {
    const box = canvas.getBoundingClientRect();
    const i = at(event.clientX - box.left, event.clientY - box.top);
    if (i >= 0 && i < count) zoom(i === focus && tree.parent[i] >= 0 ? tree.parent[i] : i);
  });

  // Keyboard: the arrows walk the tree, Enter zooms in, Escape and Backspace zoom out, Home goes to the root.
  canvas.addEventListener("keydown", event => {
    let i = hover >= 0 ? hover : focus;
    if (i >= count) {            // an item: below its leaf, beside its neighbours
      const leaf = leafOf(i - count), end = tree.start[focus] + tree.size[focus] - 1;
      if (event.key === "ArrowUp" || event.key === "Enter") i = leaf;
      if (event.key === "ArrowLeft") i = count + Math.max(tree.start[focus], i - count - 1);
      if (event.key === "ArrowRight") i = count + Math.min(end, i - count + 1);
      if (event.key.startsWith("Arrow")) { walk(i); event.preventDefault(); return; }
    }
    const siblings = tree.parent[i] >= 0 ? firstChild[tree.parent[i]] : i;
    const last = tree.parent[i] >= 0 ? siblings + childCount[tree.parent[i]] - 1 : i;
    switch (event.key) {
      case "ArrowDown": i = childCount[i] ? firstChild[i] : withItems && measure.items ? count + tree.start[i] : i; break;
      case "ArrowUp": if (i !== focus && tree.parent[i] >= 0) i = tree.parent[i]; break;
      case "ArrowRight": if (i !== focus) i = Math.min(last, i + 1); break;
      case "ArrowLeft": if (i !== focus) i = Math.max(siblings, i - 1); break;
      case "Enter": zoom(i); event.preventDefault(); return;
      case "Escape": case "Backspace":
        if (tree.parent[focus] >= 0) zoom(tree.parent[focus]);
        event.preventDefault(); return;
      case "Home": zoom(0); event.preventDefault(); return;
      default: return;
    }
    event.preventDefault();
    walk(i);
  });
  function walk(i) {
    hover = i; paint();
    const { from, per } = scale(), box = canvas.getBoundingClientRect();
    const [start, row] = i >= count ? [i - count, rowsShown()] : [tree.start[i], tree.level[i] - tree.level[focus]];
    showTip(i, box.left + (start - from) * per + 8, box.top + row * band() + 4);
  }

  // --- search: nodes and items whose name holds the words; a choice zooms to the node (for an item, to its leaf)
  function leafOf(position) {
    let i = 0;
    while (childCount[i]) {
      let next = -1;
      for (let c = firstChild[i]; c < firstChild[i] + childCount[i]; c++) {
        if (tree.start[c] <= position && position < tree.start[c] + tree.size[c]) { next = c; break; }
      }
      if (next < 0) break;
      i = next;
    }
    return i;
  }
  // Case and accents make no difference: e finds é, in either spelling.
  const LETTERS = { ß: "ss", ø: "o", ł: "l", đ: "d", æ: "ae", œ: "oe", ı: "i" };
  const fold = text => text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, "")
    .replace(/[ßøłđæœı]/g, letter => LETTERS[letter]);
  const foldings = new Map();
  const folded = of => {
    if (!foldings.has(of)) foldings.set(of, { label: of.label.map(fold), id: of.id.map(fold) });
    return foldings.get(of);
  };
  search.addEventListener("input", () => {
    const words = fold(search.value.trim());
    hits.replaceChildren();
    if (!words) { hits.hidden = true; return; }
    let found = 0;
    const offer = (text, where, node) => {
      const li = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      const small = document.createElement("small");
      small.textContent = where;
      button.append(" ", small);
      button.addEventListener("click", () => { hits.hidden = true; zoom(node); canvas.focus(); });
      li.append(button); hits.append(li);
    };
    const holds = (of, i) => folded(of).label[i].includes(words) || (folded(of).id[i] || "").includes(words);
    const named = (of, i) => of.id[i] ? of.id[i] + ", " : "";
    const exact = (of, i) => (folded(of).id[i] || folded(of).label[i]) === words;
    const look = test => {       // ids that are the very words first, then all that hold them
      for (let i = 0; i < count && found < 20; i++) {
        if (test(tree, i)) { offer(tree.label[i], named(tree, i) + counted(tree.size[i], "item"), i); found++; }
      }
      for (let k = 0; k < items.label.length && found < 40; k++) {
        if (!test(items, k)) continue;
        const leaf = leafOf(k);
        offer(items.label[k], named(items, k) + "item in " + tree.label[leaf], leaf); found++;
      }
    };
    look(exact);
    look((of, i) => !exact(of, i) && holds(of, i));
    if (!found) {
      const li = document.createElement("li");
      li.textContent = "nothing has this in its name or id";
      hits.append(li);
    }
    hits.hidden = false;
  });
  search.addEventListener("keydown", event => {
    if (event.key === "Enter") { const first = hits.querySelector("button"); if (first) first.click(); }
    if (event.key === "Escape") { search.value = ""; hits.hidden = true; }
  });

  // --- the measure that colours, and its legend
  measures.forEach((m, k) => {
    const option = document.createElement("option");
    option.value = String(k); option.textContent = m.name;
    picker.append(option);
  });
  function showLegend() {
    const ends = [measure.low, (measure.low + measure.high) / 2, measure.high];
    const gradient = "linear-gradient(to right," + stops.map(rgb).join(",") + ")";
    const bar = document.createElement("span");
    bar.className = "bar"; bar.style.backgroundImage = gradient;
    const text = document.createElement("span");
    text.textContent = measure.note;
    legend.replaceChildren(format(ends[0], measure), bar, format(ends[2], measure), text);
  }
  picker.addEventListener("change", () => {
    measure = measures[Number(picker.value)];
    showLegend(); paint(); remember();
  });

  document.querySelectorAll("button[data-node" + suffix + "]").forEach(button => {
    button.addEventListener("click", () => {
      zoom(Number(button.getAttribute("data-node" + suffix)));
      canvas.scrollIntoView({ block: "center" });
      canvas.focus({ preventScroll: true });
    });
  });

  function colours(dark) { stops = dark ? DARK : LIGHT; showLegend(); paint(); }
  atNight.addEventListener("change", () => colours(atNight.matches));
  window.addEventListener("beforeprint", () => { canvas.style.width = PAPER; colours(false); });
  window.addEventListener("afterprint", () => { canvas.style.width = ""; colours(atNight.matches); });
  window.addEventListener("resize", paint);
  window.addEventListener("hashchange", recall);
  recall(null);
}
// What is folded is printed as well: paper cannot be unfolded.
let unfolded = [];
window.addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details:not([open])")];
  unfolded.forEach(part => { part.open = true; });
});
window.addEventListener("afterprint", () => unfolded.forEach(part => { part.open = false; }));
document.querySelectorAll("script[id^=payload]").forEach(part => icicle(part.id.slice("payload".length)));
