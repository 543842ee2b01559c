// Sorting, filtering and searching of tables, and zooming of charts. Everything on the page is
// there without it.
"use strict";

const made = (name, parts = {}, ...inside) => {
  const element = Object.assign(document.createElement(name), parts);
  element.append(...inside);
  return element;
};

const valueOf = (cell) => (cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent.trim());

// An unknown value is last, whichever way the column is sorted.
const compared = (one, other, isDescending) => {
  const [a, b] = [valueOf(one), valueOf(other)];
  const unknown = [a, b].map((value) => value === "" || Number.isNaN(value));
  if (unknown[0] || unknown[1]) return unknown[0] - unknown[1];
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  return isDescending ? -order : order;
};

const makeSortable = (table) => {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    if (head.textContent.trim() === "") return;
    const button = made("button", { type: "button", title: `sort by ${head.textContent}` }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const isDescending = before === null ? head.classList.contains("n") : before === "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
      const rows = [...body.rows];
      rows.sort((one, other) => compared(one.cells[column], other.cells[column], isDescending));
      body.append(...rows);
    });
  });
};

const makeFilterable = (table) => {
  const rows = [...table.tBodies[0].rows];
  const said = made("span", { role: "status", className: "soft" });
  const search = made("input", { type: "search", placeholder: table.dataset.search });
  const choices = [...table.tHead.rows[0].cells].flatMap((head, column) => {
    if (head.dataset.filter === undefined) return [];
    const values = rows.flatMap((row) => row.cells[column].dataset.values?.split(" ") ?? [row.cells[column].textContent.trim()]);
    const names = [...new Set(values.filter(Boolean))].sort();
    if (names.length < 2) return [];
    const select = made("select", {}, made("option", { value: "" }, "all"), ...names.map((name) => made("option", { value: name }, name)));
    return [{ column, select, label: made("label", {}, `${head.dataset.filter} `, select) }];
  });
  const apply = () => {
    const wanted = search.value.trim().toLowerCase();
    const own = rows.filter((row) => !row.classList.contains("out"));
    let shown = 0;
    own.forEach((row) => {
      const isIn = row.textContent.toLowerCase().includes(wanted) && choices.every(({ column, select }) => {
        const cell = row.cells[column];
        const values = cell.dataset.values?.split(" ") ?? [cell.textContent.trim()];
        return select.value === "" || values.includes(select.value);
      });
      row.hidden = !isIn;
      shown += isIn ? 1 : 0;
    });
    said.textContent = `${shown.toLocaleString("en")} of ${own.length.toLocaleString("en")}`;
  };
  document.addEventListener("range", apply);
  [search, ...choices.map((choice) => choice.select)].forEach((each) => each.addEventListener("input", apply));
  const tools = made("div", { className: "tools" }, made("label", {}, "search ", search), ...choices.map((choice) => choice.label), said);
  (table.closest(".scroll") ?? table).before(tools);
  apply();
};

// -- charts along a time axis ---------------------------------------------------------------------

const STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 2592000];

const ticksOf = (from, to, isCalendar) => {
  const span = to - from;
  const power = 10 ** Math.floor(Math.log10(span / 7));
  const plain = [1, 2, 5, 10].map((each) => each * power).find((step) => step >= span / 7);
  const step = (isCalendar && span / 7 >= 1 && STEPS.find((each) => span / each <= 7)) || plain;
  const format = (at) => {
    if (!isCalendar) return (at + 0).toLocaleString("en", { maximumFractionDigits: 3 });
    const text = new Date(at * 1000).toISOString();
    if (step >= 86400) return text.slice(0, 10);
    return span > 86400 ? text.slice(5, 16).replace("T", " ") : text.slice(11, step < 1 ? 23 : 19);
  };
  const ticks = [];
  for (let number = Math.ceil(from / step); number * step <= to; number += 1) {
    ticks.push([(100 * (number * step - from)) / span, format(number * step)]);
  }
  return ticks;
};

const SVG = document.querySelector("svg")?.namespaceURI;
const svgElement = (name, parts, text = "") => {
  const element = document.createElementNS(SVG, name);
  Object.entries(parts).forEach(([key, value]) => element.setAttribute(key, value));
  element.textContent = text;
  return element;
};

