"use strict";
// What is chosen on the page: axes, zoom, hidden curves. It is kept behind the # of the address, so that it outlives the
// page's reloading itself.
const chosen = (() => {
  const values = new Map(new URLSearchParams(location.hash.slice(1)));
  return {
    get: (key, otherwise) => values.has(key) ? values.get(key) : otherwise,
    set: (key, value) => {
      value === null ? values.delete(key) : values.set(key, value);
      try { history.replaceState(null, "", "#" + new URLSearchParams([...values])); } catch (e) { /* as a frame's text */ }
    },
  };
})();

const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);  // texts become text, never HTML
  return element;
};

// "12,345,678"
const countText = v => v === null || v === undefined || !Number.isFinite(v) ? "-" : v.toLocaleString("en-US");
// "1.234", "1.2e-5", "12,345", and from a million up "1.2e+6", which fits beside an axis
const numberText = (v, digits = 4) => v === null || v === undefined || !Number.isFinite(v) ? "-"
  : Number.isInteger(v) && Math.abs(v) < 1e6 ? v.toLocaleString("en-US")
  : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? Number(v.toPrecision(digits)).toExponential()
  : String(Number(v.toPrecision(digits)));
// The same of ticks, with as many digits as tell them apart.
const tickTexts = ticks => {
  for (let digits = 4; ; ++digits) {
    const texts = ticks.map(v => numberText(v, digits));
    if (digits === 15 || new Set(texts).size === ticks.length) return texts;
  }
};
const timeText = s => {
  if (s === null || s === undefined) return "-";
  if (s > 0 && s < 10) return s.toFixed(1) + " s";
  const whole = Math.ceil(s), two = n => String(n).padStart(2, "0");
  return whole < 3600 ? `${Math.floor(whole / 60)}:${two(whole % 60)}`
    : `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
};

// Buttons of which one is pressed.
const choice = (label, key, options, otherwise, changed) => {
  const box = make("span", {class: "choice", role: "group", "aria-label": label}, make("span", {}, label));
  const press = () => box.querySelectorAll("button").forEach(
    b => b.setAttribute("aria-pressed", b.value === chosen.get(key, otherwise)));
  for (const [value, text] of options) {
    const button = make("button", {value, type: "button"}, text);
    button.addEventListener("click", () => { chosen.set(key, value); press(); changed(value); });
    box.append(button);
  }
  press();
  return box;
};

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const axes = {step: "updates", examples: "examples", seconds: "seconds"};
const everyChart = [];
const redraw = () => everyChart.forEach(chart => chart.draw());

// Ticks in steps of 1, 2 or 5 times a power of ten, nine at most.
const linearTicks = (low, high) => {
  const least = (high - low) / 8, power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5].find(factor => factor * power >= least) ?? 10), first = Math.ceil(low / step);
  return [...Array(9).keys()].map(i => Number(((first + i) * step).toPrecision(15))).filter(tick => tick >= low && tick <= high);
};

// Ticks at 1, 2 and 5 times powers of ten, or finer where there would be fewer than three.
const logTicks = (low, high) => {
  for (const parts of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9]]) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
      for (const part of parts) {
        const tick = Number((part * 10 ** power).toPrecision(6));
        if (tick >= low && tick <= high) ticks.push(tick);
      }
    if (ticks.length >= 3) return ticks.filter((_, i) => i % Math.ceil(ticks.length / 9) === 0);
  }
  return linearTicks(low, high);
};

const levelDash = [8, 5];

// The colour of a curve with its dashes, as a background.
const swatchOf = ({colour, x, dash = x ? undefined : levelDash}) => {
  if (!dash) return `var(${colour})`;
  let at = 0;
  const stops = dash.map((length, i) => {
    const from = at, paint = i % 2 ? "transparent" : `var(${colour})`;
    at += length;
    return `${paint} ${from}px ${at}px`;
  });
  return `repeating-linear-gradient(to right, ${stops.join(", ")})`;
};

// One set of axes. A curve is {name, colour, x: {step, examples, seconds}, y, low?, high?, dash?}; without x it is a level.
class Chart {
  constructor(parent, {key, title, log, curves}) {
    const values = curves.flatMap(curve => [curve.y, curve.low ?? []].flat());
    const fits = values.every(v => v === null || v >= 0) && values.some(v => v > 0);
    Object.assign(this, {key, log: log && fits ? "log" : "linear", curves, plot: null});
    this.hidden = new Set(chosen.get("hide-" + key, "").split("\n").filter(name => name));
    this.area = make("div", {class: "plot"});
    this.legend = make("div", {class: "legend"});
    const back = make("button", {type: "button"}, "reset zoom");
    back.addEventListener("click", () => this.zoom(null));
    parent.append(make("div", {class: "chart", "data-chart": key},
      make("div", {class: "top"}, make("h3", {}, title), make("div", {class: "bar"},
        choice("scale", "y-" + key, [["linear", "linear"], ["log", "log"]], this.log, () => this.draw()), back)),
      this.area, this.legend));
    this.keys();
    new ResizeObserver(() => this.fit()).observe(this.area);
    everyChart.push(this);
    this.draw();
  }

  keys() {
    this.values = this.curves.map(curve => {
      const value = make("b"), swatch = make("i");
      swatch.style.background = swatchOf(curve);
      const button = make("button", {type: "button", "aria-pressed": !this.hidden.has(curve.name)}, swatch,
        make("span", {}, curve.name), value);
      button.addEventListener("click", () => {
        this.hidden.has(curve.name) ? this.hidden.delete(curve.name) : this.hidden.add(curve.name);
        button.setAttribute("aria-pressed", !this.hidden.has(curve.name));
        chosen.set("hide-" + this.key, this.hidden.size ? [...this.hidden].join("\n") : null);
        this.draw();
      });
      this.legend.append(button);
      return value;
    });
  }

  height() { return innerWidth < 600 ? 240 : 300; }
  fit() { if (this.plot && this.area.clientWidth) this.plot.setSize({width: this.area.clientWidth, height: this.height()}); }

  zoom(range) {
    chosen.set("zoom-" + this.key, range && [chosen.get("x", "step"), ...range].join(" "));
    this.draw();
  }

  draw() {
    const x = chosen.get("x", "step"), log = chosen.get("y-" + this.key, this.log) === "log";
    const shown = this.curves.filter(curve => !this.hidden.has(curve.name));
    const good = v => v !== null && Number.isFinite(v) && (!log || v > 0) ? v : null;
    const lines = shown.filter(curve => curve.x);
    // A column of x for all curves, with gaps where another curve has a point.
    const tables = lines.map(curve => {
      const order = curve.x[x].map((v, i) => i).filter(i => curve.x[x][i] !== null)
        .sort((a, b) => curve.x[x][a] - curve.x[x][b]).filter((i, n, all) => n === 0 || curve.x[x][i] > curve.x[x][all[n - 1]]);
      const of = column => order.map(i => good(column[i]));
      return curve.low ? [order.map(i => curve.x[x][i]), of(curve.y), of(curve.low), of(curve.high)]
        : [order.map(i => curve.x[x][i]), of(curve.y)];
    });
    const data = tables.length ? uPlot.join(tables) : [[]], series = [{}], bands = [], owners = [null];
    for (const curve of lines) {
      const stroke = colour(curve.colour);
      series.push({stroke, width: curve.thin ? 1.2 : 2, dash: curve.dash, spanGaps: true,
        points: {show: curve.y.length < 40, size: 5}});
      owners.push(curve);
      if (!curve.low) continue;
      series.push({stroke: "transparent", spanGaps: true, points: {show: false}},
        {stroke: "transparent", spanGaps: true, points: {show: false}});
      owners.push(null, null);
      bands.push({series: [series.length - 1, series.length - 2], fill: stroke + "30"});
    }
    for (const level of shown.filter(curve => !curve.x)) {
      data.push(data[0].map(() => good(level.y)));
      series.push({stroke: colour(level.colour), width: 1.6, dash: levelDash, points: {show: false}});
      owners.push(level);
    }
    this.empty = !data.slice(1).some(column => column.some(v => v !== null && v !== undefined));
    const [axis, ...range] = chosen.get("zoom-" + this.key, "").split(" "), kept = axis === x && range.length === 2;
    const ends = u => kept ? range.map(Number) : [data[0][0] ?? 0, data[0][data[0].length - 1] ?? 1];
    const limits = (u, low, high) => {
      if (low === null || high === null || !Number.isFinite(low)) return log ? [0.1, 1] : [0, 1];
      const wider = high ** 0.05 / low ** 0.05;
      if (log) return low === high ? [low / 2, high * 2] : [low / wider, high * wider];
      const room = (high - low || Math.abs(high) || 1) * 0.06;
      return [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
    };
    const look = {stroke: colour("--dim"), grid: {stroke: colour("--line"), width: 1}, ticks: {stroke: colour("--line"), width: 1}};
    const options = {
      width: this.area.clientWidth || 600, height: this.height(), legend: {show: false}, padding: [8, 32, 0, 0],
      cursor: {drag: {x: true, y: false, setScale: false}, points: {size: 6}},
      scales: {x: {time: false, range: (u, low, high) => low === high || !kept && ends()[0] === ends()[1]
        ? [low - 1, high + 1] : ends()}, y: {distr: log ? 3 : 1, range: limits}},
      series, bands,
      axes: [{...look, label: axes[x], labelSize: 20, size: 38, space: 70, values: (u, all) => tickTexts(all)},
        // uPlot's own steps end at 5e31; it draws no axis where these are too narrow
        {...look, size: (u, texts) => Math.max(66, ...(texts ?? []).map(text => 18 + 7 * text.length)),
          values: (u, all) => tickTexts(all), incrs: [1e300], filter: (u, all) => all,
          splits: u => (log ? logTicks : linearTicks)(u.scales.y.min, u.scales.y.max)}],
      hooks: {
        setCursor: [u => this.curves.forEach((curve, i) => {
          const at = owners.indexOf(curve), index = u.cursor.idxs && at > 0 ? u.cursor.idxs[at] : null;
          this.values[i].textContent = index === null || index === undefined || u.data[at][index] === null ||
            u.data[at][index] === undefined ? "" : numberText(u.data[at][index]);
        })],
        setSelect: [u => {
          if (u.select.width < 4) return;
          const to = v => u.posToVal(v, "x");
          setTimeout(() => this.zoom([to(u.select.left), to(u.select.left + u.select.width)]));
        }],
        ready: [u => u.over.addEventListener("dblclick", () => this.zoom(null))],
      },
    };
    if (this.plot) this.plot.destroy();
    this.plot = new uPlot(options, data, this.area);
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
