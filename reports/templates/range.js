// The range of the page: what begins in it is listed, drawn and counted everywhere. What cannot be
// computed anew from the rebalances that the page holds is marked as of the whole trace.
"use strict";

const UNITS = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400, w: 604800, y: 31536000 };
const DAY = 86400;
const PRESETS = ["1m", "10m", "1h", "12h", "1d", "1w", "30d"];
const WORDS = ["since", "until", "last", "around"];

// -- figures of rebalances ------------------------------------------------------------------------

// A tie goes to the even digit, as in the tables of the whole trace.
const fixed = (value, digits) => {
  const isTie = Number.isInteger(value * 2 ** (digits + 1)) && (value * 10 ** digits) % 1 === 0.5;
  const text = (isTie ? (2 * Math.round((value * 10 ** digits) / 2)) / 10 ** digits : value).toFixed(digits);
  return text.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ",");
};
const countOf = (value) => (value === null ? "n/a" : fixed(value, 0));
const durationOf = (ms) => {
  if (ms === null) return "n/a";
  if (ms < 1000) return `${fixed(ms, 0)} ms`;
  return ms < 120000 ? `${fixed(ms / 1000, 1)} s` : `${fixed(ms / 60000, 1)} min`;
};
const secondsOf = (s) => {
  if (s === null || s === 0) return s === null ? "n/a" : "0";
  return fixed(s, s < 10 ? 2 : s < 1000 ? 1 : 0);
};

