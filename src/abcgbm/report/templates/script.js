"use strict";

// Theme: the preference of the system, until the button is pressed.
function setUpTheme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const preferred = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (preferred.matches ? "dark" : "light")) === "dark";
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  preferred.addEventListener("change", show);
  button.hidden = false;
  show();
}

// Tables: a click on a heading sorts by it, a second click reverses the order.
function valueOf(row, column) {
  const cell = row.cells[column];
  const given = cell.dataset.value;
  return given === undefined ? cell.textContent.trim() : Number(given);
}

function compare(a, b) {
  return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
}

function sortTable(table, column, heading) {
  const body = table.tBodies[0];
  const isNumber = typeof valueOf(body.rows[0], column) === "number";
  const now = heading.getAttribute("aria-sort");
  const ascending = now === null ? !isNumber : now === "descending";
  const rows = [...body.rows];
  rows.sort((a, b) => (ascending ? 1 : -1) * compare(valueOf(a, column), valueOf(b, column)));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  body.append(...rows);
}

function setUpTable(table) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (heading.dataset.unsorted !== undefined) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => sortTable(table, column, heading));
  });
}

// Matrices: pointer and arrow keys show the value of a cell.
function setUpMatrix(figure) {
  const svg = figure.querySelector("svg");
  const data = JSON.parse(figure.querySelector("script").textContent);
  const readout = figure.querySelector(".readout");
  const cursor = figure.querySelector(".cursor");
  const [size, left, top] = ["size", "left", "top"].map((name) => Number(svg.dataset[name]));
  const drawn = [...figure.querySelectorAll(".cells > g")];
  const [rowTexts, columnTexts] = [".rows", ".columns"].map((name) => [...figure.querySelector(name).children]);
  const cellAt = new Map(data.cells.map((cell) => [cell.r + "," + cell.c, cell]));
  const inOrder = (n) => Array.from({ length: n }, (_, i) => i);
  let rows = inOrder(data.rows.length);
  let columns = inOrder(data.columns.length);
  let at = null;

  function show(r, c) {
    at = [r, c];
    const cell = cellAt.get(rows[r] + "," + columns[c]);
    const names = data.rows[rows[r]] + " \u2192 " + data.columns[columns[c]];
    readout.textContent = names + ": " + (cell ? cell.t : "0");
    cursor.setAttribute("transform", `translate(${left + size * c} ${top + size * r})`);
    cursor.setAttribute("visibility", "visible");
  }
  function hide() {
    cursor.setAttribute("visibility", "hidden");
  }
  svg.addEventListener("pointermove", (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const [c, r] = [Math.floor((place.x - left) / size), Math.floor((place.y - top) / size)];
    if (r >= 0 && c >= 0 && r < rows.length && c < columns.length) show(r, c);
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("focus", () => show(...(at ?? [0, 0])));
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const [r, c] = [at[0] + move[0], at[1] + move[1]];
    show(Math.min(Math.max(r, 0), rows.length - 1), Math.min(Math.max(c, 0), columns.length - 1));
  });
  return (order) => {
    columns = data.orders[order];
    rows = columns.concat(inOrder(data.rows.length).slice(columns.length));
    const [rowPlace, columnPlace] = [rows, columns].map((list) => new Map(list.map((k, i) => [k, i])));
    data.cells.forEach((cell, i) => {
      const [x, y] = [left + size * columnPlace.get(cell.c), top + size * rowPlace.get(cell.r)];
      drawn[i].setAttribute("transform", `translate(${x} ${y})`);
    });
    rowTexts.forEach((text, k) => text.setAttribute("y", top + size * (rowPlace.get(k) + 0.5) + 4));
    columnTexts.forEach((text, k) => {
      const x = left + size * (columnPlace.get(k) + 0.5) + 3;
      text.setAttribute("transform", `translate(${x} ${top - 8}) rotate(-55)`);
    });
    at = null;
    readout.textContent = "";
    hide();
  };
}

// Curves: pointer and arrow keys show the values at an iteration.
function setUpChart(figure) {
  const svg = figure.querySelector("svg");
  const lines = JSON.parse(figure.querySelector("script").textContent);
  const names = [...figure.querySelectorAll(".key")].map((key) => key.textContent);
  const readout = figure.querySelector(".readout");
  const cross = figure.querySelector(".cross");
  const longest = lines.reduce((a, b) => (b.iteration.at(-1) > a.iteration.at(-1) ? b : a));
  let at = -1;

  function nearest(line, x) {
    let best = 0;
    line.at.forEach((place, i) => {
      if (Math.abs(place[0] - x) < Math.abs(line.at[best][0] - x)) best = i;
    });
    return best;
  }
  function show(i) {
    at = i;
    const [x, iteration] = [longest.at[i][0], longest.iteration[i]];
    const values = lines.map((line, k) => {
      const j = nearest(line, x);
      return Math.abs(line.at[j][0] - x) < 3 ? names[k] + " " + line.value[j] : null;
    });
    readout.textContent = "iteration " + iteration + ": " + values.filter((text) => text !== null).join(", ");
    cross.setAttribute("x1", x);
    cross.setAttribute("x2", x);
    cross.setAttribute("visibility", "visible");
  }
  svg.addEventListener("pointermove", (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    show(nearest(longest, place.x));
  });
  svg.addEventListener("pointerleave", () => cross.setAttribute("visibility", "hidden"));
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    show(Math.min(Math.max(at + move, 0), longest.at.length - 1));
  });
}

setUpTheme();
document.querySelectorAll("table[data-sortable]").forEach(setUpTable);
document.querySelectorAll("[data-chart]").forEach(setUpChart);
const sorters = new Map();
document.querySelectorAll("[data-matrix]").forEach((figure) => sorters.set(figure.dataset.matrix, setUpMatrix(figure)));
document.querySelectorAll("[data-sorts]").forEach((choice) => {
  choice.addEventListener("change", (event) => sorters.get(choice.dataset.sorts)(event.target.value));
});