// Calls back with the ends of what is dragged over a plot, as shares of its width.
const makeDraggable = (plot, act) => {
  let mark = null;
  let begin = 0;
  const at = (event) => Math.min(1, Math.max(0, (event.clientX - plot.getBoundingClientRect().left) / plot.getBoundingClientRect().width));
  plot.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0) return;
    begin = at(event);
    mark = svgElement("rect", { class: "chosen", y: 0, height: "100%", x: `${100 * begin}%`, width: 0 });
    plot.append(mark);
    plot.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  plot.addEventListener("pointermove", (event) => {
    if (mark === null) return;
    mark.setAttribute("x", `${100 * Math.min(begin, at(event))}%`);
    mark.setAttribute("width", `${100 * Math.abs(at(event) - begin)}%`);
  });
  plot.addEventListener("pointerup", (event) => {
    if (mark === null) return;
    mark.remove();
    mark = null;
    const [low, high] = [Math.min(begin, at(event)), Math.max(begin, at(event))];
    if (high - low > 0.01) act(low, high);
  });
  plot.addEventListener("pointercancel", () => { mark?.remove(); mark = null; });
};

const makeZoomable = (box) => {
  const charts = [...box.querySelectorAll(".chart[data-from]")];
  if (charts.length === 0) return;
  box.classList.add("zoomable");
  const full = [Number(charts[0].dataset.from), Number(charts[0].dataset.to)];
  let whole = full;
  const isCalendar = charts[0].dataset.calendar !== undefined;
  let [from, to] = whole;
  const draw = () => {
    const factor = (full[1] - full[0]) / (to - from);
    const place = (-100 * (from - full[0])) / (to - from);
    const enlarged = (whole[1] - whole[0]) / (to - from);
    const ticks = ticksOf(from, to, isCalendar);
    charts.forEach((chart) => {
      const moved = chart.querySelector(".moved");
      moved.setAttribute("x", `${place}%`);
      moved.setAttribute("width", `${100 * factor}%`);
      chart.querySelector(".grid").replaceChildren(...ticks.map(([at]) => svgElement("line", { x1: `${at}%`, x2: `${at}%`, y1: 0, y2: "100%" })));
      chart.querySelector(".axis").replaceChildren(...ticks.map(([at, text]) => svgElement("text", { x: `${at}%`, y: 15 }, text)));
    });
    said.textContent = enlarged > 1.001 ? `${enlarged.toFixed(1)} times as large` : "";
  };
  const show = (low, high) => {
    const least = (full[1] - full[0]) / 5000;
    const length = Math.min(whole[1] - whole[0], Math.max(least, high - low));
    from = Math.min(Math.max(whole[0], low), whole[1] - length);
    to = from + length;
    draw();
  };
  const scaled = (factor) => show((from + to) / 2 - ((to - from) / 2) * factor, (from + to) / 2 + ((to - from) / 2) * factor);
  const moved = (share) => show(from + (to - from) * share, to + (to - from) * share);
  const button = (text, title, act) => {
    const made_ = made("button", { type: "button", title }, text);
    made_.setAttribute("aria-label", title);
    made_.addEventListener("click", act);
    return made_;
  };
  const said = made("span", { role: "status" });
  const tools = made("div", { className: "zoom" },
    button("+", "zoom in", () => scaled(0.5)), button("\u2212", "zoom out", () => scaled(2)),
    button("\u2190", "earlier", () => moved(-0.3)), button("\u2192", "later", () => moved(0.3)),
    button("all", "the whole time", () => show(...whole)), said, made("span", { className: "hint" }, "or drag over a chart"));
  charts[0].before(tools);
  charts.forEach((chart) => {
    const plot = chart.querySelector(".plot");
    makeDraggable(plot, (low, high) => show(from + (to - from) * low, from + (to - from) * high));
    plot.addEventListener("dblclick", () => show(...whole));
  });
  document.addEventListener("range", (event) => {
    whole = event.detail ?? full;
    show(...whole);
  });
};

// A table that is wider than the page says so, and keys scroll it.
const noteScroll = (box) => {
  const note = made("p", { className: "scroll-note", textContent: "wider than the page: scroll sideways \u2192", hidden: true });
  box.before(note);
  new ResizeObserver(() => {
    note.hidden = box.scrollWidth <= box.clientWidth + 1;
    if (note.hidden) box.removeAttribute("tabindex");
    else box.tabIndex = 0;
  }).observe(box);
};

// An address that was cut within an escape is read as it stands.
const decoded = (text) => {
  try { return decodeURIComponent(text); } catch { return text; }
};

const openTarget = () => {
  const target = document.getElementById(decoded(location.hash.slice(1).split("&")[0]));
  for (let each = target; each; each = each.parentElement) {
    each.classList.remove("out");
    if (each.tagName === "DETAILS") each.open = true;
  }
  target?.scrollIntoView();
};

document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll("table.filterable").forEach(makeFilterable);
document.querySelectorAll(".zoom-box").forEach(makeZoomable);
document.querySelectorAll(".scroll").forEach(noteScroll);
window.addEventListener("hashchange", openTarget);
if (location.hash) openTarget();