const known = (rows, name) => rows.map((row) => row[name]).filter((value) => value !== null && value !== undefined);
const sumOf = (name, scale = 1) => (rows) => known(rows, name).reduce((sum, value) => sum + value, 0) / scale;
const shareOf = (share) => (rows) => {
  const sorted = known(rows, "total_ms").sort((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
};
const FIGURES = {
  rebalances: [(rows) => rows.length, countOf],
  followups: [(rows) => rows.filter((row) => row.state & 1).length, countOf],
  open_rebalances: [(rows) => rows.filter((row) => row.state & 2).length, countOf],
  finished: [(rows) => known(rows, "total_ms").length, countOf],
  p50_ms: [shareOf(0.5), durationOf],
  p90_ms: [shareOf(0.9), durationOf],
  p99_ms: [shareOf(0.99), durationOf],
  max_ms: [shareOf(1), durationOf],
  longest_ms: [shareOf(1), durationOf],
  rebalancing_ms: [(rows) => (known(rows, "total_ms").length ? sumOf("total_ms")(rows) : null), durationOf],
  most_members: [(rows) => known(rows, "members").reduce((most, value) => Math.max(most, value), 0) || null, countOf],
  stopped_s: [sumOf("stopped_ms", 1000), secondsOf],
  unowned_s: [sumOf("unowned_ms", 1000), secondsOf],
  moved: [sumOf("moved"), countOf],
};

// -- times as they are typed ----------------------------------------------------------------------

const lengthOf = (text) => (/^(\d+(ms|[smhdwy]))+$/.test(text)
  ? [...text.matchAll(/(\d+)(ms|[smhdwy])/g)].reduce((sum, [, number, unit]) => sum + number * UNITS[unit], 0)
  : null);

const makeClock = (end, isCalendar) => {
  // A time of day is the last one up to an instant.
  const instantOf = (word, text, before) => {
    const length = lengthOf(text);
    if (length !== null) return end - length;
    if (!isCalendar && /^\d+(\.\d+)?( s)?$/.test(text)) return parseFloat(text);
    const [, hours, minutes, seconds, zone] = /^(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?(Z|[+-]\d\d:?\d\d)?$/.exec(text) ?? [];
    const midnight = Date.parse(`1970-01-01T00:00${zone ?? "Z"}`) / 1000;
    if (hours < 24 && minutes < 60 && (seconds ?? 0) < 60 && !Number.isNaN(midnight)) {
      const at = Math.floor((before - midnight) / DAY) * DAY + midnight + hours * 3600 + minutes * 60 + Number(seconds ?? 0);
      return at <= before ? at : at - DAY;
    }
    const hasZone = /(Z|[+-]\d\d:?\d\d)$/.test(text) || text.length <= 10;
    const day = /^\d{4}-\d\d-\d\d/.exec(text)?.[0];
    const at = day === undefined ? NaN : Date.parse(text.replace(" ", "T") + (hasZone ? "" : "Z"));
    // Chromium takes February 30 for March 2.
    if (!Number.isNaN(at) && new Date(Date.parse(day)).toISOString().startsWith(day)) return at / 1000;
    const first = isCalendar ? "2026-11-28T22:00 or 2026-11-28" : "seconds since the start as 12.5";
    throw new Error(`${word} ${text}: wants an instant as ${first}, a time of day as 22:00, or a length back from the trace's end as 12h`);
  };
  // The ends of a range; an end that is not chosen is null.
  const resolved = ({ since, until, last, around }) => {
    if (last) {
      if (!lengthOf(last)) throw new Error(`last ${last}: wants a length as 12h, 90m or 2d`);
      return [end - lengthOf(last), null];
    }
    if (around) {
      const [, text, width] = /^(.*?)\s*(?:(?:±|\+-|\+\/-)\s*(.*))?$/.exec(around);
      const half = width ? lengthOf(width) : 1800;
      if (half === null) throw new Error(`around ${around}: wants a length after +- as 10m`);
      const at = instantOf("around", text, end + half);
      return [at - half, at + half];
    }
    const to = until ? instantOf("until", until, end) : null;
    const from = since ? instantOf("since", since, to === null ? end : to - 0.001) : null;
    if (from !== null && to !== null && from >= to) throw new Error(`since ${since} must be before until ${until}`);
    return [from, to];
  };
  const typed = (at) => (isCalendar ? new Date(Math.round(at * 1000)).toISOString().slice(0, 23).replace(/:00\.000$|\.000$/, "") : String(Number(at.toFixed(3))));
  const shown = (at) => (isCalendar ? `${new Date(Math.round(at * 1000)).toISOString().slice(0, 23).replace("T", " ").replace(/\.000$/, "")} UTC` : `${at.toLocaleString("en", { maximumFractionDigits: 3 })} s`);
  return { resolved, typed, shown };
};

// -- what a range changes -------------------------------------------------------------------------

const rebalancesOf = (data) => {
  const columns = Object.keys(data).filter((name) => Array.isArray(data[name]) && name !== "reasons");
  let at = 0;
  return data.at.map((step, number) => {
    at += step;
    return { ...Object.fromEntries(columns.map((name) => [name, data[name][number]])), at: at / 1000, reason: data.reasons[data.reason[number]] };
  });
};

// Rebalances of all groups, and those of each group by its number.
const chosenOf = (rows) => {
  const groups = new Map();
  rows.forEach((row) => groups.set(row.group, groups.get(row.group) ?? []).get(row.group).push(row));
  return { rows, of: (number) => groups.get(number) ?? [] };
};

const withReason = (rows, reason) => rows.filter((row) => row.reason === reason);

const makeFigures = (all) => {
  const acts = [];
  // Figures to which the rebalances of the page do not add up are of more than these: their heading
  // is marked, and they stay as they are. What is unknown stays unknown.
  const add = (name, cells, heading) => {
    const [compute, form] = FIGURES[name];
    const own = cells.filter(([cell]) => cell.textContent !== "n/a").map(([cell, pick]) => {
      const text = cell.textContent;
      const mark = /^[≤~] /.exec(text)?.[0] ?? "";
      const act = (chosen) => {
        const value = compute(pick(chosen));
        if (cell.dataset.v !== undefined) cell.dataset.v = value ?? "";
        return form(value) === "n/a" ? "n/a" : mark + form(value);
      };
      return { isSame: act(all) === text, act: (chosen) => { cell.textContent = act(chosen); } };
    });
    if (own.every((each) => each.isSame)) acts.push(...own.map((each) => each.act));
    else heading.dataset.whole = "";
  };
  const addTable = (table, rows, pickOf) => [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (head.dataset.sum !== undefined) add(head.dataset.sum, rows.map((row, number) => [row.cells[column], pickOf(row, number)]), head);
  });
  const addEach = (parent, pick) => parent.querySelectorAll(":not(th)[data-sum]").forEach((cell) => add(cell.dataset.sum, [[cell, pick]], cell));
  return { acts, addTable, addEach };
};

const addGroups = ({ acts, addTable, addEach }) => {
  const table = document.getElementById("group-table");
  const rows = [...table.tBodies[0].rows];
  addTable(table, rows, (_, number) => (chosen) => chosen.of(number));
  const links = rows.map((row) => row.querySelector("th a")?.hash);
  acts.push((chosen, isRange) => rows.forEach((row, number) => {
    const counts = new Map();
    chosen.of(number).forEach(({ reason }) => counts.set(reason, (counts.get(reason) ?? 0) + 1));
    const told = [...counts].sort(([one, a], [other, b]) => b - a || (one < other ? -1 : 1));
    const parts = told.map(([reason, count]) => [`${reason} `, links[number] ? made("a", { href: `${links[number]}-${reason}` }, countOf(count)) : countOf(count)]);
    row.cells[2].dataset.values = told.map(([reason]) => reason).join(" ");
    row.cells[2].replaceChildren(...parts.flatMap((part, place) => (place ? [", ", ...part] : part)));
    row.classList.toggle("out", isRange && told.length === 0);
  }));
  document.querySelectorAll("details.group[id]").forEach((section, number) => {
    addEach(section, (chosen) => chosen.of(number));
    const causes = [...section.querySelectorAll(`tr[id^="${section.id}-"]`)];
    const pick = (row) => (chosen) => withReason(chosen.of(number), row.id.slice(section.id.length + 1));
    if (causes.length) addTable(causes[0].closest("table"), causes, pick);
    const widths = causes.map((row) => parseFloat(row.querySelector(".bar").style.width));
    const counts = causes.map((row) => Number(row.cells[1].textContent.replaceAll(",", "")));
    acts.push((chosen, isRange) => {
      causes.forEach((row, place) => {
        const count = pick(row)(chosen).length;
        row.querySelector(".bar").style.width = `${(widths[place] * count) / counts[place]}px`;
        row.classList.toggle("out", count === 0);
      });
      section.classList.toggle("out", isRange && chosen.of(number).length === 0);
    });
  });
};

// The bars of reasons keep their scale.
const addReasons = ({ acts }, all) => {
  const chart = document.getElementById("reasons");
  if (!chart) return;
  const [bars, numbers] = ["rect", "text.total"].map((name) => [...chart.querySelectorAll(`.plot ${name}`)]);
  [...chart.querySelectorAll(".names > div")].forEach((name, place) => {
    const share = parseFloat(bars[place].getAttribute("width")) / withReason(all.rows, name.title).length;
    acts.push((chosen) => {
      const count = withReason(chosen.rows, name.title).length;
      bars[place].setAttribute("width", `${share * count}%`);
      numbers[place].setAttribute("x", `${share * count}%`);
      numbers[place].textContent = `\u00a0${countOf(count)}`;
    });
  });
};

const makeRange = (box) => {
  const chart = box.querySelector(".chart");
  const plot = box.querySelector(".plot");
  const isCalendar = chart.dataset.calendar !== undefined;
  const ends = [Number(chart.dataset.from), Number(chart.dataset.to)];
  const first = Math.max(0, ends[0]);
  const data = JSON.parse(document.getElementById("range-data").textContent);
  const clock = makeClock(data.end, isCalendar);
  const all = chosenOf(rebalancesOf(data));
  const isWhole = all.rows.length > 0;
  const spans = [...document.querySelectorAll("[data-span]")].map((row) => [row, ...row.dataset.span.split(" ").map(Number)]);
  const figures = makeFigures(all);
  if (isWhole) {
    addGroups(figures);
    addReasons(figures, all);
    figures.addTable(document.getElementById("phases"), [...document.querySelectorAll("#phases tbody tr:last-child")], () => (chosen) => chosen.rows);
    document.querySelectorAll(".box").forEach((each) => figures.addEach(each, (chosen) => chosen.rows));
  } else {
    document.querySelectorAll("[data-sum], #reasons h4, #group-table [data-filter=reason]").forEach((each) => { each.dataset.whole = ""; });
  }

  let range = null;
  let shownWords = {};
  const said = made("output", {});
  const fields = ["since", "until"].map((name) => made("input", { name, size: 23, placeholder: clock.typed(name === "since" ? first : data.end), autocomplete: "off", spellcheck: false }));
  const mark = svgElement("rect", { class: "chosen", y: 0, height: "100%" });

  const draw = () => {
    const [from, to] = range ?? [-Infinity, Infinity];
    const isIn = (at) => at >= from && at < to;
    const chosen = range === null ? all : chosenOf(all.rows.filter((row) => isIn(row.at)));
    figures.acts.forEach((act) => act(chosen, range !== null));
    spans.forEach(([row, first, last = first]) => {
      const isOut = first >= to || last < from;
      row.classList.toggle("out", isOut);
      row.classList.toggle("cut", !isOut && (first < from || last >= to));
    });
    document.documentElement.classList.toggle("ranged", range !== null);
    const shown = [Math.max(from, ends[0]), Math.min(to, ends[1])];
    const places = shown.map((at) => (100 * (at - ends[0])) / (ends[1] - ends[0]));
    mark.setAttribute("x", `${places[0]}%`);
    mark.setAttribute("width", `${places[1] - places[0]}%`);
    if (range === null) mark.remove();
    else plot.append(mark);
    document.dispatchEvent(new CustomEvent("range", { detail: range && shown }));
    const counted = isWhole ? `: ${countOf(chosen.rows.length)} of ${countOf(all.rows.length)}` : "";
    const [since, until] = [from > ends[0] ? ` from ${clock.shown(from)}` : "", to < ends[1] ? `${from > ends[0] ? " and" : ""} before ${clock.shown(to)}` : ""];
    said.className = "";
    said.textContent = range === null ? "" : `Shown are ${since || until ? `rebalances that began${since}${until}` : "all rebalances"}${counted}`;
  };
  // Shows what words choose and keeps them in the address, behind the anchor of a section.
  const choose = (words, anchor) => {
    const own = WORDS.filter((name) => words[name]);
    try {
      const [from, to] = clock.resolved(words);
      if ((from ?? -Infinity) > data.end || (to ?? Infinity) <= ends[0]) {
        throw new Error(`nothing lies there: the trace lasts from ${clock.shown(first)} to ${clock.shown(data.end)}`);
      }
      range = own.length ? [from ?? -Infinity, to ?? Infinity] : null;
      shownWords = words;
      fields[0].value = words.since ?? words.last ?? (from === null ? "" : clock.typed(from));
      fields[1].value = words.until ?? (to === null ? "" : clock.typed(to));
    } catch (error) {
      said.textContent = error.message;
      said.className = "bad";
      return;
    }
    draw();
    const parts = [anchor, ...own.map((name) => `${name}=${encodeURIComponent(words[name])}`)].filter(Boolean);
    if (parts.length || location.hash) history.replaceState(null, "", `#${parts.join("&")}`);
  };
  const inAddress = () => {
    const parts = location.hash.slice(1).split("&");
    const words = parts.map((part) => /^(since|until|last|around)=(.*)$/.exec(part)).filter(Boolean);
    return [Object.fromEntries(words.map(([, name, text]) => [name, decoded(text)])), parts[0].includes("=") ? "" : parts[0]];
  };
  const between = (from, to) => {
    const step = 10 ** Math.max(-3, Math.floor(Math.log10((to - from) / 100)));
    const [since, until] = [Math.round(from / step) * step, Math.round(to / step) * step];
    choose({ since: since > first ? clock.typed(since) : "", until: until < ends[1] ? clock.typed(until) : "" }, inAddress()[1]);
  };
  const moved = (low, high) => {
    const [from, to] = range === null ? [first, ends[1]] : [Math.max(range[0], first), Math.min(range[1], ends[1])];
    const length = Math.min(ends[1] - first, (to - from) * (high - low));
    const begin = Math.min(Math.max(first, from + (to - from) * low), ends[1] - length);
    between(begin, begin + length);
  };
  const keys = { ArrowLeft: [-0.5, 0.5], ArrowRight: [0.5, 1.5], ArrowUp: [0.25, 0.75], ArrowDown: [-0.5, 1.5] };

  const lasts = PRESETS.filter((text) => lengthOf(text) < data.end - first).slice(-3);
  const buttons = [...lasts.map((last) => [`last ${last}`, { last }]), ["all", {}]].map(([text, words]) => {
    const button = made("button", { type: "button" }, text);
    button.addEventListener("click", () => choose(words, inAddress()[1]));
    return button;
  });
  box.after(made("div", { className: "tools range-bar" }, ...fields.map((field) => made("label", {}, `${field.name} `, field)), ...buttons, said));
  said.setAttribute("aria-live", "polite");
  fields.forEach((field) => field.addEventListener("change", () => choose(Object.fromEntries(fields.map(({ name, value }) => [name, value.trim()])), inAddress()[1])));
  chart.tabIndex = 0;
  chart.setAttribute("role", "group");
  chart.title = "Drag to choose a range of the page. Keys: arrows move it, up narrows and down widens it, Escape ends it.";
  chart.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") choose({}, inAddress()[1]);
    else if (keys[event.key]) moved(...keys[event.key]);
    else return;
    event.preventDefault();
  });
  makeDraggable(plot, (low, high) => between(...[low, high].map((share) => ends[0] + share * (ends[1] - ends[0]))));
  plot.addEventListener("dblclick", () => choose({}, inAddress()[1]));
  box.hidden = false;
  window.addEventListener("hashchange", () => {
    const [words, anchor] = inAddress();
    choose(Object.keys(words).length || !anchor ? words : shownWords, anchor);
    if (anchor) openTarget();
  });
  const [words, anchor] = inAddress();
  if (Object.keys(words).length) choose(words, anchor);
  if (anchor) openTarget();
};

document.querySelectorAll(".range").forEach(makeRange);
