// The page works without this. It adds: dropping files, progress that moves, parts that renew themselves, numbers that
// follow the mouse or a finger, arrow keys between cells, and a word before typed results are left behind.
"use strict";

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

async function page(address) {
  const answer = await fetch(address, { credentials: "same-origin" });
  if (!answer.ok) throw new Error(await answer.text());
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// ── work that takes a while ───────────────────────────────────────────────────────────────────────────────────────

async function renew() {
  const fresh = await page(location.href);
  for (const old of all("[data-live][id]")) {
    const now = fresh.getElementById(old.id);
    if (now) old.replaceWith(document.adoptNode(now));
    else old.replaceChildren();
  }
  watchAll();
}

async function part(box) {
  const fresh = await page(box.dataset.from || box.dataset.part);
  const found = fresh.getElementById("part");
  if (found) box.replaceChildren(document.adoptNode(found));
}

async function finished(box) {
  const how = box.dataset.how;
  if (how === "go") location.reload();
  else if (how === "part") await part(box.closest("[data-from]"));
  else await renew();
}

async function watch(box) {
  if (box.dataset.watched || one(".told", box)) return;
  box.dataset.watched = "1";
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 400));
    if (!box.isConnected) return;
    let state;
    try {
      const answer = await fetch(box.dataset.work, { credentials: "same-origin" });
      state = await answer.json();
    } catch {
      say(box, "The server does not answer. It may have been stopped; start it again, and reload this page.");
      continue;
    }
    if (state.error) return say(box, state.error);
    if (state.done) return finished(box);
    const doing = one("[data-doing]", box);
    if (!doing) return location.reload(); // it was out of reach for a while
    if (doing.textContent !== state.doing) doing.textContent = state.doing; // it is read aloud
    one("[data-seconds]", box).textContent = state.seconds;
    one("progress", box).value = state.share;
  }
}

function say(box, text) {
  const told = document.createElement("p");
  told.className = "told";
  told.setAttribute("role", "alert");
  told.textContent = text;
  box.replaceChildren(told);
}

function watchAll() {
  all("[data-work]").forEach(watch);
}

// ── files that are dropped ────────────────────────────────────────────────────────────────────────────────────────

function drops(form) {
  const field = one("input[type=file]", form);
  field.addEventListener("change", () => field.files.length && form.requestSubmit());
  for (const kind of ["dragenter", "dragover"]) {
    form.addEventListener(kind, (event) => {
      event.preventDefault();
      form.classList.add("over");
    });
  }
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    field.files = event.dataTransfer.files;
    form.requestSubmit();
  });
}

// ── cells ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function cells(form) {
  let sent = false;
  const fields = () => all("td.result input:not([type=hidden])", form);
  form.addEventListener("submit", () => (sent = true));
  addEventListener("beforeunload", (event) => {
    if (!sent && fields().some((field) => field.value !== field.defaultValue)) event.preventDefault();
  });
  form.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (!(event.key in steps) || !event.target.closest("td.result")) return;
    const [row, column] = event.target.name.split(".");
    const same = fields().filter((field) => field.name.endsWith(`.${column}`));
    const next = same[same.findIndex((field) => field.name === `${row}.${column}`) + steps[event.key]];
    if (next) {
      event.preventDefault();
      next.focus();
      next.select();
    }
  });
  const wrong = one("[aria-invalid]", form);
  if (wrong) wrong.focus();
}

// ── slices ────────────────────────────────────────────────────────────────────────────────────────────────────────

// A picture says itself where its panels are, as it is drawn for a screen or for a telephone
const drawn = new Map();

