"use strict";
const byId = (id) => document.getElementById(id);
const table = byId("matrix");
const rows = [...table.querySelectorAll("tbody tr[data-row]")];
const heads = [...table.querySelectorAll("thead th")].slice(1).map((head) => head.dataset.name);
const buttonsOf = (row) => [...row.querySelectorAll("td button")];
const verdictOf = (button) => button.className;

// Filters.
const texts = new Map(rows.map((row) => [row, (row.dataset.area + " " + row.cells[0].textContent).toLowerCase()]));
const fits = (row, verdict) => {
  const found = buttonsOf(row).map(verdictOf);
  if (verdict === "!") return found.some((each) => each !== "p" && each !== "s");
  if (verdict === "~") return new Set(found.filter((each) => each !== "s")).size > 1;
  return !verdict || found.includes(verdict);
};
const filter = () => {
  close(false);
  const words = byId("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdict = byId("verdict").value, level = byId("level").value;
  let count = 0;
  for (const row of rows) {
    const wanted = words.every((word) => texts.get(row).includes(word)) && fits(row, verdict)
      && (!level || row.dataset.level.split(" ").includes(level));
    row.hidden = !wanted;
    count += wanted;
  }
  for (const body of table.tBodies) body.hidden = rows.every((row) => row.parentNode !== body || row.hidden);
  byId("shown").textContent = `${count} of ${rows.length} cases`;
};
for (const id of ["text", "verdict", "level"]) byId(id).addEventListener("input", filter);

// Evidence: texts are stored once, cells name them by number.
const unpacked = (async () => {
  const packed = Uint8Array.from(atob(byId("evidence").textContent), (each) => each.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
})();
const element = (name, text, ...children) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
};
let opened = null;
const close = (returns) => {
  if (!opened) return;
  const { button, row } = opened;
  opened = null;
  row.remove();
  button.setAttribute("aria-expanded", "false");
  if (returns) button.focus();
};
const open = async (button) => {
  const wasOpen = opened && opened.button === button;
  close(wasOpen);
  if (wasOpen) return;
  const data = await unpacked;
  const row = button.closest("tr"), column = button.parentNode.cellIndex - 1;
  const text = (number) => data.texts[number];
  const cell = data.cells[row.dataset.row][column];
  const facts = element("dl");
  const add = (name, value) => { if (value) facts.append(element("dt", name), element("dd", "", value)); };
  const block = (numbers) => numbers.length ? element("pre", numbers.map(text).join("\n")) : "";
  for (const [name, number] of cell.facts) add(text(number) && name, text(number));
  add("transcript", block(cell.transcript));
  add("frames", block(cell.frames));
  add("sources", data.sources[row.dataset.row].map(text).join("\n"));
  add("again", element("code", text(cell.again)));
  const shut = element("button", "Close");
  shut.addEventListener("click", () => close(true));
  const heading = element("h2", "", element("span", `${row.dataset.id} on ${heads[column]}: ${cell.standing}`), shut);
  const proof = element("div", "", heading, facts);
  proof.className = "proof";
  const place = element("td", "", proof);
  place.colSpan = heads.length + 1;
  const shown = element("tr", "", place);
  shown.className = "evidence";
  row.after(shown);
  button.setAttribute("aria-expanded", "true");
  opened = { button, row: shown };
};

// One stop for the tab key; arrows move among the cells that are shown.
const cells = rows.map((row) => [...row.cells].slice(1).map((cell) => cell.querySelector("button")));
for (const button of cells.flat()) if (button) { button.tabIndex = -1; button.setAttribute("aria-expanded", "false"); }
const first = cells.flat().find(Boolean);
if (first) first.tabIndex = 0;
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const moved = (button, [down, right]) => {
  let row = rows.indexOf(button.closest("tr")), column = button.parentNode.cellIndex - 1;
  do { row += down; column += right; }
  while (cells[row] && column >= 0 && column < heads.length && (rows[row].hidden || !cells[row][column]));
  return cells[row] && cells[row][column];
};
const stopAt = (button) => {
  for (const each of table.querySelectorAll('td button[tabindex="0"]')) each.tabIndex = -1;
  button.tabIndex = 0;
};
table.addEventListener("click", (event) => {
  const button = event.target.closest("tr[data-row] td button");
  if (button) { stopAt(button); open(button); }
});
table.addEventListener("keydown", (event) => {
  if (event.key === "Escape") return close(true);
  const button = event.target.closest("tr[data-row] td button"), step = STEPS[event.key];
  if (!button || !step) return;
  event.preventDefault();
  const next = moved(button, step);
  if (next) { stopAt(next); next.focus(); }
});
filter();
