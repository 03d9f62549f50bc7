"use strict";
// Texts and numbers in turn, as columns are sorted by: "lr 0.01, clip 5" as "lr ", 0.01, ", clip ", 5, "". A - behind a
// letter or a digit is no sign.
const textsAndNumbers = v => String(v).split(/((?:\B-)?(?:\d+(?:\.\d+)?|\B\.\d+)(?:e[-+]?\d+)?)/i)
  .map((part, i) => i % 2 ? Number(part) : part);
const inOrder = (x, y) => {
  const a = textsAndNumbers(x), b = textsAndNumbers(y);
  for (let i = 0; i < Math.min(a.length, b.length); ++i) {
    const order = i % 2 ? a[i] - b[i] : a[i].localeCompare(b[i], "en");
    if (order) return order;
  }
  return a.length - b.length;
};

// A table whose rows a click on a column's title sorts. A column is {name, number?, text?}; `text` shows a value. Rows are
// lists of values in the order of the columns, with marks: row.best for the whole row, row.top, a set of columns.
const sortedTable = (key, columns, rows, link) => {
  const body = make("tbody"), heads = [];
  const compare = (c, up) => (a, b) => {
    const x = a[c], y = b[c], none = v => v === null || v === undefined || v === "";
    if (none(x) || none(y)) return none(x) - none(y);  // what is missing comes last, whichever way
    return up ? inOrder(x, y) : inOrder(y, x);
  };
  const show = () => {
    const [name, way] = chosen.get("sort-" + key, "").split("\n"), c = columns.findIndex(column => column.name === name);
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === c ? way : "none"));
    const order = c < 0 ? rows : [...rows].sort(compare(c, way === "ascending"));
    body.replaceChildren(...order.map(row => {
      const line = make("tr", row.best ? {class: "best"} : {});
      columns.forEach((column, i) => {
        const text = column.text ? column.text(row[i]) : row[i] === null ? "-" : String(row[i]);
        const kind = [column.number ? "n" : i === 0 ? "name" : "", row.top && row.top.has(i) ? "top1" : ""].join(" ");
        line.append(make("td", {class: kind.trim()}, i === 0 && row.href ? make("a", {href: row.href}, text) : text));
      });
      return line;
    }));
  };
  columns.forEach(column => {
    const button = make("button", {type: "button"}, column.name);
    const head = make("th", {class: column.number ? "n" : "", scope: "col"}, button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      chosen.set("sort-" + key, column.name + "\n" + (up ? "ascending" : "descending"));
      show();
    });
    heads.push(head);
  });
  show();
  return make("div", {class: "wide", "data-table": key}, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
};

const section = (title, ...children) => make("section", {}, make("div", {class: "top"}, make("h2", {}, title)), ...children);
const pairs = list => make("div", {class: "columns"},
  ...list.map(([name, value]) => make("div", {}, make("span", {}, name), make("b", {}, String(value)))));
const card = (name, value, note = "") => make("div", {}, make("b", {}, value), make("span", {}, name + (note ? ", " + note : "")));
