"use strict";
// Shows the data of the page: a run, or a comparison of runs.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const header = make("header"), main = make("main");
  document.body.append(header, main, make("footer", {}, `Made by Reel ${data.version}. Curves: drag to zoom, ` +
    "double-click to reset the zoom; a name in the legend hides its curve."));
  header.append(make("h1", {}, data.title, ...(data.state ? [make("span", {class: "state " + data.state}, data.state)] : [])));

  const titles = {loss: "loss", valid_loss: "validation loss", train_loss: "training loss", accuracy: "accuracy",
    grad_norm: "norm of the gradient"};
  const dashes = [undefined, [9, 4], [2, 3], [9, 3, 2, 3], [16, 4]];
  const some = column => column && column.some(v => v !== null);
  const curves = (controls, list, nothing) => {
    const charts = make("div", {class: "charts"}), none = make("p", {class: "dim"}, nothing);
    main.append(section("Curves", make("div", {class: "bar"},
      choice("against", "x", Object.entries(axes), "step", redraw), ...controls), list.length ? charts : none));
    for (const chart of list) new Chart(charts, chart);
  };

  const showRun = () => {
    const record = data.record, rows = data.rows, last = name => rows[name].length ? rows[name][rows[name].length - 1] : null;
    if (data.state === "running") {
      header.append(make("progress", {max: data.steps, value: record.steps, "aria-label": "updates done"}));
      const written = new Date(data.written), age = make("span");
      const tell = () => {
        const seconds = (Date.now() - written) / 1000;
        age.textContent = `as of ${written.toLocaleTimeString()}, ${timeText(Math.max(0, Math.floor(seconds)))} ago`;
      };
      tell();
      setInterval(tell, 1000);
      header.append(make("p", {class: "dim"}, age));
    }
    const cards = [["updates", `${countText(record.steps)} of ${countText(data.steps)}`],
      [data.state === "running" ? "so far" : "time", timeText(record.seconds)]];
    if (data.state === "running") cards.push(["left", timeText(data.left)]);
    cards.push(["validation loss", numberText(last("valid_loss")), record.baseline > 0 ? "baseline " + numberText(record.baseline) : ""]);
    if (record.best) cards.push(["best validation loss", numberText(record.best.valid_loss), `update ${countText(record.best.step)}`]);
    if (some(rows.accuracy)) cards.push(["accuracy", numberText(last("accuracy"))]);
    for (const [name, value] of Object.entries(record.test || {}))
      if (name !== "step") cards.push(["test " + name, numberText(value)]);
    cards.push(["parameters", countText(record.parameters)]);
    header.append(make("div", {class: "cards"}, ...cards.map(list => card(...list))));
    if (record.diverged_at_step !== undefined)
      header.append(make("p", {class: "bad"}, `It diverged at update ${countText(record.diverged_at_step)}.`));

    if (data.preset) {
      const p = data.preset, unit = p.unit ? " " + p.unit : "";
      main.append(section("The paper's number", make("p", {class: "dim"}, `${p.name}: ${p.paper}, ${p.where}`),
        make("div", {class: "cards"}, card(`reported ${p.metric}`, p.reported ? p.reported + unit : "no number"),
          card("measured" + (data.state === "finished" ? "" : " so far"), p.measured === null ? "not yet" : numberText(p.measured) + unit)),
        make("p", {class: p.good === true ? "good" : p.good === false ? "bad" : ""}, p.verdict),
        ...p.notes.map(note => make("p", {class: "dim"}, note))));
    }

    const x = {step: rows.step, examples: rows.examples, seconds: rows.seconds}, list = [];
    if (rows.step.length) {
      const loss = [{name: "training", colour: "--c1", thin: true, x, y: rows.train_loss}, {name: "validation", colour: "--c0", x, y: rows.valid_loss}];
      if (record.baseline > 0) loss.push({name: "baseline", colour: "--c4", y: record.baseline});
      list.push({key: "loss", title: titles.loss, log: true, curves: loss});
      for (const [key, name] of [["accuracy", "validation"], ["grad_norm", "mean since the validation before"]])
        if (some(rows[key])) list.push({key, title: titles[key], log: key !== "accuracy", curves: [{name, colour: "--c0", x, y: rows[key]}]});
    }
    curves([], list, data.state === "running" ? "There is no validation yet." : "The run has no validation.");
    if (data.pictures.length)
      main.append(section("Pictures", make("div", {class: "pictures"}, ...data.pictures.map(picture => make("figure", {},
        make("img", {src: picture.source, alt: picture.name}), make("figcaption", {}, picture.name))))));
    const columns = [{name: "parameter"}, {name: "shape"}, {name: "elements", number: true, text: countText}, {name: "trained"}];
    main.append(section("Parameters", sortedTable("parameters", columns, data.parameters)));
    main.append(section("Options", pairs(data.options.filter(([, value]) => value !== ""))));
    main.append(section("Where it comes from", pairs(data.facts)));

    // The page loads itself again while the run goes on, unless someone is just using it.
    if (data.state !== "running" || !location.protocol.match(/^(file|https?):$/)) return;
    let held = false;
    addEventListener("pointerdown", () => held = true);
    addEventListener("pointerup", () => held = false);
    setInterval(() => { if (!held && !document.hidden) location.reload(); }, 1000 * data.refresh);
  };

  const showComparison = () => {
    for (const fact of data.facts) header.append(make("p", {class: "dim"}, fact));
    for (const problem of data.problems) header.append(make("p", {class: "bad"}, problem));
    const repaint = () => {
      const by = chosen.get("colours", "all"), values = [];
      data.groups.forEach((group, i) => {
        const value = by === "all" ? i : group.values[data.differing.indexOf(by)];
        if (!values.includes(value)) values.push(value);
        const index = values.indexOf(value);  // eight colours, then the same with dashes
        group.colour = "--c" + index % 8;
        group.dash = dashes[Math.floor(index / 8) % dashes.length];
      });
    };
    repaint();
    const drawn = data.groups.filter(group => group.curve);
    const list = ["valid_loss", "accuracy", "train_loss", "grad_norm"].filter(key => drawn.some(group => some(group.curve.mean[key])));
    const charts = list.map(key => ({key, title: titles[key], log: key !== "accuracy", curves: drawn.map(group => {
      const {mean, low, high} = group.curve, curve = {name: group.name, colour: group.colour, dash: group.dash, group,
        x: {step: mean.step, examples: mean.examples, seconds: mean.seconds}, y: mean[key]};
      return group.seeds > 1 ? {...curve, low: low[key], high: high[key]} : curve;
    })}));
    for (const chart of charts)
      if (chart.key.endsWith("loss") && data.baseline > 0) chart.curves.push({name: "baseline", colour: "--fg", y: data.baseline});
    const controls = data.differing.length > 1 ? [choice("colours", "colours",
      [["all", "each"], ...data.differing.map(name => [name, name])], "all", () => {
        repaint();
        for (const chart of everyChart) {
          for (const curve of chart.curves) if (curve.group) Object.assign(curve, {colour: curve.group.colour, dash: curve.group.dash});
          chart.legend.replaceChildren();
          chart.keys();
        }
        redraw();
      })] : [];
    curves(controls, charts, data.running ? "There is no validation yet." : "No run has a validation.");
    if (drawn.length && drawn.length < data.groups.length)
      main.append(make("p", {class: "dim"}, `Curves of ${drawn.length} of ${data.groups.length} groups; the table has all.`));
    const or = text => v => typeof v === "string" ? v : text(v);
    const texts = {number: {number: true, text: or(numberText)}, count: {number: true, text: or(countText)}, time: {number: true, text: timeText}, text: {}};
    for (const table of data.tables)
      main.append(section(table.title, sortedTable(table.key, table.columns.map(([name, kind]) => ({name, ...texts[kind]})),
        table.rows.map(row => Object.assign(row.cells, {best: row.best, href: row.href, top: new Set(row.top)})))));
  };

  data.kind === "run" ? showRun() : showComparison();
})();