async function panels(address) {
  const svg = await (await fetch(address, { credentials: "same-origin" })).text();
  return JSON.parse(decodeURIComponent(svg.match(/data-panels="([^"]+)"/)[1]));
}

function panelsOf({ currentSrc: address }) {
  if (!drawn.has(address)) drawn.set(address, panels(address));
  return drawn.get(address);
}

function valueAt({ ends, range, log, whole, values, choices }, share) {
  const value = log ? ends[0] * (ends[1] / ends[0]) ** share : ends[0] + share * (ends[1] - ends[0]);
  if (choices.length) return choices[Math.min(choices.length - 1, Math.max(0, Math.round(value)))];
  const apart = (other) => (log ? Math.abs(Math.log(other / value)) : Math.abs(other - value));
  if (values.length) return values.reduce((a, b) => (apart(b) < apart(a) ? b : a));
  return Math.min(range[1], Math.max(range[0], whole ? Math.round(value) : +value.toPrecision(4)));
}

async function valuesAt(picture, { clientX, clientY }) {
  const place = picture.getBoundingClientRect();
  const x = (clientX - place.left) / place.width;
  const y = (clientY - place.top) / place.height;
  const inside = ({ box: [left, top, right, bottom] }) => left <= x && x <= right && top <= y && y <= bottom;
  const panel = (await panelsOf(picture)).find(inside);
  if (!panel) return null;
  const [left, top, right, bottom] = panel.box;
  const shares = [(x - left) / (right - left), (bottom - y) / (bottom - top)];
  return Object.fromEntries(panel.axes.map((axis, i) => [axis.name, valueAt(axis, shares[i])]));
}

function asked(changed = {}) {
  const query = new URLSearchParams(new FormData(one("#point")));
  for (const [name, value] of Object.entries(changed)) query.set(name, value);
  return query;
}

// The numbers beside a picture follow the mouse, or a finger, and a click or a tap goes there
function pointing(box, go) {
  let waiting = null;
  let busy = false;
  let over = false; // an answer that comes when the pointer has left is for nobody
  const rest = one("[data-readout]", box).innerHTML;

  async function follow() {
    if (busy || !waiting) return;
    busy = true;
    const there = waiting;
    waiting = null;
    try {
      const answer = await fetch(`/pictures/predict?${asked(there)}`, { credentials: "same-origin" });
      if (!answer.ok) return;
      const found = await answer.json();
      if (!over) return;
      const settings = Object.entries(there).map(([name, value]) => [one(`label[for=${name}]`).textContent, String(value)]);
      const told = found.expected.map((each) => [each.outcome, each.text]);
      if (found.within) told.push(["limits hold", found.within]);
      readout(box, [...settings, ...told]);
    } finally {
      busy = false;
      follow();
    }
  }

  function leave() {
    over = false;
    waiting = null;
    one("[data-readout]", box).innerHTML = rest;
  }

  for (const picture of all(".slices", box)) {
    picture.addEventListener("pointermove", async (event) => {
      over = true;
      const there = await valuesAt(picture, event);
      if (!over) return;
      waiting = there;
      if (waiting) follow();
      else leave();
    });
    picture.addEventListener("pointerleave", leave);
    picture.addEventListener("click", async (event) => {
      const there = await valuesAt(picture, event);
      if (there) go(asked(there), picture);
    });
  }
}

function slices(box) {
  pointing(box, (query) => move(box, query));
  one("#point", box).addEventListener("submit", (event) => {
    event.preventDefault();
    move(box, asked());
  });
}

function contour(box) {
  pointing(box, (query, picture) => location.assign(`${picture.dataset.go}&${query}#two`));
}

async function move(box, query) {
  const fresh = await page(`/pictures/slices?${query}`);
  const now = document.adoptNode(one("[data-slices]", fresh));
  now.style.minHeight = `${box.offsetHeight}px`; // what stands below stays while the picture comes
  box.replaceWith(now);
  history.replaceState(null, "", `/pictures?${query}`);
  slices(now);
}

function readout(box, rows) {
  const list = one("[data-readout]", box);
  list.replaceChildren(
    ...rows.map(([name, text]) => {
      const row = document.createElement("div");
      row.append(document.createElement("dt"), document.createElement("dd"));
      row.firstChild.textContent = name;
      row.lastChild.textContent = text;
      return row;
    }),
  );
}

addEventListener("DOMContentLoaded", () => {
  watchAll();
  all("[data-drop]").forEach(drops);
  all("[data-typed]").forEach(cells);
  all("[data-slices]").forEach(slices);
  all("[data-contour]").forEach(contour);
  all("[data-part]").forEach(part);
});
