"use strict";
// The live page: reads /v1, follows /v1/events, draws. No library, nothing from elsewhere.

const WINDOW_MS = 60_000;
const KEPT_EVENTS = 200;
const POLL_MS = 2_000;
const MEMBERSHIP = ["HEARTBEAT", "OFFSET_COMMIT", "OFFSET_FETCH"];
const STATES = {
  Stable: "--stable", PreparingRebalance: "--preparing", AwaitingSync: "--syncing",
  Empty: "--empty", Dead: "--dead",
};
const ENTERS = {
  PREPARE_REBALANCE: "PreparingRebalance", JOIN_COMPLETE: "AwaitingSync",
  GROUP_STABLE: "Stable", SYNC_LEADER: "Stable", GROUP_EMPTY: "Empty", GROUP_DEAD: "Dead",
};
const TEXTS = ["reason_text", "client_reason"];
const LEFT_OUT = ["client_host", "client_id", "leader_id", "state_from", "state_to", "reason", "protocols"];
const token = new URLSearchParams(location.search).get("access_token");
const lanes = new Map();       // group id -> [{state, from, to, generation}]
let selected = null;           // group id
let groups = [];
let clock = null;              // the newest ClockView, and when it was read
let sawAt = 0;
let events = [];
let isDue = false;

const $ = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("--")) made.style.setProperty(key, value);
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function withToken(path) {
  if (!token) return path;
  return path + (path.includes("?") ? "&" : "?") + "access_token=" + encodeURIComponent(token);
}

async function read(path) {
  const answer = await fetch(withToken(path));
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// -- what is known --------------------------------------------------------------------------

function canonical(state) {
  return state === "CompletingRebalance" ? "AwaitingSync" : state;
}

function nowMs() {
  if (clock === null) return 0;
  if (clock.clock.startsWith("virtual")) return clock.group_ms;
  const factor = clock.clock.startsWith("scaled") ? Number(clock.clock.split(" ")[1]) : 1;
  return clock.group_ms + (performance.now() - sawAt) * factor;
}

function enters(groupId, state, atMs, generation) {
  const lane = lanes.get(groupId) ?? [];
  lanes.set(groupId, lane);
  const last = lane[lane.length - 1];
  if (last && last.to === null) {
    if (last.state === state && last.generation === generation) return;
    last.to = atMs;
  }
  lane.push({ state, from: atMs, to: state === "Dead" ? atMs : null, generation });
  if (lane.length > 300) lane.shift();
}

function take(item) {
  if (item.kind === "reset") { lanes.clear(); selected = null; }
  if (clock !== null && item.group_ms > nowMs()) { clock.group_ms = item.group_ms; sawAt = performance.now(); }
  const state = ENTERS[item.event];
  if (item.kind === "group" && item.group_id && state) {
    enters(item.group_id, state, item.group_ms, item.generation);
  }
  if (!MEMBERSHIP.includes(item.event)) events.unshift(item);
  events.length = Math.min(events.length, KEPT_EVENTS);
  refreshSoon();
}

// -- drawing --------------------------------------------------------------------------------

function time(ms) {
  return new Date(ms).toISOString().slice(11, 23);
}

function drawFacts(server) {
  clock = server.clock;
  sawAt = performance.now();
  $("bootstrap").textContent = server.bootstrap.split(",")[0];
  const facts = {
    Kafka: server.profile, bootstrap: server.bootstrap, clock: server.clock.clock,
    "group time": `${time(server.clock.group_ms)} UTC`, connections: server.connections,
  };
  const known = Object.entries(facts).filter(([, value]) => value !== undefined);
  $("facts").replaceChildren(...known.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))));
}

function drawGroups() {
  $("no-groups").hidden = groups.length > 0;
  $("groups").replaceChildren(...groups.map((group) => {
    const state = canonical(group.state);
    const button = element("button", {
      type: "button", "aria-pressed": String(group.group_id === selected),
      "data-group": group.group_id, "data-state": state, "data-generation": group.generation,
      "--state": `var(${STATES[state]})`,
    },
    element("span", { class: "name" }, group.group_id),
    element("span", { class: "generation" }, `gen ${group.generation}`),
    element("span", { class: "more" },
      `${group.state} · ${group.member_count} ${group.member_count === 1 ? "member" : "members"}` +
      (group.protocol_name ? ` · ${group.protocol_name}` : "")));
    button.addEventListener("click", () => { selected = group.group_id; drawGroups(); refreshSoon(); });
    return element("li", {}, button);
  }));
}

function hue(index) {
  return Math.round((index * 137.5 + 150) % 360);
}

function letter(index) {
  return index < 26 ? String.fromCharCode(65 + index) : `${letter(Math.floor(index / 26) - 1)}${letter(index % 26)}`;
}

