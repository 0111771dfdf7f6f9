// The page of `strata view`: all state is in the hash, as #part=1&tab=passes&stage=4&value=k.0; data are in the page.
"use strict";
const INDEX = JSON.parse(document.getElementById("index").textContent);
const TABS = { passes: "Passes", nest: "Loops", script: "Script", memory: "Memory", code: "Machine code", proof: "Proof" };
const CONTEXT = 3; // equal lines that are shown around a change
const parts = new Map(); // the data of parts by number, as promises
const opened = new Set(); // the collapsed runs of lines that a click has opened
let lastStage = ""; // the part and stage of the latest rendering: a mark of another one is scrolled into view
let shown = 0; // the number of the latest rendering: an older one that still waits for data is dropped

// --- elements: text is always set as text, never as HTML ---------------------------------------------------------

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) element.setAttribute(name, String(value));
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== ""));
  return element;
}
function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
const button = (text, act, attributes) => h("button", { type: "button", onclick: act, ...attributes }, text);
function table(headings, rows, kinds = "") {
  const cell = (tag, content, n) => h(tag, { class: kinds[n] === "n" ? "number" : undefined }, content);
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, headings.map((text, n) => cell("th", text, n)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((content, n) => cell("td", content, n)))))));
}
function bytes(count) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (count >= size) return `${+(count / size).toPrecision(3)} ${unit}`;
  return `${count} B`;
}
const duration = (seconds) => seconds >= 1 ? `${seconds.toFixed(1)} s` : seconds >= 1e-3 ? `${(seconds * 1e3).toFixed(1)} ms`
  : `${(seconds * 1e6).toFixed(0)} us`;
const short = (count) => count >= 1e6 ? `${+(count / 1e6).toPrecision(3)} M` : count >= 1e4 ? `${+(count / 1e3).toPrecision(3)} k` : `${count}`;

// --- state and data ----------------------------------------------------------------------------------------------

const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
function go(changes) {
  const next = { ...state(), ...changes };
  for (const name of Object.keys(next)) if (next[name] === null) delete next[name];
  location.hash = new URLSearchParams(next);
}
function load(number) {
  if (!parts.has(number)) {
    const coded = atob(document.getElementById(`part-${number}`).textContent);
    const stream = new Blob([Uint8Array.from(coded, (c) => c.charCodeAt(0))]).stream();
    parts.set(number, new Response(stream.pipeThrough(new DecompressionStream("gzip"))).json());
  }
  return parts.get(number);
}
const lastNest = (part) => part.nests[part.nests.length - 1] || [];
function* loopsOf(nodes, path = []) {
  for (const node of nodes || []) if (node.body) {
    yield { node, path };
    yield* loopsOf(node.body, [...path, node]);
  }
}
function* blocksOf(nodes) {
  for (const node of nodes || []) if (node.body) yield* blocksOf(node.body); else if (node.block) yield node.block;
}
function chosenLoop(part, s) {
  const loops = [...loopsOf(lastNest(part))];
  return loops.find(({ node }) => String(node.loop) === s.loop);
}

// --- passes: values and lines ------------------------------------------------------------------------------------

