"use strict";
// One page, one state. The server keeps files and runs; the page asks for them again when it is opened.

const $ = (id) => document.getElementById(id), isList = Array.isArray;
const state = { file: null, settings: null, suggestions: [], defaults: {}, advised: "", shown: null, looking: 0 };
const fields = [...$("reading").elements]; // how the table is read and prepared
const labels = Object.fromEntries(fields.map((field) => [field.name,
  [...field.labels[0].childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data.trim()).join("")]));

/** A message with the names that the page has for the options of the command line. */
const inWords = (message) => message.replace(/--([a-z0-9-]+)/g, (option, name) => {
  const label = labels[name.replaceAll("-", "_")];
  return label ? `\u201c${label}\u201d` : option;
});

function make(namespace, tag, attributes, children) {
  const made = document.createElementNS(namespace, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children); // text is text: names from the data are never markup
  return made;
}

const element = (tag, attributes = {}, ...children) => make("http://www.w3.org/1999/xhtml", tag, attributes, children);
const draw = (tag, attributes, ...children) => make("http://www.w3.org/2000/svg", tag, attributes, children);

/** Ask the server, with a body that is a file or becomes JSON. */
async function ask(path, body) {
  const content = body instanceof File || body === undefined ? body : JSON.stringify(body);
  const answer = await fetch(path, { method: body === undefined ? "GET" : "POST", body: content })
    .catch(() => { throw new Error("The app is not responding; is it still running?"); });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error || "The app refused this request.");
  return found;
}

/** Show the sentence of an error, or hide the place for it. */
function complain(id, error) {
  $(id).textContent = error ? inWords(error.message || error) : "";
  $(id).hidden = !error;
}

// --- 1. the file

const upload = (file) => ask(`files?name=${encodeURIComponent(file.name)}`, file);

async function drop(file) {
  const status = (text) => { $("drop-status").textContent = text; };
  try {
    status(`Copying ${file.name} ...`);
    const taken = await upload(file);
    Object.assign(state, { file: taken.file, settings: null });
    const megabytes = taken.size / 1e6;
    status(`${taken.name}, ${megabytes < 1 ? `${(1000 * megabytes).toFixed(1)} kB` : `${megabytes.toFixed(1)} MB`}`);
    await preview();
    location.hash = "understood";
  } catch (error) { status(inWords(error.message)); }
}

// --- 2. what was understood

async function preview() {
  const turn = ++state.looking;
  $("understood").hidden = false;
  $("preview-status").textContent = "Reading ...";
  const isNew = state.settings === null;
  const found = await ask("preview", { file: state.file, settings: state.settings }).catch((error) => ({ error }));
  if (turn !== state.looking) return;
  $("preview-status").textContent = "";
  complain("preview-error", found.error);
  for (const id of ["table", "choose"]) $(id).hidden = Boolean(found.error);
  if (!found.settings) return;
  state.settings = found.settings;
  if (isNew) {
    const { suggestions, defaults } = found;
    Object.assign(state, { suggestions, defaults, advised: JSON.stringify(state.settings) });
  }
  for (const field of fields) {
    const value = state.settings[field.name];
    if (field.type === "checkbox") field.checked = value;
    else field.value = isList(value) ? value.join(", ") : value ?? "";
  }
  if (found.error) return;
  showTable(found.table);
  showSuggestions();
  showChoices(found);
  showCommand();
}

/** Set fields of reading or preparing, and preview again. */
function change(settings) {
  Object.assign(state.settings, settings);
  preview();
}

function showTable(table) {
  $("facts").replaceChildren(...table.facts.map((fact) => element("span", {}, fact)));
  const head = element("tr", {}, element("th", {}, table.id_name),
    ...table.columns.map((name) => element("th", { title: name }, name)));
  const rows = table.cells.map((row, i) => element("tr", {}, element("th", { scope: "row" }, table.ids[i]),
    ...row.map((cell) => element("td", { class: cell === null && "missing" }, cell ?? "missing"))));
  $("preview").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
  showMissing(table);
  const dropped = state.settings.drop;
  fill("left-out", `${table.n_left_out} column${table.n_left_out === 1 ? "" : "s"} left out, and why`,
    table.left_out.map((line) => element("li", {}, line)));
  fill("used", `${table.n_features} columns used`, table.transposed ? [] : [
    ...table.features.map((name) => element("button", { type: "button",
      onclick: () => change({ drop: [...dropped, name] }) }, name)),
    ...dropped.map((name) => element("button", { type: "button", class: "dropped", title: "left out; click to use it",
      onclick: () => change({ drop: dropped.filter((one) => one !== name) }) }, name))]);
  $("notes").replaceChildren(...table.notes.map((note) => element("li", {}, note)));
}