function split(name) {
  const at = name.lastIndexOf("-");
  return [name.slice(0, at), Number(name.slice(at + 1))];
}

function drawGroup(group, topics) {
  $("group-panel").hidden = group === null;
  if (group === null) return;
  const panel = $("group-panel");
  panel.dataset.group = group.group_id;
  panel.dataset.generation = group.generation;
  $("group-title").textContent = `Group ${group.group_id}`;
  const facts = [
    ["state", group.state], ["generation", group.generation],
    ["protocol", group.protocol_name ?? "–"],
  ];
  if (group.coordinator_id !== undefined) facts.push(["coordinator", `broker ${group.coordinator_id}`]);
  $("group-facts").replaceChildren(...facts.flatMap(([name, value], index) =>
    [index ? " · " : "", `${name} `, element("b", {}, String(value))]));
  const places = new Map(group.members.map((member, index) => [member.member_id, index]));
  document.querySelector("#members tbody").replaceChildren(...group.members.map((member, index) =>
    element("tr", { "data-member": member.member_id },
      element("td", {}, element("span", { class: "badge", "--hue": hue(index) }, letter(index)),
        " ", element("span", { class: "mono", title: member.member_id }, short(member)),
        member.is_leader ? " (leader)" : ""),
      element("td", {}, `${member.client_id || "–"} at ${member.client_host}`),
      element("td", {}, member.session_timeout_ms ? `${member.session_timeout_ms / 1000} s` : "–"),
      element("td", {}, String(member.assignment.length)),
      element("td", {}, member.waits_for ?? "–"))));
  $("partitions").replaceChildren(...partitionRows(group, topics, places));
}

function short(member) {
  if (member.group_instance_id) return member.group_instance_id;
  return shortId(member.member_id);
}

function shortId(id) {
  return id.length > 24 ? `${id.slice(0, 14)}…${id.slice(-6)}` : id;
}

function partitionRows(group, topics, places) {
  const owners = new Map();
  const rows = new Map();      // topic or connector -> partition numbers
  const add = (name, number) => rows.set(name, (rows.get(name) ?? new Set()).add(number));
  for (const member of group.members) {
    for (const owned of member.assignment) {
      const [name, number] = split(owned);
      if (Number.isNaN(number)) continue;
      owners.set(owned, member.member_id);
      add(name, number);
    }
    for (const topic of member.subscription) {
      const known = topics.find((each) => each.name === topic);
      for (const each of known ? known.partitions : []) add(topic, each.partition);
    }
  }
  const lags = new Map();
  for (const each of group.offsets) {
    add(each.topic, each.partition);
    lags.set(`${each.topic}-${each.partition}`, each);
  }
  return [...rows].sort(([a], [b]) => a.localeCompare(b)).map(([name, numbers]) =>
    element("div", { class: "topic" },
      element("span", { class: "name mono" }, name),
      element("div", { class: "cells" }, ...[...numbers].sort((a, b) => a - b).map((number) =>
        cell(`${name}-${number}`, number, owners, places, lags)))));
}

function cell(name, number, owners, places, lags) {
  const owner = owners.get(name) ?? "";
  const index = places.get(owner);
  const offset = lags.get(name);
  const lag = offset && offset.lag !== null ? `lag ${offset.lag}` : " ";
  const made = element("div", {
    class: "cell", "data-owner": owner, "data-partition": name,
    title: [name, owner || "nobody", offset ? `offset ${offset.offset}` : ""].filter(Boolean).join("\n"),
  }, `${number} ${index === undefined ? "–" : letter(index)}`, element("small", {}, lag));
  if (index !== undefined) made.style.setProperty("--hue", hue(index));
  return made;
}

