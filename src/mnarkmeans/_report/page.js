"use strict";
(function () {
  var data = JSON.parse(document.getElementById("data").textContent);
  var root = document.documentElement;
  var byId = function (id) { return document.getElementById(id); };
  var css = function (name) { return getComputedStyle(root).getPropertyValue(name).trim(); };
  var tones = {};  // of the clusters, until the ground changes
  var toneName = function (cluster) { return "--c" + cluster % data.colors; };
  var shade = function (cluster) { return tones[cluster] = tones[cluster] || css(toneName(cluster)); };
  var show = function (value) {
    if (value === null || value === undefined) return "–";
    if (Math.abs(value) >= 1e9) return (+value).toExponential(2).replace("e+", " × 10^");
    return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(+(+value).toPrecision(4));
  };
  var percent = function (share) { return share === null ? "–" : +(100 * share).toPrecision(3) + " %"; };

  var brief = function (name, most) {
    return name.length <= most ? name : name.slice(0, most - most / 2 - 1) + "…" + name.slice(-most / 2);
  };

  // A canvas as sharp as the screen; returns its size in CSS pixels.
  function sharpen(canvas, height) {
    var ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    height = height || canvas.clientHeight;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    var pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return { pen: pen, width: width, height: height };
  }

  // ---- the rows -------------------------------------------------------------------------------
  var points = data.embedding, map = byId("map"), tip = byId("tip"), spoken = byId("spoken");
  var hidden = {}, placed = null, current = -1, order = null;
  var chosen = byId("shade"), fade = byId("fade"), noted = data.annotations || [];

  // A ramp from blue over grey to orange, readable on light and dark ground.
  function ramp(t) {
    var ends = t < 0.5 ? [[0, 114, 178], [153, 153, 153]] : [[153, 153, 153], [213, 94, 0]], s = t < 0.5 ? 2 * t : 2 * t - 1;
    return "rgb(" + ends[0].map(function (v, i) { return Math.round(v + (ends[1][i] - v) * s); }).join(",") + ")";
  }
  var STEPS = 12;
  // What the rows are coloured by: a key per row, a colour and a name per key.
  function coloring() {
    var by = chosen.value, numbers = null, low = 0, high = 1;
    if (by === "cluster") return { key: function (i) { return points.cluster[i]; }, color: shade, groups: null };
    if (by === "confidence" || by === "missing") numbers = points[by];
    else if (noted[+by].values) {
      numbers = noted[+by].values;
      var known = numbers.filter(function (v) { return v !== null; });
      low = known.reduce(function (a, b) { return Math.min(a, b); }, Infinity);
      high = known.reduce(function (a, b) { return Math.max(a, b); }, -Infinity);
    }
    if (numbers) {
      return {
        key: function (i) { return numbers[i] === null ? -1 : Math.min(STEPS - 1, Math.floor((numbers[i] - low) / (high - low || 1) * STEPS)); },
        color: function (key) { return key < 0 ? css("--gapline") : ramp(key / (STEPS - 1)); },
        scale: true, groups: [[0, show(low)], [STEPS - 1, show(high)]]
      };
    }
    var note = noted[+by];
    return {
      key: function (i) { return note.codes[i]; },
      color: function (key) { return key < 0 ? css("--gapline") : shade(key); },
      groups: note.groups.map(function (name, g) { return [g, name]; })
    };
  }
  // Shapes beside the colours, where groups and rows are few enough to tell them apart.
  var SHAPES = ["", "s-square", "s-up", "s-diamond", "s-down", "s-plus"];
  var CORNERS = [null, [-1, -1, 1, -1, 1, 1, -1, 1], [0, -1.2, 1.2, 1, -1.2, 1], [0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0],
    [-1.2, -1, 1.2, -1, 0, 1.2], [-0.4, -1.2, 0.4, -1.2, 0.4, -0.4, 1.2, -0.4, 1.2, 0.4, 0.4, 0.4, 0.4, 1.2, -0.4, 1.2, -0.4, 0.4, -1.2, 0.4, -1.2, -0.4, -0.4, -0.4]];
  var FEW_ROWS = 2000, FEW_NAMES = 60;
  function symbols(coloured) {
    var groups = coloured.groups ? coloured.groups.length : data.clusters.length;
    return !coloured.scale && groups <= SHAPES.length && points.x.length <= FEW_ROWS;
  }
  function symbol(pen, shape, x, y, r) {
    var corners = CORNERS[shape];
    if (!corners) { pen.moveTo(x + r, y); pen.arc(x, y, r, 0, 6.2832); return; }
    for (var i = 0; i < corners.length; i += 2) pen[i ? "lineTo" : "moveTo"](x + r * corners[i], y + r * corners[i + 1]);
    pen.closePath();
  }
  function paintGroups(coloured) {
    var shaped = symbols(coloured);
    document.querySelectorAll("#legend .swatch").forEach(function (dot, g) {
      dot.className = "swatch " + (shaped && !coloured.groups ? SHAPES[g] : "");
    });
    var list = byId("groups");
    list.hidden = !coloured.groups;
    list.textContent = "";
    (coloured.groups || []).forEach(function (group) {
      var item = document.createElement("li"), dot = document.createElement("span");
      dot.className = "swatch " + (shaped ? SHAPES[group[0]] : ""); dot.style.background = coloured.color(group[0]);
      item.className = "soft";
      item.appendChild(dot); item.appendChild(document.createTextNode(" " + group[1]));
      list.appendChild(item);
    });
  }
  [chosen, fade].forEach(function (control) {
    control.addEventListener("change", function () { paintGroups(coloring()); draw(); });
  });

  function place() {
    var area = sharpen(map), n = points.x.length, pad = 26, i;
    var lowX = Infinity, highX = -Infinity, lowY = Infinity, highY = -Infinity;
    for (i = 0; i < n; i++) {
      lowX = Math.min(lowX, points.x[i]); highX = Math.max(highX, points.x[i]);
      lowY = Math.min(lowY, points.y[i]); highY = Math.max(highY, points.y[i]);
    }
    var spanX = highX - lowX || 1, spanY = highY - lowY || 1;
    var px = new Float32Array(n), py = new Float32Array(n), cells = new Map(), size = 24;
    for (i = 0; i < n; i++) {
      px[i] = pad + (points.x[i] - lowX) / spanX * (area.width - 2 * pad);
      py[i] = area.height - pad - (points.y[i] - lowY) / spanY * (area.height - 2 * pad);
      var key = Math.floor(px[i] / size) + ":" + Math.floor(py[i] / size);
      if (!cells.has(key)) cells.set(key, []);
      cells.get(key).push(i);
    }
    placed = { area: area, px: px, py: py, cells: cells, size: size,
      r: Math.max(1.4, Math.min(5, 90 / Math.sqrt(n))) };
  }

  function paint(pen) {
    var n = points.x.length, r = placed.r, i, c;
    var coloured = coloring(), full = n > 5000 ? 0.6 : 0.85, levels = 4, groups = {}, shaped = symbols(coloured);
    for (i = 0; i < n; i++) {
      if (hidden[points.cluster[i]]) continue;
      // Faint where the cluster is unsure; sure rows are drawn last, on top.
      c = fade.checked && points.confidence[i] !== null ? Math.min(levels - 1, Math.floor(points.confidence[i] * levels)) : levels - 1;
      var name = c + ":" + coloured.key(i);
      (groups[name] = groups[name] || []).push(i);
    }
    Object.keys(groups).sort().forEach(function (name) {
      var parts = name.split(":");
      pen.globalAlpha = full * [0.14, 0.22, 0.45, 1][+parts[0]];
      pen.fillStyle = coloured.color(+parts[1]);
      pen.beginPath();
      groups[name].forEach(function (j) {
        if (n > 8000) pen.rect(placed.px[j] - r, placed.py[j] - r, 2 * r, 2 * r);
        else symbol(pen, shaped ? Math.max(+parts[1], 0) : 0, placed.px[j], placed.py[j], r);
      });
      pen.fill();
    });
    pen.globalAlpha = 1;
    pen.fillStyle = css("--soft"); pen.font = "12px " + css("--font");
    var share = points.explained, names = points.axis_names.map(function (name, a) {
      return share ? name + " (" + percent(share[a]) + ")" : name;
    });
    pen.textAlign = "right"; pen.fillText(names[0] + " →", placed.area.width - 10, placed.area.height - 9);
    pen.textAlign = "left"; pen.fillText("↑ " + names[1], 10, 17);
    if (n <= FEW_NAMES) paintNames(pen, r);
  }

  // The ids beside their points, but none on top of another or of a point.
  function paintNames(pen, r) {
    var taken = [];
    pen.font = "11px " + css("--font"); pen.fillStyle = css("--soft");
    points.ids.forEach(function (id, i) {
      var text = brief(id, 24);
      var x = placed.px[i] + r + 4, y = placed.py[i] + 4, wide = 6.2 * text.length;
      if (x + wide > placed.area.width) x = placed.px[i] - r - 4 - wide;
      var free = taken.every(function (t) { return x > t[0] + t[2] || t[0] > x + wide || Math.abs(y - t[1]) > 11; });
      free = free && placed.px.every(function (a, j) {
        return hidden[points.cluster[j]] || a + r < x || a - r > x + wide || Math.abs(placed.py[j] - y + 4) > r + 5;
      });
      if (hidden[points.cluster[i]] || !free || x < 0) return;
      taken.push([x, y, wide]);
      pen.fillText(text, x, y);
    });
  }

  function draw() {
    if (!placed) place();
    var pen = placed.area.pen;
    pen.clearRect(0, 0, placed.area.width, placed.area.height);
    paint(pen);
    if (current >= 0) {
      pen.strokeStyle = css("--ink"); pen.lineWidth = 2;
      pen.beginPath(); pen.arc(placed.px[current], placed.py[current], placed.r + 4, 0, 6.2832); pen.stroke();
    }
  }

  function choose(i) {
    if (i === current) return;
    current = i;
    draw();
    if (i < 0) { tip.hidden = true; return; }
    tip.textContent = "";
    var name = document.createElement("b");
    name.textContent = points.ids[i];
    tip.appendChild(name);
    var text = "cluster " + points.cluster[i] + (points.confidence[i] === null ? "" : " · confidence " + show(points.confidence[i])) +
      " · distance " + show(points.distance[i]) + " · " + percent(points.missing[i]) + " missing";
    noted.forEach(function (note) {
      if (note.codes[i] >= 0) text += " · " + note.name + " " + (note.values ? show(note.values[i]) : note.groups[note.codes[i]]);
    });
    tip.appendChild(document.createTextNode(text));
    tip.hidden = false;
    var x = placed.px[i] + 14, y = placed.py[i] + 14;
    if (x + tip.offsetWidth > placed.area.width) x = Math.max(0, placed.px[i] - tip.offsetWidth - 14);
    if (y + tip.offsetHeight > placed.area.height) y = Math.max(0, placed.py[i] - tip.offsetHeight - 14);
    tip.style.left = x + "px"; tip.style.top = y + "px";
    spoken.textContent = points.ids[i] + ": " + text;
  }

  function nearest(x, y) {
    var best = -1, least = 18 * 18, a, b;
    var cx = Math.floor(x / placed.size), cy = Math.floor(y / placed.size);
    for (a = -1; a <= 1; a++) for (b = -1; b <= 1; b++) {
      (placed.cells.get((cx + a) + ":" + (cy + b)) || []).forEach(function (i) {
        var d = Math.pow(placed.px[i] - x, 2) + Math.pow(placed.py[i] - y, 2);
        if (d < least && !hidden[points.cluster[i]]) { least = d; best = i; }
      });
    }
    return best;
  }

  map.addEventListener("pointermove", function (event) {
    var box = map.getBoundingClientRect();
    choose(nearest(event.clientX - box.left, event.clientY - box.top));
  });
  map.addEventListener("pointerleave", function () { choose(-1); });
  map.addEventListener("keydown", function (event) {
    var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") { choose(-1); return; }
    if (!step) return;
    event.preventDefault();
    if (!order) order = Array.from(points.x.keys()).sort(function (i, j) { return points.x[i] - points.x[j]; });
    var at = order.indexOf(current), tries = order.length;
    if (at < 0 && step < 0) at = 0;
    do { at = (at + step + order.length) % order.length; } while (hidden[points.cluster[order[at]]] && --tries);
    choose(order[at]);
  });
  byId("find").addEventListener("input", function (event) {
    var wanted = event.target.value.trim().toLowerCase();
    if (!wanted) { choose(-1); return; }
    var i = points.ids.findIndex(function (id) { return id.toLowerCase() === wanted; });
    if (i < 0) i = points.ids.findIndex(function (id) { return id.toLowerCase().indexOf(wanted) >= 0; });
    choose(i);
    if (i < 0) spoken.textContent = "No row has this id.";
  });
  data.clusters.forEach(function (cluster) {
    var item = document.createElement("li"), button = document.createElement("button");
    var dot = document.createElement("span");
    dot.className = "swatch"; dot.style.background = "var(" + toneName(cluster.cluster) + ")";
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.appendChild(dot);
    button.appendChild(document.createTextNode(cluster.cluster + " (" + cluster.rows.toLocaleString("en") + ")"));
    button.addEventListener("click", function () {
      hidden[cluster.cluster] = !hidden[cluster.cluster];
      button.setAttribute("aria-pressed", String(!hidden[cluster.cluster]));
      current = -1; tip.hidden = true; draw();
    });
    item.appendChild(button);
    byId("legend").appendChild(item);
  });

  // ---- the centres, and the table sorted by cluster -----------------------------------------------
  var sorted = data.rows_by_cluster, sheet = byId("sorted"), strip = 10;

  function tone(level) {  // 0..200, 100 at the reference or the mean
    var t = (level - 100) / 100, end = t >= 0 ? [178, 24, 43] : [33, 102, 172], s = Math.pow(Math.abs(t), 0.8);
    return "rgb(" + end.map(function (v) { return Math.round(247 + (v - 247) * s); }).join(",") + ")";
  }

  var origin = byId("origin");
  function levels() { return origin.value === "mean" ? sorted.levels_mean : sorted.levels; }
  origin.addEventListener("change", function () {
    drawHeat(); drawSheet();
  });

  // A cell of the centres is coloured as far as its cluster observed the feature.
  var heat = byId("heat"), centers = data.centers, LINE = 19, HEAD = 40;
  function heatPlan() {
    var k = centers.centers.length, p = centers.features.length, room = heat.parentNode.clientWidth;
    var label = 14 + 7 * centers.features.reduce(function (most, name) { return Math.max(most, Math.min(name.length, 20)); }, 0);
    var panels = p > 24 && room >= 2 * (label + 36 * k) + 30 ? 2 : 1;
    var cell = Math.max(20, Math.min(66, ((room - 30 * (panels - 1)) / panels - label) / k)), rows = Math.ceil(p / panels);
    return { k: k, p: p, label: label, cell: cell, rows: rows, panel: label + k * cell + 30,
      width: panels * (label + k * cell + 30) - 30, height: HEAD + LINE * rows + 4 };
  }
  function drawHeat() {
    var plan = heatPlan();
    heat.style.width = plan.width + "px"; heat.style.height = plan.height + "px";
    var pen = sharpen(heat, plan.height).pen;
    pen.clearRect(0, 0, plan.width, plan.height);
    paintHeat(pen, plan);
  }
  function paintHeat(pen, plan) {
    var from = centers[origin.value], top = 0, i, j;
    var apart = function (i, j) { return centers.centers[i][j] - from[j]; };
    for (i = 0; i < plan.k; i++) for (j = 0; j < plan.p; j++) top = Math.max(top, Math.abs(apart(i, j)));
    for (j = 0; j < plan.p; j++) {
      var x = Math.floor(j / plan.rows) * plan.panel, y = HEAD + j % plan.rows * LINE;
      pen.font = "12px " + css("--font");
      for (i = 0; i < plan.k && j % plan.rows === 0; i++) {  // the heads of a panel
        pen.textAlign = "center";
        pen.fillStyle = css("--ink"); pen.fillText(String(i), x + plan.label + (i + 0.5) * plan.cell, 16);
        pen.fillStyle = css("--soft");
        if (plan.cell > 6.5 * String(centers.sizes[i]).length) pen.fillText(String(centers.sizes[i]), x + plan.label + (i + 0.5) * plan.cell, 31);
      }
      pen.textAlign = "right"; pen.fillStyle = css("--soft");
      pen.fillText(brief(centers.features[j], 20), x + plan.label - 6, y + 13);
      for (i = 0; i < plan.k; i++) {
        var missing = centers.missing[i][j] === null ? 1 : centers.missing[i][j], wide = plan.cell - 2, left = x + plan.label + i * plan.cell;
        pen.fillStyle = css("--gapcell"); pen.fillRect(left, y, wide, LINE - 2);
        pen.fillStyle = tone(100 + 100 * apart(i, j) / (top || 1)); pen.fillRect(left, y, wide * (1 - missing), LINE - 2);
      }
    }
    pen.textAlign = "left";
  }
  heat.addEventListener("pointermove", function (event) {
    var box = heat.getBoundingClientRect(), plan = heatPlan(), x = event.clientX - box.left, panel = Math.floor(x / plan.panel);
    var i = Math.floor((x - panel * plan.panel - plan.label) / plan.cell), line = Math.floor((event.clientY - box.top - HEAD) / LINE);
    var j = panel * plan.rows + line;
    if (i < 0 || i >= plan.k || line < 0 || line >= plan.rows || j >= plan.p) return;
    byId("center").textContent = centers.features[j] + ", cluster " + i + ": centre " + show(centers.centers[i][j]) + ", " + percent(centers.missing[i][j]) + " missing";
  });

  function drawSheet() {
    var n = sorted.ids.length, high = Math.max(Math.min(n * 12, 460), Math.min(n, 460));
    sheet.style.height = high + "px";
    var area = sharpen(sheet, high);
    paintSheet(area.pen, area.width, high);
  }

  function paintSheet(pen, width, high) {
    var shown = levels(), n = sorted.ids.length, p = sorted.features.length;
    var w = (width - strip) / p, h = high / n;
    pen.fillStyle = css("--gapcell");
    pen.fillRect(strip, 0, width - strip, high);
    for (var i = 0; i < n; i++) {
      pen.fillStyle = shade(sorted.cluster[i]);
      pen.fillRect(0, i * h, strip - 3, h + 0.5);
      for (var j = 0; j < p; j++) {
        var level = shown[i * p + j];
        if (level < 0) continue;
        pen.fillStyle = tone(level);
        pen.fillRect(strip + j * w, i * h, w + 0.4, h + 0.4);
      }
    }
  }

  sheet.addEventListener("pointermove", function (event) {
    var box = sheet.getBoundingClientRect(), n = sorted.ids.length, p = sorted.features.length;
    var i = Math.floor((event.clientY - box.top) / box.height * n);
    var j = Math.floor((event.clientX - box.left - strip) / (box.width - strip) * p);
    if (i < 0 || i >= n || j < 0 || j >= p) return;
    byId("cell").textContent = sorted.ids[i] + ", " + sorted.features[j] + ", cluster " + sorted.cluster[i] +
      (sorted.levels[i * p + j] < 0 ? ": missing" : "");
  });

  // ---- tables that sort ---------------------------------------------------------------------------
  document.querySelectorAll("table.sortable").forEach(function (table) {
    table.querySelectorAll("thead th").forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        var up = head.getAttribute("aria-sort") !== "ascending", body = table.tBodies[0];
        table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        var value = function (row) {
          var cell = row.cells[column], text = cell.dataset.value || cell.textContent.trim();
          var number = Number(text.replace(/,/g, "").replace("%", ""));
          return Number.isNaN(number) ? text.toLowerCase() : number;
        };
        Array.from(body.rows).sort(function (a, b) {
          var x = value(a), y = value(b), way = up ? 1 : -1;
          if (typeof x === "number" && typeof y === "number") return way * (x - y);
          return way * String(x).localeCompare(String(y), "en", { numeric: true });
        }).forEach(function (row) { body.appendChild(row); });
      });
    });
  });

  // ---- the numbers of every plot as CSV -----------------------------------------------------------
  var columns = function (names, lists) {
    return [names].concat(lists[0].map(function (_, i) { return lists.map(function (list) { return list[i]; }); }));
  };
  var records = function (list) {
    var names = Object.keys(list[0] || {});
    return [names].concat(list.map(function (row) { return names.map(function (name) { return row[name]; }); }));
  };
  var bars = function (h) {
    return columns(["from", "to", "count"], [h.edges.slice(0, -1), h.edges.slice(1), h.counts]);
  };
  var tables = {
    embedding: function () {
      return columns(["id", "x", "y", "cluster", "confidence", "distance", "missing"],
        [points.ids, points.x, points.y, points.cluster, points.confidence, points.distance, points.missing]);
    },
    clusters: function () {
      return [["cluster", "rows", "share", "distance", "missing", "confidence", "silhouette", "sure", "fairly_sure", "between"]]
        .concat(data.clusters.map(function (c) {
          return [c.cluster, c.rows, c.share, c.distance, c.missing, c.confidence, c.silhouette].concat(c.levels || [null, null, null]);
        }));
    },
    between: function () { return records(data.between); },
    markers: function () { return records(data.markers); },
    far: function () { return records(data.far); },
    missing: function () {
      var rows = [["of", "feature", "mean", "missing_share", "entries"]], m = data.missing;
      [["features", m.of_features], ["clusters and features", m.of_cells]].forEach(function (pair) {
        pair[1].mean.forEach(function (mean, i) { rows.push([pair[0], "", mean, pair[1].missing_share[i], pair[1].entries[i]]); });
      });
      m.dots.mean.forEach(function (mean, j) { rows.push(["one feature", m.dots.feature[j], mean, m.dots.missing_share[j], ""]); });
      return rows;
    },
    by_feature: function () { return bars(data.by_feature); },
    by_row: function () { return bars(data.by_row); },
    loss_path: function () {
      return columns(["iteration", "loss"], [data.fit.loss_path.map(function (_, i) { return i + 1; }), data.fit.loss_path]);
    },
    choice: function () {
      return columns(["lam", "k", "mean_instability", "std_instability"],
        [data.choice.lam, data.choice.k, data.choice.mean, data.choice.std]);
    },
    comparison: function () { return [data.comparison.columns].concat(data.comparison.rows); },
    centers: function () {
      var rows = [["feature", "cluster", "center", "reference", "missing_share"]], c = data.centers;
      c.features.forEach(function (name, j) {
        c.centers.forEach(function (line, i) { rows.push([name, i, line[j], c.reference[j], c.missing[i][j]]); });
      });
      return rows;
    },
    rows_by_cluster: function () {
      var p = sorted.features.length, rows = [["id", "cluster"].concat(sorted.features)];
      sorted.ids.forEach(function (id, i) {
        rows.push([id, sorted.cluster[i]].concat(levels().slice(i * p, i * p + p).map(function (level) {
          return level < 0 ? "" : (level - 100) / 100;
        })));
      });
      return rows;
    }
  };
  noted.forEach(function (note, a) {
    tables["annotation-" + a] = function () {
      return [["cluster"].concat(note.groups)].concat(note.counts.map(function (row, l) { return [l].concat(row); }));
    };
  });
  (data.flow || []).forEach(function (flow, a) {
    tables["flow-" + a] = function () {
      return [[flow.axis_name, "cluster", "next " + flow.axis_name, "next cluster", "rows"]].concat(flow.ribbons.map(function (r) {
        return [flow.names[r.column], r.source, flow.names[r.column + 1], r.target, r.rows];
      }));
    };
  });
  var quoted = function (value) {
    var text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  function give(name, blob) {
    var link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    document.body.appendChild(link);
    link.click();
    link.remove();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }
  document.querySelectorAll("button.download").forEach(function (button) {
    button.addEventListener("click", function () {
      var text = tables[button.dataset.name]().map(function (row) { return row.map(quoted).join(","); }).join("\r\n");
      give(button.dataset.name + ".csv", new Blob(["\ufeff" + text + "\r\n"], { type: "text/csv" }));
    });
  });

  // ---- every picture as SVG and PNG ---------------------------------------------------------------
  var xml = function (text) {
    return String(text).replace(/[&<>"]/g, function (c) { return { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }[c]; });
  };
  var fixed = function (value) { return +value.toFixed(2); };

  // What is drawn on a canvas, written as SVG: the few calls that the pictures above use.
  function SvgPen() { this.body = []; this.globalAlpha = 1; this.textAlign = "left"; }
  SvgPen.prototype = {
    look: function () { return ' fill="' + xml(this.fillStyle) + '"' + (this.globalAlpha < 1 ? ' fill-opacity="' + fixed(this.globalAlpha) + '"' : ""); },
    beginPath: function () { this.path = []; },
    moveTo: function (x, y) { this.path.push("M" + fixed(x) + " " + fixed(y)); },
    lineTo: function (x, y) { this.path.push("L" + fixed(x) + " " + fixed(y)); },
    closePath: function () { this.path.push("Z"); },
    arc: function (x, y, r) {  // whole circles
      var d = fixed(2 * r), a = "a" + fixed(r) + " " + fixed(r) + " 0 1 0 ";
      this.path.push("M" + fixed(x + r) + " " + fixed(y) + a + -d + " 0" + a + d + " 0");
    },
    rect: function (x, y, w, h) { this.path.push("M" + fixed(x) + " " + fixed(y) + "h" + fixed(w) + "v" + fixed(h) + "h" + -fixed(w) + "z"); },
    fill: function () { this.body.push('<path d="' + this.path.join("") + '"' + this.look() + "/>"); },
    fillRect: function (x, y, w, h) {
      this.body.push('<rect x="' + fixed(x) + '" y="' + fixed(y) + '" width="' + fixed(w) + '" height="' + fixed(h) + '"' + this.look() + "/>");
    },
    fillText: function (text, x, y) {
      var size = parseFloat(this.font), anchor = { right: "end", center: "middle" }[this.textAlign] || "start";
      this.body.push('<text x="' + fixed(x) + '" y="' + fixed(y) + '" font-size="' + size + '" text-anchor="' + anchor + '"' + this.look() + ">" + xml(text) + "</text>");
    }
  };

  function wrapped(body, width, height) {
    return { width: width, height: height, text: '<svg xmlns="http://www.w3.org/2000/svg" width="' + width + '" height="' + height +
      '" viewBox="0 0 ' + width + " " + height + '" font-family="' + xml(css("--font")) + '"><rect width="100%" height="100%" fill="' +
      css("--card") + '"/>' + body + "</svg>" };
  }
  function rowsPicture() {  // with the legend below
    var pen = new SvgPen(), coloured = coloring(), shaped = symbols(coloured), x = 12, y = placed.area.height + 16;
    paint(pen);
    (coloured.groups || data.clusters.map(function (c) { return [c.cluster, "cluster " + c.cluster + " (" + c.rows + ")"]; })).forEach(function (group) {
      var wide = 26 + 7 * String(group[1]).length;
      if (x + wide > placed.area.width) { x = 12; y += 20; }
      pen.fillStyle = coloured.color(group[0]);
      pen.beginPath(); symbol(pen, shaped ? group[0] : 0, x, y, 5); pen.fill();
      pen.fillStyle = css("--ink"); pen.font = "12px"; pen.fillText(group[1], x + 10, y + 4);
      x += wide;
    });
    return wrapped(pen.body.join(""), placed.area.width, y + 16);
  }
  function heatPicture() {
    var pen = new SvgPen(), plan = heatPlan();
    paintHeat(pen, plan);
    return wrapped(pen.body.join(""), plan.width, plan.height);
  }
  function sheetPicture() {
    var pen = new SvgPen(), wide = sheet.clientWidth, high = sheet.clientHeight;
    paintSheet(pen, wide, high);
    return wrapped(pen.body.join(""), wide, high);
  }
  // The drawings of a figure side by side, their look written into them.
  var LOOK = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "font-size", "font-weight"];
  function figurePicture(figure) {
    var body = "", x = 0, high = 0;
    figure.querySelectorAll("svg").forEach(function (drawing) {
      var box = drawing.viewBox.baseVal, copy = drawing.cloneNode(true), parts = copy.querySelectorAll("*");
      drawing.querySelectorAll("*").forEach(function (part, i) {
        var style = getComputedStyle(part);
        parts[i].removeAttribute("class"); parts[i].removeAttribute("style");
        LOOK.forEach(function (name) { parts[i].setAttribute(name, style.getPropertyValue(name).replace(/url\("(#\w+)"\)/, "url($1)")); });
      });
      copy.setAttribute("x", x); copy.setAttribute("width", box.width); copy.setAttribute("height", box.height);
      copy.removeAttribute("style");
      body += new XMLSerializer().serializeToString(copy);
      x += box.width + 30; high = Math.max(high, box.height);
    });
    return wrapped(body, x - 30, high);
  }
  document.querySelectorAll("button.save").forEach(function (button) {
    button.addEventListener("click", function () {
      var name = button.dataset.name;
      var drawn = { embedding: rowsPicture, centers: heatPicture, rows_by_cluster: sheetPicture }[name];
      var picture = drawn ? drawn() : figurePicture(button.closest("figure"));
      if (button.dataset.kind === "svg") { give(name + ".svg", new Blob([picture.text], { type: "image/svg+xml" })); return; }
      var image = new Image();
      image.onload = function () {
        var canvas = document.createElement("canvas");
        canvas.width = 2 * picture.width; canvas.height = 2 * picture.height;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob(function (blob) { give(name + ".png", blob); });
      };
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(picture.text);
    });
  });

  // ---- light, dark, size, place ---------------------------------------------------------------------
  function redraw() { placed = null; tones = {}; paintGroups(coloring()); draw(); drawHeat(); drawSheet(); }
  byId("theme").addEventListener("click", function () {
    var dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    redraw();
  });
  ["(prefers-color-scheme: dark)", "print"].forEach(function (media) { matchMedia(media).addEventListener("change", redraw); });
  var waiting = 0;
  addEventListener("resize", function () {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(function () { choose(-1); redraw(); });
  });
  var links = document.querySelectorAll("nav a");
  var watcher = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (!entry.isIntersecting) return;
      links.forEach(function (link) {
        if (link.hash === "#" + entry.target.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      });
    });
  }, { rootMargin: "-10% 0px -75% 0px" });
  document.querySelectorAll("main section").forEach(function (section) { watcher.observe(section); });
  redraw();
})();