function fill(id, title, children) {
  $(id).hidden = children.length === 0;
  $(id).querySelector("summary").textContent = title;
  $(id).querySelector(".names").replaceChildren(...children);
}

function showMissing({ means, shares }) {
  $("missing-figure").hidden = means.length === 0;
  if (!means.length) return;
  const [least, most] = [Math.min(...means), Math.max(...means)];
  const x = (value) => 45 + 365 * (most > least ? (value - least) / (most - least) : 0.5);
  const y = (share) => 195 - 180 * share;
  const parts = [0, 0.5, 1].flatMap((share) => [
    draw("line", { class: "axis", x1: 45, x2: 410, y1: y(share), y2: y(share) }),
    draw("text", { x: 38, y: y(share) + 4, "text-anchor": "end" }, `${100 * share}%`)]);
  means.forEach((mean, i) => parts.push(draw("circle", { cx: x(mean), cy: y(shares[i]), r: 3 })));
  parts.push(draw("text", { x: 45, y: 215 }, least.toPrecision(3)),
    draw("text", { x: 228, y: 215, "text-anchor": "middle" }, "mean of the feature"),
    draw("text", { x: 410, y: 215, "text-anchor": "end" }, most.toPrecision(3)));
  $("missing").replaceChildren(...parts);
}

function showSuggestions() {
  $("suggestions").hidden = state.suggestions.length === 0;
  $("suggestions").replaceChildren(element("legend", {}, "Suggested, with reasons"), ...state.suggestions.map(({ reason, changes }) => {
    const changed = Object.entries(changes), now = state.settings;
    const on = changed.every(([name, value]) =>
      isList(value) ? value.every((v) => now[name].includes(v)) : now[name] === value);
    const onchange = () => change(Object.fromEntries(changed.map(([name, value]) => {
      if (!isList(value)) return [name, on ? state.defaults[name] : value];
      const others = now[name].filter((v) => !value.includes(v)); // several suggestions may add to one list
      return [name, on ? others : [...others, ...value]];
    })));
    const title = changed.map(([name, value]) =>
      value === true ? labels[name] : `${labels[name]}: ${isList(value) ? value.join(", ") : value}`);
    return element("label", {}, element("input", { type: "checkbox", checked: on, onchange }), ` ${title.join("; ")}`,
      element("small", {}, inWords(reason)));
  }));
}

$("reading").addEventListener("change", ({ target: { name, type, checked, value } }) => {
  const text = value.trim(), several = text ? text.split(/\s*,\s*/) : [];
  change({ [name]: type === "checkbox" ? checked : isList(state.settings[name]) ? several : text || null });
});

// --- 3. choices

function showChoices(found) {
  for (const id of ["batch", "labels"]) {
    const kept = $(id).value;
    $(`${id}-label`).hidden = found.annotations.length === 0;
    $(id).replaceChildren(element("option", { value: "" }, "none"),
      ...found.annotations.map((one) => element("option", { value: one, selected: one === kept }, one)));
  }
}

function choices() {
  const advanced = [...$("advanced").querySelectorAll("input")];
  return { ...Object.fromEntries(advanced.map((input) => [input.name, input.value.trim()])),
    file: state.file, settings: state.settings, batch: $("batch").value, labels: $("labels").value,
    clusters: $("clusters").value.replace(/\s+/g, "").replace(/-|–|to/, ":"),
    as_is: JSON.stringify(state.settings) !== state.advised };
}

async function showCommand() {
  if (!state.file) return;
  const given = choices();
  const found = await ask("command", { ...given, clusters: given.clusters || "K" })
    .catch((error) => ({ command: inWords(error.message) }));
  $("command").textContent = found.command;
}

async function start(event) {
  event.preventDefault();
  complain("form-error", null);
  try {
    await show(await ask("runs", choices()));
    $("results").scrollIntoView();
  } catch (error) { complain("form-error", error); }
}

