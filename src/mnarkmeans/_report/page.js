"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent), root = document.documentElement;
  const byId = (id) => document.getElementById(id), all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const fixed = (value) => +value.toFixed(2);
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  let tones = {};  // of the clusters, until the ground changes
  const toneName = (cluster) => `--c${cluster % data.colors}`;
  const shade = (cluster) => tones[cluster] ||= css(toneName(cluster));
  const show = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value), raised = (power) => [...power].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] || "⁻").join("");
    if (size >= 1e9 || (size > 0 && size < 1e-4)) return (+value).toExponential(2).replace(/(.+)e\+?(.+)/, (_, front, power) => `${+front} × 10${raised(power)}`);
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(+(+value).toPrecision(4));
  };
  const percent = (share) => share === null ? "–" : `${+(100 * share).toPrecision(3)}%`;
  const brief = (name, most) => name.length <= most ? name : `${name.slice(0, most - most / 2 - 1)}…${name.slice(-most / 2)}`;
  const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
  const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  const element = (tag, properties, ...children) => {  // text is text: names from the data are never markup
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // A canvas as sharp as the screen; returns its size in CSS pixels.
  function sharpen(canvas, height = canvas.clientHeight) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, pen = canvas.getContext("2d");
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return { pen, width, height };
  }

  // ---- the rows -------------------------------------------------------------------------------
  const points = data.embedding, map = byId("map"), tip = byId("tip"), spoken = byId("spoken");
  const chosen = byId("shade"), fade = byId("fade"), noted = data.annotations || [], hidden = {};
  let placed = null, current = -1, order = null;

  // A ramp from blue over grey to orange, readable on light and dark ground.
  function ramp(t) {
    const [from, to] = t < 0.5 ? [[0, 114, 178], [153, 153, 153]] : [[153, 153, 153], [213, 94, 0]], s = t < 0.5 ? 2 * t : 2 * t - 1;
    return `rgb(${from.map((v, i) => Math.round(v + (to[i] - v) * s))})`;
  }
  const STEPS = 12;
  // What the rows are coloured by: a key per row, a colour and a name per key.
  function coloring() {
    const by = chosen.value, note = noted[+by];
    if (by === "cluster") return { key: (i) => points.cluster[i], color: shade, groups: null };
    const numbers = note ? note.values : points[by], known = (numbers || []).filter((v) => v !== null);
    if (!numbers) {
      return { key: (i) => note.codes[i], color: (key) => key < 0 ? css("--gapline") : shade(key), groups: note.groups.map((name, g) => [g, name]) };
    }
    const [low, high] = note ? [least(known), most(known)] : [0, 1];
    return {
      key: (i) => numbers[i] === null ? -1 : Math.min(STEPS - 1, Math.floor((numbers[i] - low) / (high - low || 1) * STEPS)),
      color: (key) => key < 0 ? css("--gapline") : ramp(key / (STEPS - 1)),
      scale: true, groups: [[0, show(low)], [STEPS - 1, show(high)]]
    };
  }
  // Shapes beside the colours, where groups and rows are few enough to tell them apart.
  const SHAPES = ["", "s-square", "s-up", "s-diamond", "s-down", "s-plus"];
  const CORNERS = [null, [-1, -1, 1, -1, 1, 1, -1, 1], [0, -1.2, 1.2, 1, -1.2, 1], [0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0],
    [-1.2, -1, 1.2, -1, 0, 1.2], [-0.4, -1.2, 0.4, -1.2, 0.4, -0.4, 1.2, -0.4, 1.2, 0.4, 0.4, 0.4, 0.4, 1.2, -0.4, 1.2, -0.4, 0.4, -1.2, 0.4, -1.2, -0.4, -0.4, -0.4]];
  const FEW_ROWS = 2000, FEW_NAMES = 60;
  const symbols = (coloured) => !coloured.scale && (coloured.groups || data.clusters).length <= SHAPES.length && points.x.length <= FEW_ROWS;
  function symbol(pen, shape, x, y, r) {
    const corners = CORNERS[shape];
    if (!corners) { pen.moveTo(x + r, y); pen.arc(x, y, r, 0, 6.2832); return; }
    for (let i = 0; i < corners.length; i += 2) pen[i ? "lineTo" : "moveTo"](x + r * corners[i], y + r * corners[i + 1]);
    pen.closePath();
  }
  function paintGroups(coloured) {
    const shaped = symbols(coloured), groups = byId("groups");
    all("#legend .swatch").forEach((dot, g) => { dot.className = `swatch ${shaped && !coloured.groups ? SHAPES[g] : ""}`; });
    groups.hidden = !coloured.groups;
    groups.replaceChildren(...(coloured.groups || []).map(([key, name]) => {
      const dot = element("span", { className: `swatch ${shaped ? SHAPES[key] : ""}` });
      dot.style.background = coloured.color(key);
      return element("li", { className: "soft" }, dot, ` ${name}`);
    }));
  }
  for (const control of [chosen, fade]) control.addEventListener("change", () => { paintGroups(coloring()); draw(); });

  function place() {
    const area = sharpen(map), pad = 26;
    const scale = (values, from, to) => {
      const low = least(values), span = most(values) - low || 1;
      return values.map((v) => from + (v - low) / span * (to - from));
    };
    placed = { area, px: scale(points.x, pad, area.width - pad), py: scale(points.y, area.height - pad, pad),
      r: Math.max(1.4, Math.min(5, 90 / Math.sqrt(points.x.length))) };
  }

  function paint(pen) {
    const n = points.x.length, { r, px, py, area } = placed, coloured = coloring(), shaped = symbols(coloured);
    const full = n > 5000 ? 0.6 : 0.85, LEVELS = [0.14, 0.22, 0.45, 1], groups = {};
    for (let i = 0; i < n; i++) {
      if (hidden[points.cluster[i]]) continue;
      // Faint where the cluster is unsure; sure rows are drawn last, on top.
      const level = fade.checked && points.confidence[i] !== null ? Math.min(3, Math.floor(points.confidence[i] * 4)) : 3;
      (groups[`${level}:${coloured.key(i)}`] ||= []).push(i);
    }
    for (const name of Object.keys(groups).sort()) {
      const [level, key] = name.split(":").map(Number);
      pen.globalAlpha = full * LEVELS[level];
      pen.fillStyle = coloured.color(key);
      pen.beginPath();
      for (const j of groups[name]) {
        if (n > 8000) pen.rect(px[j] - r, py[j] - r, 2 * r, 2 * r);
        else symbol(pen, shaped ? Math.max(key, 0) : 0, px[j], py[j], r);
      }
      pen.fill();
    }
    pen.globalAlpha = 1;
    pen.fillStyle = css("--soft"); pen.font = `12px ${css("--font")}`;
    const [across, up] = points.axis_names.map((name, a) => points.explained ? `${name} (${percent(points.explained[a])})` : name);
    pen.textAlign = "right"; pen.fillText(`${across} →`, area.width - 10, area.height - 9);
    pen.textAlign = "left"; pen.fillText(`↑ ${up}`, 10, 17);
    if (n <= FEW_NAMES) paintNames(pen);
  }

  // The ids beside their points, but none on top of another or of a point.
  function paintNames(pen) {
    const { r, px, py, area } = placed, taken = [];
    pen.font = `11px ${css("--font")}`; pen.fillStyle = css("--soft");
    points.ids.forEach((id, i) => {
      const text = brief(id, 24), y = py[i] + 4, wide = 6.2 * text.length;
      const x = px[i] + r + 4 + wide > area.width ? px[i] - r - 4 - wide : px[i] + r + 4;
      const free = taken.every((t) => x > t[0] + t[2] || t[0] > x + wide || Math.abs(y - t[1]) > 11) &&
        px.every((a, j) => hidden[points.cluster[j]] || a + r < x || a - r > x + wide || Math.abs(py[j] - y + 4) > r + 5);
      if (hidden[points.cluster[i]] || !free || x < 0) return;
      taken.push([x, y, wide]);
      pen.fillText(text, x, y);
    });
  }

  function draw() {
    if (!placed) place();
    const { pen, width, height } = placed.area;
    pen.clearRect(0, 0, width, height);
    paint(pen);
    if (current < 0) return;
    pen.strokeStyle = css("--ink"); pen.lineWidth = 2;
    pen.beginPath(); pen.arc(placed.px[current], placed.py[current], placed.r + 4, 0, 6.2832); pen.stroke();
  }

  function choose(i) {
    if (i === current) return;
    current = i;
    draw();
    tip.hidden = i < 0;
    if (i < 0) return;
    const texts = [`cluster ${points.cluster[i]}`, `distance ${show(points.distance[i])}`, `${percent(points.missing[i])} missing`];
    if (points.confidence[i] !== null) texts.splice(1, 0, `confidence ${show(points.confidence[i])}`);
    for (const note of noted) {
      if (note.codes[i] >= 0) texts.push(`${note.name} ${note.values ? show(note.values[i]) : note.groups[note.codes[i]]}`);
    }
    const text = texts.join(" · "), beside = (at, size, room) => at + 14 + size > room ? Math.max(0, at - size - 14) : at + 14;
    tip.replaceChildren(element("b", {}, points.ids[i]), text);
    tip.style.left = `${beside(placed.px[i], tip.offsetWidth, placed.area.width)}px`;
    tip.style.top = `${beside(placed.py[i], tip.offsetHeight, placed.area.height)}px`;
    spoken.textContent = `${points.ids[i]}: ${text}`;
  }

  function nearest(x, y) {
    let best = -1, closest = 18 * 18;
    for (let i = 0; i < points.x.length; i++) {
      const d = (placed.px[i] - x) ** 2 + (placed.py[i] - y) ** 2;
      if (d < closest && !hidden[points.cluster[i]]) { closest = d; best = i; }
    }
    return best;
  }

  map.addEventListener("pointermove", (event) => choose(nearest(event.offsetX, event.offsetY)));
  map.addEventListener("pointerleave", () => choose(-1));
  map.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") choose(-1);
    if (!step) return;
    event.preventDefault();
    order ||= [...points.x.keys()].sort((i, j) => points.x[i] - points.x[j]);
    let at = order.indexOf(current), tries = order.length;
    if (at < 0 && step < 0) at = 0;
    do { at = (at + step + order.length) % order.length; } while (hidden[points.cluster[order[at]]] && --tries);
    choose(order[at]);
  });
  byId("find").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase(), find = (fits) => points.ids.findIndex((id) => fits(id.toLowerCase()));
    const exact = find((id) => id === wanted), i = !wanted || exact >= 0 ? exact : find((id) => id.includes(wanted));
    choose(wanted ? i : -1);
    if (wanted && i < 0) spoken.textContent = "No row has this id.";
  });
  for (const { cluster, rows } of data.clusters) {
    const dot = element("span", { className: "swatch" });
    dot.style.background = `var(${toneName(cluster)})`;
    const button = element("button", { type: "button", ariaPressed: "true", onclick: () => {
      hidden[cluster] = !hidden[cluster];
      button.ariaPressed = String(!hidden[cluster]);
      current = -1; tip.hidden = true; draw();
    } }, dot, `${cluster} (${rows.toLocaleString("en")})`);
    byId("legend").append(element("li", {}, button));
  }

  // ---- the centres, and the table sorted by cluster -----------------------------------------------
  const sorted = data.rows_by_cluster, sheet = byId("sorted"), strip = 10, origin = byId("origin");
  // Distances from the reference or the mean, -1 to 1, each feature on its own scale; null: missing.
  function levels() {
    const from = centers[origin.value], p = sorted.features.length;
    const apart = sorted.values.map((value, i) => value === null ? null : value - from[i % p]);
    const tops = from.map((_, j) => {  // without the furthest 2%, which would bleach the others
      const known = apart.filter((v, i) => v !== null && i % p === j).map(Math.abs).sort((a, b) => a - b);
      return known[Math.floor(0.98 * (known.length - 1))] || 1;
    });
    return apart.map((v, i) => v === null ? null : Math.max(-1, Math.min(1, v / tops[i % p])));
  }
  function tone(t) {  // -1..1, 0 at the reference or the mean
    const end = t >= 0 ? [178, 24, 43] : [33, 102, 172], s = Math.abs(t) ** 0.8;
    return `rgb(${end.map((v) => Math.round(247 + (v - 247) * s))})`;
  }
  origin.addEventListener("change", () => { drawHeat(); drawSheet(); });

  // A cell of the centres is coloured as far as its cluster observed the feature.
  const heat = byId("heat"), centers = data.centers, LINE = 19, HEAD = 40;
  function heatPlan() {
    const k = centers.centers.length, p = centers.features.length, room = heat.parentNode.clientWidth;
    const label = 14 + 7 * most(centers.features.map((name) => Math.min(name.length, 20)));
    const panels = p > 24 && room >= 2 * (label + 36 * k) + 30 ? 2 : 1, rows = Math.ceil(p / panels);
    const cell = Math.max(20, Math.min(66, ((room - 30 * (panels - 1)) / panels - label) / k)), panel = label + k * cell + 30;
    return { k, p, label, cell, rows, panel, width: panels * panel - 30, height: HEAD + LINE * rows + 4 };
  }
  function drawHeat() {
    const plan = heatPlan();
    heat.style.width = `${plan.width}px`; heat.style.height = `${plan.height}px`;
    paintHeat(sharpen(heat, plan.height).pen, plan);
  }
  function paintHeat(pen, plan) {
    const from = centers[origin.value], apart = centers.centers.map((center) => center.map((v, j) => v - from[j]));
    const top = most(apart.flat().map(Math.abs));
    for (let j = 0; j < plan.p; j++) {
      const x = Math.floor(j / plan.rows) * plan.panel, y = HEAD + j % plan.rows * LINE;
      pen.font = `12px ${css("--font")}`;
      pen.textAlign = "center";
      for (let i = 0; i < plan.k && j % plan.rows === 0; i++) {  // the heads of a panel
        const size = String(centers.sizes[i]), middle = x + plan.label + (i + 0.5) * plan.cell;
        pen.fillStyle = css("--ink"); pen.fillText(String(i), middle, 16);
        pen.fillStyle = css("--soft"); if (plan.cell > 6.5 * size.length) pen.fillText(size, middle, 31);
      }
      pen.textAlign = "right"; pen.fillStyle = css("--soft");
      pen.fillText(brief(centers.features[j], 20), x + plan.label - 6, y + 13);
      for (let i = 0; i < plan.k; i++) {
        const missing = centers.missing[i][j] ?? 1, wide = plan.cell - 2, left = x + plan.label + i * plan.cell;
        pen.fillStyle = css("--gapcell"); pen.fillRect(left, y, wide, LINE - 2);
        pen.fillStyle = tone(apart[i][j] / (top || 1)); pen.fillRect(left, y, wide * (1 - missing), LINE - 2);
      }
    }
    pen.textAlign = "left";
  }
  heat.addEventListener("pointermove", (event) => {
    const plan = heatPlan(), panel = Math.floor(event.offsetX / plan.panel), line = Math.floor((event.offsetY - HEAD) / LINE);
    const i = Math.floor((event.offsetX - panel * plan.panel - plan.label) / plan.cell), j = panel * plan.rows + line;
    if (i < 0 || i >= plan.k || line < 0 || line >= plan.rows || j >= plan.p) return;
    byId("center").textContent = `${centers.features[j]}, cluster ${i}: centre ${show(centers.centers[i][j])}, ${percent(centers.missing[i][j])} missing`;
  });

  function drawSheet() {
    const high = Math.min(sorted.ids.length * 12, 460);
    sheet.style.height = `${high}px`;
    const { pen, width } = sharpen(sheet, high);
    paintSheet(pen, width, high);
  }
  function paintSheet(pen, width, high) {
    const shown = levels(), p = sorted.features.length, w = (width - strip) / p, h = high / sorted.ids.length;
    pen.fillStyle = css("--gapcell");
    pen.fillRect(strip, 0, width - strip, high);
    sorted.cluster.forEach((cluster, i) => {
      pen.fillStyle = shade(cluster);
      pen.fillRect(0, i * h, strip - 3, h + 0.5);
      for (let j = 0; j < p; j++) {
        const level = shown[i * p + j];
        if (level === null) continue;
        pen.fillStyle = tone(level);
        pen.fillRect(strip + j * w, i * h, w + 0.4, h + 0.4);
      }
    });
  }
  sheet.addEventListener("pointermove", (event) => {
    const n = sorted.ids.length, p = sorted.features.length, i = Math.floor(event.offsetY / sheet.clientHeight * n);
    const j = Math.floor((event.offsetX - strip) / (sheet.clientWidth - strip) * p);
    if (i < 0 || i >= n || j < 0 || j >= p) return;
    const value = sorted.values[i * p + j];
    byId("cell").textContent = `${sorted.ids[i]}, cluster ${sorted.cluster[i]}, ${sorted.features[j]}: ${value === null ? "missing" : show(value)}`;
  });

  // ---- charts: lines, dots and bars, described by the displays of the package ----------------------
  const charts = { ...data.charts, ...(data.choice && { choice: data.choice }) };
  const RIGHT = 430, BASE = 234, LEFT = 80, TOP = 14;  // of the 460 x 280 of a chart
  const svg = (tag, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const label = (x, y, text, anchor = "middle", look = {}) => svg("text", { class: "tick", x, y, "text-anchor": anchor, ...look }, text);

  function roundNumbers(low, high) {
    if (!(high > low)) return [low];
    const raw = (high - low) / 4, base = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * base).find((s) => s >= raw * 0.999);
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, i) => +((first + i) * step).toPrecision(12));
  }
  // Where the values of an axis lie between two ends of the picture, and its ticks with their texts.
  function axisOf(axis, values, begin, end) {
    let low = least(values), high = most(values), position = (v) => v, shown = null, text = show, margin = 0.05 * (high - low) || 0.05 * Math.abs(high) || 1;
    if (axis.scale === "lam") {  // logarithmic, with a place for 0
      const logs = values.filter((v) => v > 0).map(Math.log2);
      [low, high] = logs.length ? [least(logs), most(logs)] : [0, 1];
      const zero = low - Math.max(0.12 * (high - low), 1);
      position = (v) => v > 0 ? Math.log2(v) : zero;
      if (values.includes(0)) low = zero;
      margin = 0.04 * (high - low) || 0.5;
      shown = axis.ticks;
    } else if (axis.scale === "share") {
      [low, high, margin, shown, text] = [0, 1, 0, [0, 0.25, 0.5, 0.75, 1], percent];
    } else if (axis.scale === "whole") {
      margin = 0.4;
      const step = Math.max(1, Math.ceil((high - low + 1) / 10));
      shown = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step);
    }
    const bottom = axis.from_zero ? 0 : low - margin, span = high + margin - bottom || 1;
    shown ||= roundNumbers(bottom, high + margin).filter((v) => axis.scale !== "count" || Number.isInteger(v));
    const place = (v) => fixed(begin + (position(v) - bottom) / span * (end - begin));
    return { place, ticks: shown.map((v) => [place(v), text(v)]) };
  }
  function chartParts({ x: across, y: upwards, series, chosen, below }) {
    const xs = series.flatMap((s) => s.x), ys = series.flatMap((s) => s.y.map((v, i) => v + (s.spread ? s.spread[i] : 0)));
    const named = series.filter((s) => s.name), legend = named.length > 1 ? named : [];
    const step = 26 + 7 * Math.max(0, ...named.map((s) => s.name.length)), inLine = Math.max(1, Math.floor((RIGHT - LEFT) / step));
    const x = axisOf(across, xs.length ? xs : [0], LEFT, RIGHT);
    const y = axisOf(upwards, ys.length ? ys : [0], BASE, TOP + 16 * Math.ceil(legend.length / inLine));
    const middle = (TOP + BASE) / 2, parts = [svg("line", { class: "axis", x1: LEFT, x2: RIGHT, y1: BASE, y2: BASE })];
    for (const [at, text] of y.ticks) {
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: at, y2: at }), label(LEFT - 7, at + 4, text, "end"));
    }
    for (const [at, text] of x.ticks) {
      parts.push(svg("line", { class: "axis", x1: at, x2: at, y1: BASE, y2: BASE + 4 }), label(at, BASE + 17, text));
    }
    parts.push(label((LEFT + RIGHT) / 2, 272, across.name, "middle", { class: "name" }),
      label(13, middle, upwards.name, "middle", { class: "name", transform: `rotate(-90 13 ${middle})` }));
    const ink = (color) => `var(${typeof color === "number" ? toneName(color) : `--${color}`})`;
    for (const s of series) {
      const at = s.x.map((v, i) => [x.place(v), y.place(s.y[i])]), style = `fill:${ink(s.color)}`;
      const titled = (part, i) => { part.append(svg("title", {}, s.titles[i])); return part; };
      if (s.spread) {
        const edge = (sign) => s.x.map((v, i) => `${x.place(v)},${y.place(Math.max(s.y[i] + sign * s.spread[i], 0))}`);
        parts.push(svg("polygon", { points: [...edge(1), ...edge(-1).reverse()].join(" "), style, "fill-opacity": 0.12 }));
      }
      if (s.mark === "line") parts.push(svg("polyline", { class: "line", style: `stroke:${ink(s.color)}`, points: at.join(" ") }));
      const width = s.mark === "bars" && x.place(s.x[1]) - x.place(s.x[0]) - 2;
      const look = s.mark === "dots" ? { r: 2.5, "fill-opacity": 0.4 } : { r: 3.5 };
      at.forEach(([cx, cy], i) => {
        if (s.mark !== "bars") parts.push(titled(svg("circle", { class: "dot", style, cx, cy, ...look }), i));
        else if (s.y[i]) parts.push(titled(svg("rect", { class: "bar", x: cx + 1, y: cy, width, height: BASE - cy }), i));
      });
    }
    if (chosen) {
      const [cx, cy] = [x.place(chosen[0]), y.place(chosen[1])], beyond = cx + 7 * below.length > 460;
      parts.push(svg("line", { class: "drop", x1: cx, x2: cx, y1: TOP + 34, y2: BASE }), svg("circle", { class: "ring", cx, cy, r: 8.5 }),
        label(cx + (beyond ? -6 : 6), TOP + 44, below, beyond ? "end" : "start"));
    }
    legend.forEach((s, i) => {
      const cx = LEFT + 10 + step * (i % inLine), cy = 8 + 16 * Math.floor(i / inLine);
      parts.push(svg("circle", { cx, cy, r: 4.5, style: `fill:${ink(s.color)}` }), label(cx + 8, cy + 4, s.name, "start"));
    });
    return parts;
  }
  for (const place of all("svg[data-chart]")) place.append(...chartParts(charts[place.dataset.chart]));

  // ---- tables that sort ---------------------------------------------------------------------------
  for (const table of all("table.sortable")) {
    const heads = all("thead th", table), body = table.tBodies[0];
    heads.forEach((head, column) => {
      const value = (row) => {
        const cell = row.cells[column], text = cell.dataset.value || cell.textContent.trim();
        const number = Number(text.replace(/,/g, "").replace("%", ""));
        return Number.isNaN(number) ? text.toLowerCase() : number;
      };
      const sort = () => {
        const up = head.ariaSort !== "ascending", way = up ? 1 : -1;
        for (const other of heads) other.ariaSort = null;
        head.ariaSort = up ? "ascending" : "descending";
        body.append(...[...body.rows].sort((a, b) => {
          const x = value(a), y = value(b);
          if (typeof x === "number" && typeof y === "number") return way * (x - y);
          return way * String(x).localeCompare(String(y), "en", { numeric: true });
        }));
      };
      head.replaceChildren(element("button", { type: "button", onclick: sort }, head.textContent));
    });
  }

  // ---- the numbers of every plot as CSV -----------------------------------------------------------
  const columns = (lists) => [Object.keys(lists), ...Object.values(lists)[0].map((_, i) => Object.values(lists).map((list) => list[i]))];
  const records = (list) => [Object.keys(list[0] || {}), ...list.map(Object.values)];
  const tables = {
    embedding: () => {
      const { ids, x, y, cluster, confidence, distance, missing } = points;
      return columns({ id: ids, x, y, cluster, confidence, distance, missing });
    },
    clusters: () => records(data.clusters.map(({ levels, ...row }) => {
      const [sure, fairly_sure, between] = levels || [null, null, null];
      return { ...row, sure, fairly_sure, between };
    })),
    between: () => records(data.between),
    markers: () => records(data.markers),
    far: () => records(data.far),
    comparison: () => [data.comparison.columns, ...data.comparison.rows],
    centers: () => [["feature", "cluster", "center", "reference", "mean", "missing_share"], ...centers.features.flatMap((name, j) =>
      centers.centers.map((center, i) => [name, i, center[j], centers.reference[j], centers.mean[j], centers.missing[i][j]]))],
    rows_by_cluster: () => {
      const p = sorted.features.length;
      return [["id", "cluster", ...sorted.features], ...sorted.ids.map((id, i) => [id, sorted.cluster[i], ...sorted.values.slice(i * p, i * p + p)])];
    }
  };
  for (const [name, { x, y, series }] of Object.entries(charts)) {
    tables[name] = () => [["series", x.name, y.name, "standard deviation", "description"], ...series.flatMap((s) =>
      s.x.map((v, i) => [s.name || s.mark, v, s.y[i], s.spread ? s.spread[i] : null, s.titles[i]]))];
  }
  noted.forEach((note, a) => {
    tables[`annotation-${a}`] = () => [["cluster", ...note.groups], ...note.counts.map((row, cluster) => [cluster, ...row])];
  });
  const quoted = (value) => /[",\r\n]/.test(value ?? "") ? `"${String(value).replace(/"/g, '""')}"` : value ?? "";
  function give(name, blob) {
    const link = element("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  for (const button of all("button.download")) button.addEventListener("click", () => {
    const name = button.dataset.name, text = tables[name]().map((row) => `${row.map(quoted).join(",")}\r\n`).join("");
    give(`${name}.csv`, new Blob([`\ufeff${text}`], { type: "text/csv" }));
  });

  // ---- every picture as SVG and PNG ---------------------------------------------------------------
  const xml = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  // What is drawn on a canvas, written as SVG: the few calls that the pictures above use.
  class SvgPen {
    body = ""; globalAlpha = 1; textAlign = "left";
    add(tag, attributes, text = "") {
      const look = { ...attributes, fill: this.fillStyle, ...(this.globalAlpha < 1 && { "fill-opacity": this.globalAlpha }) };
      const written = Object.entries(look).map(([name, v]) => `${name}="${typeof v === "number" ? fixed(v) : xml(v)}"`);
      this.body += `<${tag} ${written.join(" ")}>${xml(text)}</${tag}>`;
    }
    beginPath() { this.path = ""; }
    moveTo(x, y) { this.path += `M${fixed(x)} ${fixed(y)}`; }
    lineTo(x, y) { this.path += `L${fixed(x)} ${fixed(y)}`; }
    closePath() { this.path += "Z"; }
    arc(x, y, r) {  // whole circles
      this.moveTo(x + r, y);
      for (const d of [-2 * r, 2 * r]) this.path += `a${fixed(r)} ${fixed(r)} 0 1 0 ${fixed(d)} 0`;
    }
    rect(x, y, w, h) { this.moveTo(x, y); this.path += `h${fixed(w)}v${fixed(h)}h${fixed(-w)}z`; }
    fill() { this.add("path", { d: this.path }); }
    fillRect(x, y, width, height) { this.add("rect", { x, y, width, height }); }
    fillText(text, x, y) {
      const anchor = { right: "end", center: "middle" }[this.textAlign] || "start";
      this.add("text", { x, y, "font-size": parseFloat(this.font), "text-anchor": anchor }, text);
    }
  }

  const wrapped = (body, width, height) => ({ width, height, text:
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
    `font-family="${xml(css("--font"))}"><rect width="100%" height="100%" fill="${css("--card")}"/>${body}</svg>` });
  const drawn = {
    embedding: () => {  // with the legend below
      const pen = new SvgPen(), coloured = coloring(), shaped = symbols(coloured), { width, height } = placed.area;
      let x = 12, y = height + 16;
      paint(pen);
      for (const [key, name] of coloured.groups || data.clusters.map((c) => [c.cluster, `cluster ${c.cluster} (${c.rows})`])) {
        const wide = 26 + 7 * String(name).length;
        if (x + wide > width) { x = 12; y += 20; }
        pen.fillStyle = coloured.color(key);
        pen.beginPath(); symbol(pen, shaped ? key : 0, x, y, 5); pen.fill();
        pen.fillStyle = css("--ink"); pen.font = "12px"; pen.fillText(name, x + 10, y + 4);
        x += wide;
      }
      return wrapped(pen.body, width, y + 16);
    },
    centers: () => {
      const pen = new SvgPen(), plan = heatPlan();
      paintHeat(pen, plan);
      return wrapped(pen.body, plan.width, plan.height);
    },
    rows_by_cluster: () => {
      const pen = new SvgPen();
      paintSheet(pen, sheet.clientWidth, sheet.clientHeight);
      return wrapped(pen.body, sheet.clientWidth, sheet.clientHeight);
    }
  };
  // A chart with its look, which the style sheet has, written into it.
  const LOOK = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "font-size", "font-weight"];
  function chartPicture(chart) {
    const { width, height } = chart.viewBox.baseVal, copy = chart.cloneNode(true), parts = all("*", copy);
    all("*", chart).forEach((part, i) => {
      const style = getComputedStyle(part);
      parts[i].removeAttribute("class"); parts[i].removeAttribute("style");
      for (const name of LOOK) parts[i].setAttribute(name, style.getPropertyValue(name));
    });
    copy.setAttribute("width", width); copy.setAttribute("height", height);
    copy.removeAttribute("style");
    return wrapped(new XMLSerializer().serializeToString(copy), width, height);
  }
  for (const button of all("button.save")) button.addEventListener("click", () => {
    const { name, kind } = button.dataset, picture = drawn[name] ? drawn[name]() : chartPicture(button.closest("figure").querySelector("svg"));
    if (kind === "svg") { give(`${name}.svg`, new Blob([picture.text], { type: "image/svg+xml" })); return; }
    const image = new Image();
    image.onload = () => {
      const canvas = element("canvas", { width: 2 * picture.width, height: 2 * picture.height });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => give(`${name}.png`, blob));
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture.text)}`;
  });

  // ---- light, dark, size, place ---------------------------------------------------------------------
  function redraw() { placed = null; tones = {}; paintGroups(coloring()); draw(); drawHeat(); drawSheet(); }
  byId("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    redraw();
  });
  for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", redraw);
  let waiting = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => { choose(-1); redraw(); });
  });
  const links = all("nav a");
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((one) => one.isIntersecting)) {
      for (const link of links) link.ariaCurrent = link.hash === `#${entry.target.id}` ? "true" : null;
    }
  }, { rootMargin: "-10% 0px -75% 0px" });
  for (const section of all("main section")) watcher.observe(section);
  redraw();
})();
