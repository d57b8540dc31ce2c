"use strict";
// One page, one state. The server keeps files and runs; the page asks for them again when it is opened.

const $ = (id) => document.getElementById(id);
const state = { file: null, options: null, preparation: null, suggestions: [], advised: "", shown: null, looking: 0 };

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children); // text is text: names from the data are never markup
  return made;
}

async function ask(path, body) {
  const options = body === undefined ? {} :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error || "The app did not answer; is it still running?");
  return found;
}

// --- 1. the file

async function upload(file, status) {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest(); // tells how much has been sent
    request.open("POST", `files?name=${encodeURIComponent(file.name)}`);
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) status(`Copying ${file.name}: ${Math.round(100 * event.loaded / event.total)} %`);
    };
    request.onload = () => {
      let found = {};
      try { found = JSON.parse(request.responseText); } catch { /* told below */ }
      if (request.status === 200) done(found);
      else fail(new Error(found.error || "The file was not taken."));
    };
    request.onerror = () => fail(new Error("The app does not answer; is it still running?"));
    request.send(file);
  });
}

async function drop(file) {
  const status = (text) => { $("drop-status").textContent = text; };
  try {
    const taken = await upload(file, status);
    Object.assign(state, { file: taken.file, options: null, preparation: null });
    status(`${taken.name}, ${readable(taken.size)}`);
    await look();
    location.hash = "understood";
  } catch (error) { status(error.message); }
}