const TOKEN = /%"[^"]+"|[%@][\w.$-]+|"[^"\n]{1,80}"/g;
const LOCAL = /^v?\d+$/; // numbered values have a meaning in one text only
function keyOf(token, stage) {
  const name = token.replace(/^[%@]/, "").replace(/^"|"$/g, "");
  if (token.startsWith("%") && LOCAL.test(name)) return `${stage.name}:${name}`;
  return (Object.hasOwn(stage.aliases, name) && stage.aliases[name]) || name.replace(/(_\d+)+$/, "");
}
function isDefinition(line, start, end) {
  const after = line.slice(end);
  if (line[start] !== "%") return false;
  return after.startsWith(" = ") || after.startsWith(":") || (/^\s*%/.test(line) && start < line.indexOf(" = "));
}
const occurrences = (stage, value) => stage.text.split("\n").filter((line) => has(line, stage, value)).length;
const has = (line, stage, value) => (line.match(TOKEN) || []).some((token) => keyOf(token, stage) === value);
function tokens(line, stage, value) {
  const pieces = [];
  let at = 0;
  for (const match of line.matchAll(TOKEN)) {
    const end = match.index + match[0].length, key = keyOf(match[0], stage);
    const marks = key !== value ? "v" : isDefinition(line, match.index, end) ? "v defines" : "v uses";
    pieces.push(line.slice(at, match.index), h("span", { class: marks, "data-key": key }, match[0]));
    at = end;
  }
  return [...pieces, line.slice(at)];
}
// Rows of the comparison: [line before or null, line after or null, whether it is changed].
function rowsOf(before, after, changed) {
  const rows = [];
  let i = 0, j = 0;
  for (const [a, b, c, d] of [...changed, [before.length, before.length, after.length, after.length]]) {
    for (; i < a; i++, j++) rows.push([i, j, false]);
    for (let n = 0; n < Math.max(b - a, d - c); n++) rows.push([a + n < b ? a + n : null, c + n < d ? c + n : null, true]);
    [i, j] = [b, d];
  }
  return rows;
}
// The rows without the long runs of equal lines, each of which is [first row, length] instead.
function folded(rows, interesting, name) {
  const near = rows.map(() => false);
  rows.forEach((row, n) => {
    if (row[2] || interesting(row)) for (let m = Math.max(0, n - CONTEXT); m <= Math.min(rows.length - 1, n + CONTEXT); m++) near[m] = true;
  });
  const result = [];
  for (let n = 0; n < rows.length;) {
    let end = n;
    while (end < rows.length && !near[end]) end++;
    const key = `${name}:${n}`;
    if (end - n > 4 && !opened.has(key)) result.push({ key, count: end - n });
    else result.push(...rows.slice(n, end).map((row) => ({ row })));
    if (end === n) { result.push({ row: rows[n] }); end++; }
    n = end;
  }
  return result;
}
// The parts of the user's source that a line is of, by the runs of equal places; "" without one.
function placeOf(stage, line) {
  let place = -1;
  for (const [first, each] of stage.runs) if (first <= line) place = each; else break;
  return place < 0 ? "" : stage.places[place];
}
const isOf = (place, chosen) => chosen !== undefined && place.split(", ").includes(chosen);
function codeLine(stage, lines, number, mark, value) {
  if (number === null) return h("div", { class: "line none" }, " ");
  const place = placeOf(stage, number), here = isOf(place, state().place) ? " here" : "";
  const label = h("i", { "data-place": place.split(", ")[0] || undefined, title: place || undefined }, String(number + 1));
  return h("div", { class: `line ${mark}${here}` }, label, tokens(lines[number], stage, value));
}
function columns(before, after, value, narrow) {
  const lines = [before, after].map((stage) => stage ? stage.text.split("\n") : []);
  if (!before || !after.changed.length) return [h("div", { class: "code" }, lines[1].map((_, n) => codeLine(after, lines[1], n, "", value)))];
  const used = ([i, j]) => value && ((i !== null && has(lines[0][i], before, value)) || (j !== null && has(lines[1][j], after, value)));
  const rows = folded(rowsOf(lines[0], lines[1], after.changed), used, `${state().part}/${after.name}`);
  const fold = (item) => h("div", { class: "line fold" }, button(`${item.count} equal lines`, () => { opened.add(item.key); render(); }));
  if (narrow) return [h("div", { class: "code" }, unified(rows, before, after, lines, value, fold))];
  const side = (n) => h("div", { class: "code" }, rows.map((item) => item.key ? fold(item)
    : codeLine(n ? after : before, lines[n], item.row[n], item.row[2] ? (n ? "new" : "old") : "", value)));
  return [side(0), side(1)];
}
function unified(rows, before, after, lines, value, fold) {
  const result = [];
  let added = [];
  for (const item of [...rows, { end: true }]) {
    if (item.row && item.row[2]) {
      if (item.row[0] !== null) result.push(codeLine(before, lines[0], item.row[0], "old", value));
      if (item.row[1] !== null) added.push(codeLine(after, lines[1], item.row[1], "new", value));
      continue;
    }
    result.push(...added);
    added = [];
    if (item.key) result.push(fold(item));
    else if (item.row) result.push(codeLine(after, lines[1], item.row[1], "", value));
  }
  return result;
}
function passesTab(part, s) {
  const stages = part.stages;
  const fallback = Math.max(0, stages.findIndex((stage) => stage.name.startsWith("apply-schedule")));
  const n = Math.max(0, Math.min(stages.length - 1, s.stage === undefined ? fallback : Number(s.stage) || 0));
  const chips = stages.map((stage, m) => {
    const [gone, added] = stage.changed.reduce(([x, y], [a, b, c, d]) => [x + b - a, y + d - c], [0, 0]);
    const change = m && (gone || added) ? h("small", {}, ` +${added} -${gone}`) : "";
    const marks = `chip${m && !gone && !added ? " idle" : ""}`;
    const time = stage.seconds ? `${duration(stage.seconds)}` : "";
    return button([stage.name, change], () => go({ stage: m }), { class: marks, "aria-pressed": m === n, title: time });
  });
  const after = stages[n], before = n ? stages[n - 1] : null, narrow = innerWidth < 760;
  const bar = (title, shown, name, count) => h("p", { class: "value" }, title, h("code", {}, shown), ": lines ",
    stages.map((stage, m) => [stage, m, count(stage)]).filter((row) => row[2]).map(([stage, m, found]) =>
      button(`${stage.name} ${found}`, () => go({ stage: m }), { class: "chip", "aria-pressed": m === n })),
    button("clear", () => go({ [name]: null }), { class: "chip idle" }));
  const bars = [s.value && bar("Value ", s.value.replace(/^.*:/, "%"), "value", (stage) => occurrences(stage, s.value)),
    s.place && bar("Of ", s.place, "place", (stage) => stage.text.split("\n").filter((_, m) => isOf(placeOf(stage, m), s.place)).length)];
  const hint = "A click on a value marks its definition and its uses, in all stages that have its name" +
    (stages.some((stage) => stage.places.length) ? "; a click on the number of a line marks all that comes from the same line of your source." : ".");
  const sides = columns(before, after, s.value, narrow);
  const titles = sides.length > 1 ? [before.name, after.name] : [before && after.changed.length ? `${before.name}, then ${after.name}` : after.name];
  const equal = before && !after.changed.length ? h("p", { class: "note" }, `${after.name} changes no line.`) : "";
  return [h("div", { class: "chips" }, chips), ...bars, s.value || s.place ? "" : h("p", { class: "note" }, hint), equal,
    h("div", { class: `sides n${sides.length}`, onclick: (event) => {
      const { key, place } = event.target.dataset || {};
      if (key) go({ value: key === s.value ? null : key });
      if (place) go({ place: place === s.place ? null : place });
    } }, sides.map((side, m) => h("section", {}, h("h3", {}, titles[m]), side)))];
}

// --- loops -------------------------------------------------------------------------------------------------------

function boxes(nodes, options) {
  return nodes.map((node) => {
    if (node.alloc) return h("div", { class: "leaf alloc" }, `alloc ${node.alloc}`);
    if (!node.body) return h("div", { class: `leaf${options.marked(node) ? " marked" : ""}` }, node.text,
      node.origin && options.right ? h("small", {}, ` ${node.origin}`) : "");
    const marks = `loop ${node.kind.replace(/^v(?=thread)|_.*/g, "")}${options.marked(node) ? " marked" : ""}${options.chosen === node.loop ? " chosen" : ""}`;
    const head = [h("b", {}, node.name), ` = ${node.extent === null ? "?" : node.extent}`, node.kind === "serial" ? "" : h("em", {}, node.kind),
      h("small", {}, options.right ? options.right(node) : "")];
    const title = options.choose ? button(head, () => options.choose(node), { class: "head" }) : h("div", { class: "head" }, head);
    return h("div", { class: marks }, title, boxes(node.body, options));
  });
}
const perIteration = (memory) => memory.buffers.reduce((sum, b) => sum + boxBytes(b, b.first), 0);
const boxBytes = (buffer, box) => box.reduce((size, [low, high]) => size * Math.max(0, high - low + 1), buffer.element);
function nestTab(part, s) {
  const chosen = chosenLoop(part, s), nest = lastNest(part);
  const right = (node) => part.memory[node.loop] ? bytes(perIteration(part.memory[node.loop])) : "";
  const choose = (node) => go({ loop: String(node.loop) === s.loop ? null : node.loop });
  const links = chosen && h("p", {}, "Loop ", h("b", {}, chosen.node.name), ": ",
    button("memory", () => go({ tab: "memory" }), { class: "chip" }), button("machine code", () => go({ tab: "code" }), { class: "chip" }),
    button("its variable in the passes", () => go({ tab: "passes", value: chosen.node.name }), { class: "chip" }));
  return [h("p", { class: "note" }, "At the right: the bytes that one iteration touches, at most. A click chooses a loop."), links,
    h("div", { class: "nest" }, boxes(nest, { marked: () => false, right, choose, chosen: chosen && chosen.node.loop }))];
}

// --- script ------------------------------------------------------------------------------------------------------

function scriptTab(part, s) {
  const steps = part.steps, count = steps.length;
  const first = steps.findIndex((step) => step.refusal);
  const n = Math.min(count - 1, Math.max(0, s.step === undefined ? (first >= 0 ? first : 0) : Number(s.step) || 0));
  const step = steps[n], before = n ? steps[n - 1].nest : 0;
  const rows = steps.map((each, m) => button([h("i", {}, String(m + 1)), h("code", {}, each.text.replace(/ : .*$/, "").replace(/sched\./g, "")),
    each.queries.length ? h("small", {}, `${each.queries.length + each.omitted} isl`) : ""], () => go({ step: m }),
    { class: `step${each.refusal ? " refused" : each.nest === (m ? steps[m - 1].nest : 0) ? " idle" : ""}`, "aria-pressed": m === n }));
  const detail = [h("p", { class: "steps-head" }, button("previous", () => go({ step: Math.max(0, n - 1) }), { class: "chip" }),
    button("next", () => go({ step: Math.min(count - 1, n + 1) }), { class: "chip" }), ` step ${n + 1} of ${count}, ${duration(step.seconds)}`),
    h("pre", {}, step.text), step.refusal ? refusalBox(step.refusal) : "",
    step.nest === before ? [h("p", { class: "note" }, step.refusal ? "The loops stay as they are:" : "The step changes no loop:"),
      h("div", { class: "nest small" }, boxes(part.nests[before], { marked: () => false }))] : pair(part.nests[before], part.nests[step.nest]),
    queriesOf(step)];
  const list = h("div", { class: "step-list" }, rows);
  requestAnimationFrame(() => { const now = list.children[n]; if (now) list.scrollTop = now.offsetTop - list.offsetTop - list.clientHeight / 2; });
  return [h("div", { class: "script" }, list, h("div", { class: "step-detail" }, detail))];
}
function pair(before, after) {
  const signs = (nest) => new Map([...loopsOf(nest)].map(({ node, path }) =>
    [node.loop, `${node.name} ${node.extent} ${node.kind} ${path.map((p) => p.loop)}`]));
  const paths = (nodes, path = []) => (nodes || []).flatMap((node) => node.body ? paths(node.body, [...path, node.loop]) : [[node.block, `${path}`]]);
  const [old, now] = [signs(before), signs(after)], [oldPaths, nowPaths] = [new Map(paths(before)), new Map(paths(after))];
  const differs = (mine, mineBlocks, theirs, theirBlocks) => (node) => node.body ? theirs.get(node.loop) !== mine.get(node.loop)
    : theirBlocks.get(node.block) !== mineBlocks.get(node.block);
  return h("div", { class: "sides n2" },
    h("section", {}, h("h3", {}, "before"), h("div", { class: "nest small" }, boxes(before, { marked: differs(old, oldPaths, now, nowPaths) }))),
    h("section", {}, h("h3", {}, "after"), h("div", { class: "nest small" }, boxes(after, { marked: differs(now, nowPaths, old, oldPaths) }))));
}
function refusalBox(refusal) {
  const cards = refusal.instances.map((instance, n) => h("div", { class: "card" }, h("small", {}, n ? "second instance" : "first instance"),
    h("b", {}, instance.name), h("span", {}, Object.entries(instance.axes).map(([axis, value]) => `${axis} = ${value}`).join(", ")),
    h("span", {}, `${instance.use} ${refusal.element}`)));
  const why = refusal.loop ? `Both are iterations of the concurrent loop ${refusal.loop}, and one depends on the other.`
    : "The second depends on the first, and the step would reverse their order.";
  return h("div", { class: "refused" }, h("p", {}, "Refused: ", refusal.sentence), cards.length ? [h("div", { class: "cards" }, cards), h("p", {}, why)] : "");
}
function queriesOf(step) {
  if (!step.queries.length) return h("p", { class: "note" }, "No question to isl: the step is legal by its form, or by intervals.");
  const more = step.omitted ? h("p", { class: "note" }, `${step.omitted} more are not listed.`) : "";
  return [h("h3", {}, "Questions to isl"), table(["question", "set or map", "answer", "time"], step.queries.map((q) =>
    [KINDS[q.kind] || q.kind, h("code", { class: "set" }, q.text), answerOf(q), q.cached ? "cached" : duration(q.seconds)]), "...n"), more];
}
const KINDS = { sample: "a point of", within: "is it a subset", injective: "is it injective", claim: "claim" };
function answerOf(query) {
  if (!query.answered) return query.kind === "claim" ? "no" : "undecided";
  if (query.kind === "claim") return "holds";
  return query.answer === null ? "none" : Array.isArray(query.answer) ? `(${query.answer.join(", ")})` : query.answer ? "yes" : "no";
}

// --- memory ------------------------------------------------------------------------------------------------------

function loopChooser(part, s, title) {
  const options = [...loopsOf(lastNest(part))].map(({ node, path }) => h("option", { value: node.loop, selected: String(node.loop) === s.loop },
    `${"\u00a0\u00a0".repeat(path.length)}${node.name} = ${node.extent} (${[...new Set(blocksOf(node.body))].slice(0, 3).join(", ")})`));
  return h("label", {}, title, h("select", { onchange: (event) => go({ loop: event.target.value || null }) }, h("option", { value: "" }, "all"), options));
}
function memoryTab(part, s) {
  const loops = [...loopsOf(lastNest(part))], chosen = chosenLoop(part, s) || loops[0];
  const memory = chosen && part.memory[chosen.node.loop];
  if (!memory) return [h("p", { class: "note" }, "The loops of the low level have no footprints.")];
  const one = perIteration(memory), run = memory.buffers.reduce((sum, b) => sum + boxBytes(b, b.run), 0);
  const rows = memory.buffers.map((b) => {
    const size = boxBytes(b, b.run);
    return [b.name, b.shape.join("x") || "1", b.scope, bytes(boxBytes(b, b.first)), bytes(size), short(b.accesses), short(Math.round(b.accesses * b.element / Math.max(1, size)))];
  });
  const bars = Object.entries(INDEX.caches).filter((entry) => entry[1]).map(([name, size]) => h("div", { class: "bar" }, h("span", {}, name),
    h("div", { class: one > size ? "over" : "" }, h("i", { style: `width:${Math.min(100, 100 * one / size).toFixed(1)}%` })),
    h("small", {}, one > size ? `${+(one / size).toPrecision(3)} times its ${bytes(size)}` : `${(100 * one / size).toPrecision(2)}% of its ${bytes(size)}`)));
  const level = Object.entries(INDEX.caches).find((entry) => one <= entry[1]);
  return [loopChooser(part, { ...s, loop: String(chosen.node.loop) }, "Loop "),
    h("p", {}, `One iteration of ${chosen.node.name} touches ${bytes(one)} at most, all ${chosen.node.extent} touch ${bytes(run)}. `,
      h("b", {}, level ? `An iteration fits ${level[0]}.` : "An iteration fits no cache.")),
    h("div", { class: "bars" }, bars),
    table(["buffer", "shape", "scope", "an iteration", "all iterations", "accesses", "uses of an element"], rows, "...nnnn"),
    h("p", { class: "note" }, "Boxes: all iterations (light), the first (dark), the second (outline), in the last two dimensions; loops around it are at 0."),
    h("div", { class: "pictures" }, memory.buffers.map(picture))];
}
function picture(buffer) {
  const rank = buffer.shape.length, dims = rank > 1 ? [rank - 2, rank - 1] : [null, rank - 1];
  const extents = dims.map((d) => d === null || d < 0 ? 1 : buffer.shape[d]);
  const [width, high] = [200, Math.min(120, Math.max(16, 200 * extents[0] / extents[1]))];
  const rectangle = (box, name) => {
    if (box.length !== rank) return "";
    const spans = dims.map((d, n) => d === null || d < 0 ? [0, 0] : box[d]);
    const [y, x] = spans.map((span, n) => span[0] / extents[n]), [b, a] = spans.map((span, n) => (span[1] - span[0] + 1) / extents[n]);
    return svg("rect", { class: name, x: x * width, y: y * high, width: Math.max(2, a * width), height: Math.max(2, b * high) });
  };
  const leading = buffer.run.slice(0, Math.max(0, rank - 2)).map(([low, top], d) => `${low}..${top} of ${buffer.shape[d]}`).join(", ");
  return h("figure", {}, svg("svg", { viewBox: `-1 -1 ${width + 2} ${high + 2}`, width: width + 2, height: high + 2 },
    svg("rect", { class: "all", x: 0, y: 0, width, height: high }), rectangle(buffer.run, "run"), rectangle(buffer.first, "first"), rectangle(buffer.second, "second")),
    h("figcaption", {}, `${buffer.name}: ${buffer.shape.join("x") || "1"}`, leading ? `; ${leading} outside` : ""));
}

// --- machine code and proof --------------------------------------------------------------------------------------

function codeTab(part, s) {
  const chosen = chosenLoop(part, s);
  const blocks = chosen ? new Set(blocksOf(chosen.node.body)) : null;
  const mine = (code) => !chosen || !code.path.length || (code.path.includes(chosen.node.name) && code.blocks.some((block) => blocks.has(block)));
  const codes = part.code.filter(mine);
  const cards = codes.map((code) => {
    const most = Math.max(...Object.values(code.pressure), 0.1);
    const bars = Object.entries(code.pressure).sort((a, b) => b[1] - a[1]).map(([name, cycles]) => h("div", { class: "bar" }, h("span", {}, name),
      h("div", { class: name === code.limit ? "limit" : "" }, h("i", { style: `width:${(100 * cycles / most).toFixed(1)}%` })), h("small", {}, cycles.toFixed(1))));
    const origins = code.origin ? h("p", {}, `Of ${code.origin}`) : "";
    return h("article", { class: "machine" }, h("h3", {}, `${code.number}${code.copies > 1 ? ` to ${code.number + code.copies - 1}` : ""}: ${code.label}`), origins,
      h("p", {}, h("b", {}, `${code.cycles.toFixed(1)} cycles`), code.seconds ? `, ${duration(code.seconds)} a launch` : " an iteration", `, bound by ${code.limit}`, code.percent === null ? "" : `, ${code.percent.toFixed(0)}% of the FMA peak`),
      h("div", { class: "bars" }, bars), h("pre", {}, code.details.join("\n")),
      code.text ? h("details", { open: codes.length === 1 }, h("summary", {}, "assembly"), h("pre", { class: "asm" }, code.text)) : "");
  });
  const none = codes.length || !part.code.length ? "" : h("p", { class: "note" }, "No innermost machine loop is of this loop: it is unrolled, or vectorized away.");
  return [loopChooser(part, s, "Loop "), h("p", { class: "note" }, part.code.some((code) => code.seconds)
    ? "Estimated cycles of a launch on the busiest multiprocessor, by term; the largest is the bound."
    : "Cycles of one iteration that each resource needs, all data in L1; the largest is the bound."), none, h("div", { class: "machines" }, cards)];
}
function proofTab(part) {
  const proof = part.proof;
  return [h("p", { class: `verdict ${proof.answer}` }, h("b", {}, proof.answer), proof.reason ? `: ${proof.reason}` : ""),
    h("p", { class: "note" }, "The scheduled loops are compared with the equations of the original by exact dataflow, over integers; rounding is not compared."),
    h("h3", {}, "Equations of the original"), h("pre", {}, proof.equations.join("\n")),
    h("h3", {}, `${proof.claims.length} claims`), table(["claim", "answer", "time"], proof.claims.map((q) => [q.text, answerOf(q), duration(q.seconds)]), "..n")];
}

// --- the page ----------------------------------------------------------------------------------------------------

const RENDERERS = { passes: passesTab, nest: nestTab, script: scriptTab, memory: memoryTab, code: codeTab, proof: proofTab };
const HAS = { nest: (p) => lastNest(p).length, script: (p) => p.steps.length, memory: (p) => Object.keys(p.memory).length,
  code: (p) => p.code.length, proof: (p) => p.proof, passes: (p) => p.stages.length };
async function render() {
  const s = state(), mine = ++shown, app = document.getElementById("app");
  document.documentElement.dataset.theme = s.theme || "";
  const number = Math.min(INDEX.parts.length - 1, Math.max(0, Number(s.part) || 0)), row = INDEX.parts[number];
  const nav = h("nav", { class: "parts" }, INDEX.parts.map((part, n) => button([h("b", {}, part.name), h("small", {}, part.facts.join("; "))],
    () => go({ part: n, stage: null, step: null, loop: null, value: null, place: null }), { class: part.refused ? "refused" : "", "aria-pressed": n === number })));
  const main = h("main", {}), scroll = scrollY, side = document.querySelector("nav.parts");
  const kept = side ? [side.scrollLeft, side.scrollTop] : [0, 0];
  if (!row.fits) main.append(h("p", { class: "note" }, "The data of this part are left out: the page would be too large. strata view --group NAME shows one group."));
  else {
    const part = await load(number);
    if (mine !== shown) return;
    const tab = Object.hasOwn(RENDERERS, s.tab || "") ? s.tab : row.refused ? "script" : part.proof && part.proof.answer !== "proved" ? "proof" : "passes";
    main.append(h("div", { class: "tabs", role: "tablist" }, Object.entries(TABS).map(([name, title]) =>
      button(title, () => go({ tab: name }), { role: "tab", "aria-selected": name === tab, class: HAS[name](part) ? "" : "idle" }))));
    if (part.notes[tab]) main.append(h("p", { class: "note" }, part.notes[tab]));
    if (HAS[tab](part)) main.append(...RENDERERS[tab](part, s).flat(Infinity).filter(Boolean));
  }
  app.replaceChildren(...(INDEX.parts.length > 1 ? [nav] : []), main);
  app.className = INDEX.parts.length > 1 ? "several" : "";
  [nav.scrollLeft, nav.scrollTop] = kept;
  for (const chosen of app.querySelectorAll(".tabs [aria-selected=true], .parts [aria-pressed=true]")) {
    const { parentElement: box, offsetLeft: left, offsetWidth: width } = chosen;
    if (left + width > box.offsetLeft + box.scrollLeft + box.clientWidth || left < box.offsetLeft + box.scrollLeft) box.scrollLeft = left - box.offsetLeft - 20;
  }
  scrollTo(0, scroll);
  const marks = [...app.querySelectorAll(".sides section:last-child :is(.v.defines, .v.uses, .line.here)"), ...app.querySelectorAll(".v.uses, .line.here")];
  const mark = lastStage !== `${number}/${s.stage}` && marks[0];
  if (mark) mark.scrollIntoView({ block: "center" });
  lastStage = `${number}/${s.stage}`;
}
const dark = () => (state().theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
document.querySelector("header").append(button("light or dark", () => go({ theme: dark() ? "light" : "dark" }), { class: "chip theme" }));
addEventListener("hashchange", render);
addEventListener("resize", () => { if (state().tab === undefined || state().tab === "passes") render(); });
addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || /SELECT|INPUT/.test(event.target.tagName)) return;
  const current = document.querySelector(".chips [aria-pressed=true], .step[aria-pressed=true]");
  const next = current && (by > 0 ? current.nextElementSibling : current.previousElementSibling);
  if (next) next.click();
});
render();