function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawTimeline() {
  const box = $("timeline");
  const width = Math.max(240, box.clientWidth);
  const end = Math.max(nowMs(), ...[...lanes.values()].map((lane) => lane[lane.length - 1].from));
  const start = Math.min(end - WINDOW_MS, end - 1_000);
  const names = [...lanes].filter(([, lane]) => lane.some((each) => (each.to ?? end) >= start))
    .map(([name]) => name).slice(-12);
  const left = width < 520 ? 0 : Math.min(180, width / 4);
  const laneHeight = left === 0 ? 40 : 26;
  const height = Math.max(1, names.length) * laneHeight + 22;
  const x = (ms) => left + ((ms - start) / (end - start)) * (width - left - 2);
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": "States of groups over the last minute of group time" });
  for (let step = 0; step <= 6; step += 1) {
    const at = start + ((end - start) * step) / 6;
    drawn.append(svg("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: height - 16 }));
    const shown = step === 6 ? "now" : `-${Math.round((end - at) / 1000)} s`;
    if (step % 2 === 0) {
      drawn.append(svg("text", { class: "tick", x: x(at), y: height - 3,
        "text-anchor": step === 0 ? "start" : step === 6 ? "end" : "middle" }, shown));
    }
  }
  names.forEach((name, row) => drawn.append(lane(name, row * laneHeight, left, laneHeight, start, end, x)));
  if (names.length === 0) {
    drawn.append(svg("text", { class: "tick", x: left + 8, y: 18 }, "no group has changed in the last minute"));
  }
  box.replaceChildren(drawn);
}

function lane(name, y, left, laneHeight, start, end, x) {
  const made = svg("g", { "data-lane": name });
  const label = name.length > 24 ? `${name.slice(0, 23)}…` : name;
  const top = left === 0 ? y + 17 : y + 4;
  made.append(svg("text", { x: 0, y: left === 0 ? y + 12 : y + 18 }, label));
  for (const each of lanes.get(name)) {
    const from = Math.max(start, each.from);
    const to = each.to ?? end;
    if (to < start) continue;
    const span = Math.max(2, x(to) - x(from));
    const title = `${each.state}, generation ${each.generation}, ${((to - each.from) / 1000).toFixed(3)} s`;
    made.append(svg("rect", { x: x(from), y: top, width: span, height: 18, rx: 2,
      "data-state": each.state, "data-generation": each.generation ?? "" },
    svg("title", {}, title)));
    made.lastChild.style.fill = `var(${STATES[each.state]})`;
    if (each.state === "Stable" && span > 34) {
      made.append(svg("text", { class: "inside", x: x(from) + 5, y: top + 13 }, `gen ${each.generation}`));
    }
  }
  return made;
}

function told(item) {
  const details = item.details ?? {};
  const shown = Object.entries(details).filter(([name]) => !LEFT_OUT.includes(name)).map(([name, value]) =>
    TEXTS.includes(name) ? value : `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`);
  const member = item.member_id ? shortId(item.member_id) : null;
  return [member, ...shown].filter(Boolean).join(" · ");
}

function drawLog() {
  document.querySelector("#log tbody").replaceChildren(...events.slice(0, 60).map((item) =>
    element("tr", { "data-seq": item.seq },
      element("td", { class: "mono" }, time(item.group_ms)),
      element("td", {}, item.group_id ?? (item.broker_id ? `broker ${item.broker_id}` : "–")),
      element("td", {}, item.event + (item.generation === undefined ? "" : ` (${item.generation})`)),
      element("td", { class: "wide", title: JSON.stringify(item, null, 1) }, told(item)))));
}

function drawLegend() {
  $("legend").replaceChildren(...Object.entries(STATES).filter(([state]) => state !== "Dead").map(([state, colour]) => {
    const swatch = element("i");
    swatch.style.background = `var(${colour})`;
    return element("li", {}, swatch, state);
  }));
}

// -- life -----------------------------------------------------------------------------------

async function refresh() {
  const [server, listed] = await Promise.all([read("/v1/server"), read("/v1/groups")]);
  groups = listed;
  drawFacts(server);
  for (const group of groups) {
    if (!lanes.has(group.group_id)) enters(group.group_id, canonical(group.state), nowMs(), group.generation);
  }
  if (!groups.some((group) => group.group_id === selected)) selected = groups[0]?.group_id ?? null;
  drawGroups();
  const [group, topics] = selected === null ? [null, []] : await Promise.all([
    read(`/v1/groups/${encodeURIComponent(selected)}`), read("/v1/topics")]);
  drawGroup(group, topics);
  drawLog();
  drawTimeline();
}

function refreshSoon() {
  if (isDue) return;
  isDue = true;
  setTimeout(async () => {
    isDue = false;
    try { await refresh(); } catch (error) { link("lost", String(error.message)); }
  }, 60);
}

function link(state, text) {
  $("link").dataset.link = state;
  $("link").textContent = text;
}

function follow() {
  const source = new EventSource(withToken("/v1/events?after=0"));
  source.onopen = () => { link("live", "live"); refreshSoon(); };
  source.onerror = () => link("lost", "no connection, trying again");
  const heard = (message) => take(JSON.parse(message.data));
  for (const kind of ["group", "fault", "clock", "broker", "topic", "connection", "reset", "trace"]) {
    source.addEventListener(kind, heard);
  }
  source.addEventListener("gap", () => { lanes.clear(); events = []; refreshSoon(); });
}

drawLegend();
drawTimeline();
follow();
setInterval(refreshSoon, POLL_MS);
setInterval(() => { if (clock !== null && !clock.clock.startsWith("virtual")) drawTimeline(); }, 500);