function readable(bytes) {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

// --- 2. what was understood

async function look() {
  const turn = ++state.looking;
  $("understood").hidden = false;
  $("look-status").textContent = "Reading ...";
  let found;
  try {
    found = await ask("look", { file: state.file, options: state.options, preparation: state.preparation });
  } catch (error) { found = { error: error.message }; }
  if (turn !== state.looking) return;
  $("look-status").textContent = "";
  $("look-error").textContent = found.error || "";
  for (const id of ["table", "choose"]) $(id).hidden = Boolean(found.error);
  $("look-error").hidden = !found.error;
  if (!found.controls) return;
  Object.assign(state, { options: found.options, preparation: found.preparation });
  if (found.suggestions || found.error) Object.assign(state, { suggestions: found.suggestions || [], advised: settings() });
  showReading(found);
  if (found.error) return;
  showTable(found.table);
  showSuggestions();
  showChoices(found);
  showCommand();
}

const settings = () => JSON.stringify([state.options, state.preparation]);

function showTable(table) {
  $("facts").replaceChildren(...table.facts.map((fact) => element("span", {}, fact)));
  const head = element("tr", {}, element("th", {}, table.id_name || ""), ...table.columns.map((c) => element("th", { title: c }, c)));
  const rows = table.cells.map((row, i) => element("tr", {}, element("th", { scope: "row" }, table.ids[i]),
    ...row.map((cell) => element("td", cell === null ? { class: "missing" } : {}, cell === null ? "missing" : cell))));
  $("preview").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
  showMissing(table.missing);
  list($("left-out"), `${table.n_left_out} column${table.n_left_out === 1 ? "" : "s"} left out, and why`,
    table.left_out.map(([name, reason]) => `${name}: ${reason}`));
  $("used").hidden = table.transposed || table.features.length === 0;
  $("used").querySelector("summary").textContent = `${table.n_features} columns used`;
  $("used").querySelector(".names").replaceChildren(...table.features.map((name) => element("button", {
    type: "button", onclick: () => change({ drop: [...state.options.drop, name] }) }, name)));
  $("notes").replaceChildren(...table.notes.map((note) => element("li", {}, note)));
}

function list(details, title, lines) {
  details.hidden = lines.length === 0;
  details.querySelector("summary").textContent = title;
  details.querySelector("ul").replaceChildren(...lines.map((line) => element("li", {}, line)));
}

function draw(tag, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

function showMissing({ means, shares }) {
  $("missing-figure").hidden = means.length === 0;
  if (!means.length) return;
  const [least, most] = [Math.min(...means), Math.max(...means)];
  const x = (value) => 45 + 365 * (most > least ? (value - least) / (most - least) : 0.5);
  const y = (share) => 195 - 180 * share;
  const parts = [0, 0.5, 1].flatMap((share) => [
    draw("line", { class: "axis", x1: 45, x2: 410, y1: y(share), y2: y(share) }),
    draw("text", { x: 38, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`)]);
  means.forEach((mean, i) => parts.push(draw("circle", { cx: x(mean), cy: y(shares[i]), r: 3 })));
  parts.push(draw("text", { x: 45, y: 215 }, least.toPrecision(3)),
    draw("text", { x: 228, y: 215, "text-anchor": "middle" }, "average of the feature"),
    draw("text", { x: 410, y: 215, "text-anchor": "end" }, most.toPrecision(3)));
  $("missing").replaceChildren(...parts);
}

function showSuggestions() {
  const box = $("suggestions");
  box.hidden = state.suggestions.length === 0;
  box.replaceChildren(element("legend", {}, "Suggested, with reasons"), ...state.suggestions.map((one) => {
    const current = { ...state.options, ...state.preparation };
    const on = Object.entries(one.fields).every(([name, value]) => JSON.stringify(current[name]) === JSON.stringify(value));
    const tick = element("input", { type: "checkbox", checked: on, onchange: (event) => {
      change(event.target.checked ? one.fields : one.defaults);
    } });
    return element("label", {}, tick, ` ${one.title}`, element("small", {}, one.reason));
  }));
}

/** Set fields of reading or preparing, and look again. */
function change(fields) {
  for (const [name, value] of Object.entries(fields)) {
    if (name in state.options) state.options[name] = value;
    else state.preparation[name] = value;
  }
  look();
}

function control(definition, value, onchange) {
  const { name, label, help, choices, kind } = definition;
  let input;
  if (kind === "check") {
    input = element("input", { type: "checkbox", checked: Boolean(value), onchange: () => onchange(input.checked) });
    return element("label", {}, input, ` ${label}`, element("small", {}, help));
  }
  if (choices) {
    input = element("select", { onchange: () => onchange(input.value === "" ? null : input.value) },
      ...choices.map(([text, shown]) => element("option", { value: text, selected: String(value ?? "") === text }, shown)));
  } else {
    input = element("input", { value: Array.isArray(value) ? value.join(", ") : value ?? "", autocomplete: "off",
      onchange: () => onchange(input.value.trim() === "" ? null : input.value.trim()) });
  }
  if (name) input.dataset.name = name;
  return element("label", {}, label, input, element("small", {}, help));
}

function showReading(found) {
  const current = { ...state.options, ...state.preparation };
  $("reading").replaceChildren(...found.controls.map((definition) => control(definition, current[definition.name],
    (value) => change({ [definition.name]: definition.several ? (value ? value.split(/\s*,\s*/) : []) : value }))));
}

// --- 3. choices

function showChoices(found) {
  for (const name of ["batch", "group"]) {
    const kept = $(name).value;
    $(`${name}-label`).hidden = found.annotations.length === 0;
    $(name).replaceChildren(element("option", { value: "" }, "none"),
      ...found.annotations.map((one) => element("option", { value: one, selected: one === kept }, one)));
  }
  if (!$("advanced").children.length) {
    $("advanced").replaceChildren(...found.advanced.map((definition) => control(definition, definition.value, showCommand)));
  }
}

function choices() {
  const advanced = {};
  for (const input of $("advanced").querySelectorAll("[data-name]")) advanced[input.dataset.name] = input.value.trim();
  const clusters = $("clusters").value.replace(/\s+/g, "").replace(/-|–|to/, ":");
  return { file: state.file, options: state.options, preparation: state.preparation, clusters,
    batch: $("batch").value, group: $("group").value, advanced, as_is: settings() !== state.advised };
}

async function showCommand() {
  if (!state.file) return;
  const given = choices();
  try {
    const found = await ask("command", { ...given, clusters: given.clusters || "K" });
    $("command").textContent = found.command;
  } catch (error) { $("command").textContent = error.message; }
}

async function start(event) {
  event.preventDefault();
  $("form-error").hidden = true;
  try {
    const run = await ask("runs", choices());
    state.shown = run.number;
    location.hash = `run-${run.number}`;
    await follow();
    $("results").scrollIntoView();
  } catch (error) {
    $("form-error").textContent = error.message;
    $("form-error").hidden = false;
  }
}

// --- 4. runs and results

let timer = null;
async function follow() {
  clearTimeout(timer);
  let runs = [];
  try { runs = await ask("runs"); } catch { timer = setTimeout(follow, 3000); return; }
  $("results").hidden = runs.length === 0;
  runs.forEach(line);
  const number = Number(location.hash.match(/^#run-(\d+)$/)?.[1] || state.shown);
  showResult(runs.find((run) => run.number === number), runs);
  const busy = runs.some((run) => run.state === "running" || run.state === "waiting");
  timer = setTimeout(follow, busy ? 500 : 3000);
}

const lines = new Map(); // one per run: made anew only when its state changes, so that buttons stay where they are
function line(run) {
  let kept = lines.get(run.number);
  if (!kept || kept.state !== run.state) {
    const words = element("span"), detail = element("div", { class: "soft" }), bar = element("progress");
    const made = element("li", {}, element("a", { href: `#run-${run.number}` }, run.title), ", ", words, " ");
    const act = (word, path) => element("button", { type: "button", onclick: async () => { await ask(path, {}); follow(); } }, word);
    if (run.state === "running" || run.state === "waiting") made.append(act("Stop", `runs/${run.number}/stop`));
    if (run.state === "stopped") made.append(act("Continue", `runs/${run.number}/continue`));
    if (run.state === "running") made.append(element("br"), bar, detail);
    if (run.state === "failed") made.append(element("p", { class: "problem" }, run.error || "It failed."));
    if (kept) kept.made.replaceWith(made);
    else $("runs").append(made);
    kept = { state: run.state, made, words, detail, bar };
    lines.set(run.number, kept);
  }
  kept.words.textContent = words(run);
  kept.detail.textContent = run.line;
  if (run.total) Object.assign(kept.bar, { max: run.total, value: run.done });
}

function words(run) {
  if (run.state === "running") return run.left === null ? `running, ${Math.round(run.seconds)} s` : `running, about ${run.left} s left`;
  if (run.state === "done") return run.verdict ? `done: ${run.verdict.toLowerCase()}` : "done.";
  return run.state;
}

const MAIN = { "report.html": "report", "labels.csv": "cluster of each row", "markers.csv": "features that differ", "centers.csv": "centres" };

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
  $("downloads").replaceChildren("Download: ", ...files.map((name) => link(name, MAIN[name] || name, `${base}/files/${name}?download`)),
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
    const every = flow.labels?.[0].length === ids.length ? flow.labels : []; // of a large table only a sample was fitted
    every.forEach((labels, i) => fits.push({ name: `${what} = ${flow.names[i]}`, labels, chosen: i === flow.chosen }));
  }
  for (const other of runs.filter((one) => one.table === run.table && one.number !== run.number && one.files.includes("report.json"))) {
    const { embedding } = await pageOf(other.number);
    if (String(embedding.ids) === String(ids)) fits.push({ name: `run ${other.number}: ${other.title}`, labels: embedding.cluster });
  }
  if (open !== run.number) return;
  if (fits.length && !fits.some((fit) => fit.chosen)) fits.unshift({ name: "this result", labels: cluster, chosen: true });
  const show = (fit) => showFit(page.embedding, cluster, fit);
  $("others").hidden = fits.length === 0;
  $("fits").replaceChildren(element("legend", {}, "Move along the fits"), ...fits.map((fit) => element("label", {},
    element("input", { type: "radio", name: "fit", checked: Boolean(fit.chosen), onchange: () => show(fit) }), ` ${fit.name}`)));
  if (fits.length) show(fits.find((fit) => fit.chosen));
}

const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#888888"];

function showFit({ ids, x, y }, own, { name, labels }) {
  const named = matched(own, labels), moved = labels.map((label, i) => named.get(label) !== own[i]);
  const changed = ids.filter((_, i) => moved[i]);
  $("changed").textContent = `${name}: ${changed.length} of ${ids.length} rows are in another cluster than in this result` +
    (changed.length ? ` (ringed): ${changed.slice(0, 12).join(", ")}${changed.length > 12 ? " ..." : ""}` : "") + ".";
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

async function apply(verb, file) {
  const run = await ask(`runs/${open}/apply`, { verb, file });
  state.shown = run.number;
  location.hash = `run-${run.number}`;
  follow();
}

// --- wiring

const zone = $("zone");
for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.add("over"); });
for (const name of ["dragleave", "drop"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.remove("over"); });
zone.addEventListener("drop", (event) => { if (event.dataTransfer.files[0]) drop(event.dataTransfer.files[0]); });
$("file").addEventListener("change", (event) => { if (event.target.files[0]) drop(event.target.files[0]); });
$("form").addEventListener("submit", start);
$("form").addEventListener("change", showCommand);
$("clusters").addEventListener("input", showCommand);
$("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText($("command").textContent);
  $("copy").textContent = "Copied";
});
$("fill").addEventListener("click", () => apply("impute", null).catch((error) => alert(error.message)));
$("second").addEventListener("change", async (event) => {
  const file = event.target.files[0];
  if (!file) return;
  try { await apply("predict", (await upload(file, () => {})).file); } catch (error) { alert(error.message); }
});
window.addEventListener("hashchange", follow);
follow();