// --- 4. runs and results

function show(run) {
  location.hash = `run-${run.number}`;
  return follow();
}

let timer = null;
async function follow() {
  clearTimeout(timer);
  let runs = [];
  try { runs = await ask("runs"); } catch { timer = setTimeout(follow, 3000); return; }
  $("results").hidden = runs.length === 0;
  runs.forEach(line);
  state.shown = Number(location.hash.match(/^#run-(\d+)$/)?.[1] || state.shown);
  showResult(runs.find((run) => run.number === state.shown), runs);
  const busy = runs.some((run) => run.state === "running" || run.state === "waiting");
  timer = setTimeout(follow, busy ? 500 : 3000);
}

const lines = new Map(); // one per run: made anew only when its state changes, so that buttons stay where they are
function line(run) {
  let kept = lines.get(run.number);
  if (!kept || kept.state !== run.state) {
    const words = element("span"), detail = element("div", { class: "soft" }), bar = element("progress");
    const made = element("li", {}, element("a", { href: `#run-${run.number}` }, run.title), ", ", words, " ");
    const act = (word, path) => element("button", { type: "button",
      onclick: async () => { await ask(`runs/${run.number}/${path}`, {}); follow(); } }, word);
    if (run.state === "running" || run.state === "waiting") made.append(act("Stop", "stop"));
    if (run.state === "stopped") made.append(act("Continue", "resume"));
    if (run.state === "running") made.append(element("br"), bar, detail);
    if (run.state === "failed") made.append(element("p", { class: "problem" }, run.error || "The run failed."));
    if (kept) kept.made.replaceWith(made);
    else $("runs").append(made);
    kept = { state: run.state, made, words, detail, bar };
    lines.set(run.number, kept);
  }
  kept.words.textContent = words(run);
  kept.detail.textContent = run.line;
  const step = run.line.match(/(\d+)\/(\d+)/);
  if (step) Object.assign(kept.bar, { max: step[2], value: step[1] });
}

function words(run) {
  const time = run.line.match(/about \d+ s left/)?.[0] || `${Math.round(run.seconds)} s`;
  if (run.state === "running") return `running, ${time}`;
  if (run.state === "done") return run.verdict ? `done: ${run.verdict.toLowerCase()}` : "done.";
  return run.state;
}

const MAIN = { "report.html": "report", "labels.csv": "cluster of each row", "markers.csv": "features that differ",
  "centers.csv": "centres" };

let open = null;
function showResult(run, runs) {
  const ready = run && run.state === "done";
  $("result").hidden = !ready;
  if (!ready) { open = null; return; }
  if (open === run.number) return;
  open = run.number;
  const base = `runs/${run.number}`, report = run.files.includes("report.html");
  $("verdict").textContent = run.verdict || run.title;
  const link = (name, text, path) => element("a", { href: path, download: name }, text);
  const files = report ? Object.keys(MAIN) : run.files;
  $("downloads").replaceChildren("Download: ",
    ...files.map((name) => link(name, MAIN[name] || name, `${base}/files/${name}?download`)),
    ...(report ? [link(true, "everything (.zip)", `${base}/all.zip`)] : []));
  for (const id of ["actions", "report"]) $(id).hidden = !report;
  $("others").hidden = true;
  if (!report) return;
  $("report").src = `${base}/files/report.html`;
  showOthers(run, runs).catch(() => { $("others").hidden = true; });
  $("result").scrollIntoView();
}

/** The fits of this search and the other runs of the same table: which rows change sides? */
async function showOthers(run, runs) {
  const pageOf = (number) => ask(`runs/${number}/files/report.json`);
  const page = await pageOf(run.number), { ids, cluster } = page.embedding, fits = [];
  for (const flow of (page.flow || []).reverse()) { // k, then lam
    const what = flow.axis_name === "number of clusters" ? "k" : "lam";
    // Of a large table only a sample was fitted, whose rows cannot be matched.
    const every = flow.partitions[0].length === ids.length ? flow.partitions : [];
    every.forEach((labels, i) => fits.push({ name: `${what} = ${flow.names[i]}`, labels, chosen: i === flow.chosen }));
  }
  const others = runs.filter((one) => one.table === run.table && one !== run && one.files.includes("report.json"));
  for (const other of others) {
    const { embedding } = await pageOf(other.number), name = `run ${other.number}: ${other.title}`;
    if (String(embedding.ids) === String(ids)) fits.push({ name, labels: embedding.cluster });
  }
  if (open !== run.number) return;
  if (fits.length && !fits.some((fit) => fit.chosen)) {
    fits.unshift({ name: "this result", labels: cluster, chosen: true });
  }
  const show = (fit) => showFit(page.embedding, cluster, fit), first = fits.find((fit) => fit.chosen);
  $("others").hidden = fits.length === 0;
  const radio = (fit) => element("input", { type: "radio", name: "fit", checked: fit === first, onchange: () => show(fit) });
  $("fits").replaceChildren(element("legend", {}, "Compare with another fit"),
    ...fits.map((fit) => element("label", {}, radio(fit), ` ${fit.name}`)));
  if (first) show(first);
}

const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#888888"];

function showFit({ ids, x, y }, own, { name, labels }) {
  const named = matched(own, labels), moved = labels.map((label, i) => named.get(label) !== own[i]);
  const changed = ids.filter((_, i) => moved[i]);
  $("changed").textContent = changed.length === 0 ? `${name}: same clusters as this result.` :
    `${name}: ${changed.length} of ${ids.length} rows are in a different cluster from this result (ringed): ` +
    `${changed.slice(0, 12).join(", ")}${changed.length > 12 ? " ..." : ""}.`;
  const scale = (values, from, to) => {
    const least = Math.min(...values), span = Math.max(...values) - least || 1;
    return (value) => from + (to - from) * (value - least) / span;
  };
  const across = scale(x, 14, 626), up = scale(y, 386, 14);
  const every = Math.ceil(ids.length / 5000); // of many rows, some are drawn
  $("map").replaceChildren(...ids.map((id, i) => {
    if (i % every) return "";
    const cluster = named.get(labels[i]);
    const dot = draw("circle", { cx: across(x[i]), cy: up(y[i]), r: moved[i] ? 7 : 4, fill: COLORS[cluster % COLORS.length],
      class: moved[i] ? "moved" : "" });
    dot.append(draw("title", {}, moved[i] ? `${id}: cluster ${own[i]}, here ${cluster}` : `${id}: cluster ${cluster}`));
    return dot;
  }));
}

/** The other fit's clusters by the name of the own cluster they share most rows with; those left over get new numbers. */
function matched(own, labels) {
  const shared = new Map();
  labels.forEach((label, i) => { const key = `${label} ${own[i]}`; shared.set(key, (shared.get(key) || 0) + 1); });
  const named = new Map(), taken = new Set();
  for (const [key] of [...shared].sort((a, b) => b[1] - a[1])) {
    const [label, cluster] = key.split(" ").map(Number);
    if (!named.has(label) && !taken.has(cluster)) { named.set(label, cluster); taken.add(cluster); }
  }
  let next = Math.max(...own) + 1;
  for (const label of new Set(labels)) if (!named.has(label)) named.set(label, next++);
  return named;
}

/** Use the model of the result for a file, or without one for the file it was made from. */
async function apply(verb, file) {
  complain("apply-error", null);
  try {
    show(await ask(`runs/${open}/apply`, { verb, file: file ? (await upload(file)).file : null }));
  } catch (error) { complain("apply-error", error); }
}

// --- wiring

const zone = $("zone");
for (const name of ["dragenter", "dragover", "dragleave", "drop"]) zone.addEventListener(name, (event) => {
  event.preventDefault();
  zone.classList.toggle("over", name === "dragenter" || name === "dragover");
});
const take = (file) => { if (file) drop(file); };
zone.addEventListener("drop", (event) => take(event.dataTransfer.files[0]));
$("file").addEventListener("change", (event) => take(event.target.files[0]));
$("form").addEventListener("submit", start);
$("form").addEventListener("change", showCommand);
$("clusters").addEventListener("input", showCommand);
$("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText($("command").textContent);
  $("copy").textContent = "Copied";
});
$("fill").addEventListener("click", () => apply("impute", null));
$("second").addEventListener("change", (event) => { if (event.target.files[0]) apply("predict", event.target.files[0]); });
window.addEventListener("hashchange", follow);
follow();
