"use strict";
// One page, one state. The server keeps files and runs; the page asks for them again when it is opened.

const $ = (id) => document.getElementById(id), isList = Array.isArray;
const state = { file: null, settings: null, suggestions: [], advised: "", shown: null, looking: 0 };

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
  $(id).textContent = error ? error.message || error : "";
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
  } catch (error) { status(error.message); }
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
  if (isNew) Object.assign(state, { suggestions: found.suggestions, advised: JSON.stringify(state.settings) });
  $("reading").replaceChildren(...found.controls.map((one) => control(one, state.settings[one.name],
    (value) => change({ [one.name]: one.several ? (value ? value.split(/\s*,\s*/) : []) : value }))));
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

function showSuggestions() {
  $("suggestions").hidden = state.suggestions.length === 0;
  $("suggestions").replaceChildren(element("legend", {}, "Suggested, with reasons"), ...state.suggestions.map((one) => {
    const changes = Object.entries(one.changes), now = state.settings;
    const on = changes.every(([name, value]) =>
      isList(value) ? value.every((v) => now[name].includes(v)) : now[name] === value);
    const onchange = () => change(Object.fromEntries(changes.map(([name, value]) => {
      if (!isList(value)) return [name, on ? one.defaults[name] : value];
      const others = now[name].filter((v) => !value.includes(v)); // several suggestions may add to one list
      return [name, on ? others : [...others, ...value]];
    })));
    return element("label", {}, element("input", { type: "checkbox", checked: on, onchange }), ` ${one.title}`,
      element("small", {}, one.reason));
  }));
}

function control({ name, label, help, choices, kind }, value, onchange) {
  const small = element("small", {}, help), attributes = { "data-name": name };
  if (kind === "check") {
    const box = element("input", { type: "checkbox", checked: Boolean(value), onchange: () => onchange(box.checked) });
    return element("label", {}, box, ` ${label}`, small);
  }
  attributes.onchange = () => onchange(input.value.trim() || null);
  const input = choices
    ? element("select", attributes, ...choices.map(([text, shown]) =>
      element("option", { value: text, selected: (value ?? "") === text }, shown)))
    : element("input", { ...attributes, value: isList(value) ? value.join(", ") : value ?? "", autocomplete: "off" });
  return element("label", {}, label, input, small);
}

// --- 3. choices

function showChoices(found) {
  for (const id of ["batch", "labels"]) {
    const kept = $(id).value;
    $(`${id}-label`).hidden = found.annotations.length === 0;
    $(id).replaceChildren(element("option", { value: "" }, "none"),
      ...found.annotations.map((one) => element("option", { value: one, selected: one === kept }, one)));
  }
  if ($("advanced").children.length) return;
  $("advanced").replaceChildren(...found.advanced.map((one) => control(one, one.value, showCommand)));
}

function choices() {
  const inputs = [...$("advanced").querySelectorAll("[data-name]")];
  return { ...Object.fromEntries(inputs.map((input) => [input.dataset.name, input.value.trim()])),
    file: state.file, settings: state.settings, batch: $("batch").value, labels: $("labels").value,
    clusters: $("clusters").value.replace(/\s+/g, "").replace(/-|–|to/, ":"),
    as_is: JSON.stringify(state.settings) !== state.advised };
}

async function showCommand() {
  if (!state.file) return;
  const given = choices();
  const found = await ask("command", { ...given, clusters: given.clusters || "K" })
    .catch((error) => ({ command: error.message }));
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
  showResult(runs.find((run) => run.number === state.shown));
  const busy = runs.some((run) => run.state === "running" || run.state === "waiting");
  timer = setTimeout(follow, busy ? 500 : 3000);
}

const lines = new Map(); // one per run: made anew only when its state changes, so that buttons stay where they are
function line(run) {
  let kept = lines.get(run.number);
  if (!kept || kept.state !== run.state) {
    const words = element("span"), detail = element("div", { class: "soft" }), bar = element("progress");
    const made = element("li", {}, element("a", { href: `#run-${run.number}` }, run.title), ", ", words, " ");
    const stop = async () => { await ask(`runs/${run.number}/stop`, {}); follow(); };
    if (run.state === "running" || run.state === "waiting") {
      made.append(element("button", { type: "button", onclick: stop }, "Stop"));
    }
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
function showResult(run) {
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
  if (!report) return;
  $("report").src = `${base}/files/report.html`;
  $("result").scrollIntoView();
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
