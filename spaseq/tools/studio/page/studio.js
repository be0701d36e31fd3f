// The page of the studio. What it asks the server is described in docs/studio.md.

import { Editor } from "./editor.js";

const VERSION = 1;
const PAUSE = 200; // ms without a keystroke before the query is checked
const LONGEST_LINK = 60000; // characters of a shared address
const KEPT = "spaseq-studio"; // of the session's storage: what was written, for a reload
const MIME = { events: "events.csv", stream: "stream.nq", kb: "knowledge.ttl" };
const READING = {
  ceql: ["type_column", "type", "time", "time_unit", "time_from", "interval", "lateness", "late",
    "delimiter", "decimal", "quote", "encoding", "time_format", "column_types"],
  spaseq: ["event_by", "time", "time_unit", "time_from", "interval", "ties", "lateness", "late", "malformed", "entailment"],
};
const PLACEHOLDERS = {
  type_column: "type", type: "none", event_by: "graph, subject, size:N", time: { ceql: "column", spaseq: "predicate" }, time_unit: "s, ms, us, ns",
  time_from: "arrival", interval: "1ms", ties: "instant, arrival", lateness: "0s", late: "drop, error", malformed: "drop, error",
  entailment: "rdfs, owl-rl", delimiter: "guessed", decimal: "guessed", quote: "\"", encoding: "utf-8", time_format: "ISO 8601",
  column_types: "id=TEXT, price=FLOAT",
};
const $ = (id) => document.getElementById(id);

let token = "";
let patterns = {};
let known = [];
let files = []; // {role, name, file, text, own}: `own`: as the server has it; text null: read from there
let current = 0; // of files
let drawn = null; // the text of the query at the last run
let running = false;
let runs = 0; // counts them
let edits = 0; // counts changes
let failure = null; // {edits, found}: what ended the last run, if nothing was changed since
let turn = 0; // counts what was begun: an answer to what was there before is dropped
let begun = false; // whether there is something to work on
let origin = ""; // what the page began with, as `written` has it
let address = ""; // the same, of what the address has
let drafts = {}; // by the name of a setup: what was made of it, as `written` has it
const state = { setup: "", source: "query", reading: {}, valuations: false };
const editor = new Editor($("query"), "Query", () => changed());

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

// -- the server

async function ask(address, body) {
  const request = { headers: { "X-Spaseq-Token": token } };
  if (body !== undefined) {
    request.method = "POST";
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify({ version: VERSION, ...body });
  }
  try {
    return await (await fetch(address, request)).json();
  } catch {
    return failed("the studio does not answer", "is the command still running?");
  }
}

function failed(problem, hint) {
  return { errors: [{ problem, hint, line: null, column: null, start: null, end: null, expected: [] }] };
}

function asked(texts) {
  return {
    language: $("language").value, text: editor.text, source: state.source, setup: state.setup,
    reading: state.reading, valuations: state.valuations,
    files: files.map(({ role, name, file, text }) => ({ role, name, file, text: text === null ? null : texts ? text : "" })),
  };
}

// -- checks, while the query is written

let waiting = 0;
let checking = false;
let again = false;

function changed() {
  edits++;
  busy(true);
  clearTimeout(waiting);
  waiting = setTimeout(() => { remember(); check(); }, PAUSE);
}

function busy(yes) { $("messages").setAttribute("aria-busy", String(yes)); }

async function check() {
  busy(true);
  if (checking) { again = true; return; }
  checking = true;
  const text = editor.text;
  const found = await ask("/api/check", asked(false));
  checking = false;
  if (again || text !== editor.text) { again = false; return check(); }
  if (!found.errors.length && failure && failure.edits === edits) sayFailure();
  else { editor.mark(found.errors); say(found); }
  busy(false);
  const wrong = found.errors.length > 0;
  $("results").classList.toggle("old", wrong);
  $("since").hidden = drawn === null || drawn === text;
  for (const name of ["command", "python"]) $(name).textContent = found[name] || found.input || "";
  if (wrong) return;
  $("explain").textContent = found.explain || "";
  if (found.automaton && drawn !== text) automaton(found.automaton); // else it is lit by the run
}

function automaton(found) {
  if (found.svg) picture("automaton", found.svg);
  else $("automaton").replaceChildren(element("p", "none", found.problem, element("br"), found.hint));
  $("automaton").classList.remove("some");
}

function say(found) {
  const lines = found.errors.map((error) => {
    const place = error.line === null ? "" : `${error.line}:${error.column}: `;
    const line = element("button", "problem", element("b", "", place), error.problem);
    if (error.start !== null) line.addEventListener("click", () => editor.select(error.start, error.end));
    const more = [];
    if (error.expected && error.expected.length) more.push("expected: " + error.expected.join(", "));
    if (error.hint) more.push("hint: " + error.hint);
    if (more.length) line.append(element("span", "hint", more.join("\n")));
    return line;
  });
  if (!lines.length) {
    lines.push(element("p", "valid", "✓ valid"));
    for (const text of found.warnings || []) lines.push(element("p", "warning", "warning: " + text));
    for (const text of found.notes || []) lines.push(element("p", "note", "note: " + text));
  }
  $("messages").replaceChildren(...lines);
}

// -- runs

// The server may not have the run yet, if it is stopped at once.
async function stop() {
  const mine = runs;
  while (running && mine === runs) {
    const found = await ask("/api/cancel", {});
    if (found.stopped !== false) return;
    await new Promise((done) => setTimeout(done, PAUSE));
  }
}

function sayFailure() {
  editor.mark(failure.found.errors);
  say(failure.found);
}

async function run() {
  if (running) return;
  running = true;
  runs++;
  failure = null;
  $("run").setAttribute("aria-disabled", "true"); // not `disabled`: that would take the focus away
  $("cancel").hidden = false;
  $("status").textContent = "running …";
  const [text, mine, before] = [editor.text, turn, edits];
  const found = await ask("/api/run", asked(true));
  running = false;
  $("run").setAttribute("aria-disabled", "false");
  if (document.activeElement === $("cancel")) $("run").focus();
  $("cancel").hidden = true;
  if (mine !== turn) return; // it was of another example
  if (found.rows === undefined) {
    const stopped = found.errors[0].kind === "Cancelled";
    $("status").textContent = stopped ? "stopped" : "failed";
    if (stopped) return;
    failure = { edits: before, found };
    if (text === editor.text) sayFailure(); else say(found);
    $("results").classList.add("old");
    return;
  }
  if (found.errors.length) failure = { edits: before, found };
  drawn = text;
  $("since").hidden = drawn === editor.text;
  $("results").classList.remove("old");
  show(found);
  if (text === editor.text && found.errors.length) say(found);
}

function show(found) {
  const rows = found.rows.length;
  const kind = found.columns[0].kind; // a CONSTRUCT has several rows for a match, an ASK one for none
  const number = kind === "graph" ? found.steps.length : rows;
  const failed = found.errors.length > 0;
  const many = failed && !rows ? "failed" : kind === "boolean" ? `answer: ${found.rows[0][0]}`
    : `${found.truncated ? "first " : ""}${number.toLocaleString("en")} ${number === 1 ? "match" : "matches"}`;
  const until = failed && rows ? ", then an error" : "";
  $("status").textContent = `${many}${until} in ${found.seconds} s`;
  $("count").textContent = `${many}${until} · ${found.events.toLocaleString("en")} events read`;
  const notes = [];
  for (const error of found.errors) notes.push(element("p", "problem", error.problem, " ", element("span", "hint", error.hint)));
  for (const text of found.warnings || []) notes.push(element("p", "warning", "warning: " + text));
  for (const text of found.notes || []) notes.push(element("p", "note", text));
  if (!rows && !failed) notes.unshift(element("p", "none", "No match. What was read:"));
  $("notes").replaceChildren(...notes);
  const some = found.steps.some((steps) => steps.length);
  $("steps").replaceChildren(...(some ? [element("p", "none", "Point at a match, or go through them with the arrow keys: what it took stands here.")] : []));
  $("table").replaceChildren(...(rows ? [table(found)] : []));
  if (found.timeline) picture("timeline", found.timeline);
  else $("timeline").replaceChildren(element("p", "none", rows ? "Too much to draw." : failed ? "" : "No match to draw."));
  if (found.automaton) automaton(found.automaton);
  for (const part of document.querySelectorAll("#timeline g.match"))
    part.addEventListener("mouseenter", () => lit(found.matches.indexOf(Number(part.dataset.match)), found));
}

const NUMBERS = new Set(["number", "integer", "decimal", "double", "float", "int", "long", "short", "byte",
  "nonNegativeInteger", "positiveInteger"]);

function table(found) {
  const right = found.columns.map((column) => NUMBERS.has(column.kind));
  const head = element("tr", "", ...found.columns.map((column, i) => {
    const cell = element("th", right[i] ? "right" : "", column.name, element("small", "", column.kind === column.name ? "\u00a0" : column.kind));
    cell.scope = "col";
    return cell;
  }));
  const body = element("tbody");
  found.rows.forEach((cells, number) => {
    const row = element("tr", "", ...cells.map((cell, i) => element("td", right[i] ? "right" : "", cell)));
    row.tabIndex = number ? -1 : 0; // Tab comes to one of them, the arrow keys to the others
    row.addEventListener("focus", () => {
      for (const other of body.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
      row.tabIndex = 0;
      lit(number, found);
    });
    row.addEventListener("mouseenter", () => lit(number, found));
    row.addEventListener("keydown", (event) => {
      const other = { ArrowDown: row.nextSibling, ArrowUp: row.previousSibling, Home: body.firstChild, End: body.lastChild }[event.key];
      if (other) { event.preventDefault(); other.focus(); }
    });
    body.append(row);
  });
  return element("table", "", element("thead", "", head), body);
}

// Shows the steps of the match of a row, which line of the timeline it is, and its way through the automaton.
function lit(number, found) {
  if (number < 0) return;
  document.querySelectorAll("#table tbody tr").forEach((row, i) => row.classList.toggle("lit", i === number));
  const match = found.matches[number];
  document.querySelectorAll("#timeline g.match").forEach((part) =>
    part.classList.toggle("lit", match !== null && part.dataset.match === String(match)));
  $("timeline").classList.toggle("some", match !== null && match < found.drawn);
  const way = new Set(match === null ? [] : found.ways[match]);
  $("automaton").classList.toggle("some", way.size > 0);
  for (const part of document.querySelectorAll("#automaton g.node, #automaton g.edge"))
    part.classList.toggle("lit", [...part.classList].some((name) => way.has(name)));
  const steps = match === null ? [] : found.steps[match];
  $("steps").replaceChildren(...(steps.length ? [element("table", "", element("tbody", "", ...steps.map(([name, place, time, event]) =>
    element("tr", "", element("th", "", name), element("td", "right", String(place)), element("td", "", time), element("td", "event", event)))))] : []));
}

// An SVG document of the server, without anything that could run or load.
function picture(place, text) {
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  for (const part of [svg, ...svg.querySelectorAll("*")]) {
    if (["script", "foreignObject", "iframe"].includes(part.localName)) part.remove();
    for (const { name } of [...part.attributes])
      if (name.startsWith("on") || name === "href" || name === "xlink:href" || name === "style" || name === "tabindex") part.removeAttribute(name);
  }
  $(place).replaceChildren(document.importNode(svg, true));
}

// -- the events

function showFiles() {
  $("files").replaceChildren(...files.map((file, number) => {
    const tab = element("button", "", file.name && file.role === "stream" ? `${file.name}: ${file.file}` : file.file);
    tab.setAttribute("aria-pressed", String(number === current));
    tab.addEventListener("click", () => { current = number; showFiles(); });
    return tab;
  }));
  const file = files[current];
  $("events").disabled = !file || file.text === null;
  $("events").value = !file ? "" : file.text === null ? `${file.file} is read from its place; it is too large, or no text.` : file.text;
  if (!file) { $("file").replaceChildren(); return; }
  const role = element("select", "", ...["events", "stream", "kb"].map((name) => new Option({ events: "events", stream: "stream", kb: "knowledge" }[name], name, false, name === file.role)));
  const fixed = file.text === null;
  role.disabled = fixed;
  role.addEventListener("change", () => { file.role = role.value; showFiles(); changed(); });
  const fields = [labelled("as", role)];
  if (file.role !== "events") fields.push(labelled(file.role === "kb" ? "IRI" : "stream", input(file.name, (value) => { file.name = value; }, fixed)));
  fields.push(labelled("file", input(file.file, (value) => { file.file = value; }, fixed)));
  const remove = element("button", "", "remove");
  remove.addEventListener("click", () => { files.splice(current, 1); current = Math.max(0, current - 1); showFiles(); changed(); });
  $("file").replaceChildren(...fields, remove);
}

function labelled(text, field) { return element("label", "", text + " ", field); }

function input(value, set, fixed = false) {
  const field = element("input");
  field.value = value;
  field.disabled = fixed;
  field.spellcheck = false;
  field.addEventListener("input", () => { set(field.value); changed(); });
  return field;
}

function showReading() {
  const language = $("language").value;
  const fields = READING[language].map((name) => {
    const field = input(state.reading[name] || "", (value) => {
      if (value) state.reading[name] = value; else delete state.reading[name];
    });
    field.placeholder = PLACEHOLDERS[name][language] || PLACEHOLDERS[name];
    return labelled(name.replace("_", " "), field);
  });
  if (language === "ceql") {
    const box = element("input");
    box.type = "checkbox";
    box.checked = state.valuations;
    box.addEventListener("change", () => { state.valuations = box.checked; changed(); });
    fields.push(labelled("which variable took what", box));
  }
  $("reading").replaceChildren(...fields);
  for (const name of Object.keys(state.reading)) if (!READING[language].includes(name)) delete state.reading[name];
}

// -- beginnings: an example, the command line, a shared address

// An example or the command line, as it was left, or else as it is; `draft`: as `written` had it.
async function begin(name, draft = drafts[name]) {
  let found = { files: [] };
  const mine = ++turn;
  if (running) stop();
  if (known.some((setup) => setup.name === name)) {
    found = await ask("/api/examples?name=" + encodeURIComponent(name));
    if (mine !== turn) return;
    if (found.errors.length) { say(found); return; }
    take({ ...found, setup: name, text: found.query });
    origin = JSON.stringify(written());
  } else origin = "";
  if (draft) {
    const texts = new Map(found.files.map((file) => [file.role + file.name + file.file, file.text]));
    const missing = [];
    const whole = draft.files.map((file) => {
      const own = texts.get(file.role + file.name + file.file); // null: the server reads it
      if (!("text" in file) && own === undefined) missing.push(file.file);
      return { text: own === undefined ? "" : own, ...file, own };
    });
    take({ ...draft, setup: name, files: whole });
    if (missing.length) $("status").textContent = `not in this studio: ${missing.join(", ")}`;
  }
  begun = true;
  remember();
  check();
}

function take(found) {
  drawn = null;
  $("since").hidden = true;
  $("status").textContent = $("count").textContent = "";
  for (const part of ["messages", "notes", "steps", "explain", "automaton", "command", "python"]) $(part).replaceChildren();
  for (const part of ["table", "timeline"]) $(part).replaceChildren(element("p", "none", "Ctrl+Enter runs the query."));
  state.setup = found.setup || "";
  state.source = found.source || "query";
  state.reading = { ...found.reading };
  state.valuations = found.valuations === true;
  files = found.files.map((file) => ({ own: file.text, ...file }));
  current = 0;
  $("language").value = found.language;
  editor.patterns = patterns[found.language];
  editor.text = found.text;
  $("setup").value = state.setup;
  showFiles();
  showReading();
}

// All that was written. Files as the server has them are only named.
function written() {
  const kept = files.map(({ role, name, file, text, own }) => ({ role, name, file, ...(text === own ? {} : { text }) }));
  return { v: VERSION, language: $("language").value, text: editor.text, setup: state.setup, source: state.source,
    reading: state.reading, valuations: state.valuations, files: kept };
}

// Keeps it for a reload, and for who goes to another example and comes back; false where there is too much of it.
function remember() {
  if (!begun) return true;
  const whole = written();
  const same = JSON.stringify(whole) === origin;
  if (same) delete drafts[state.setup]; else drafts[state.setup] = whole;
  $("reset").hidden = same || !origin;
  if (location.hash && JSON.stringify(whole) !== address) history.replaceState(null, "", location.pathname);
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ token, setup: state.setup, drafts }));
    return true;
  } catch {
    return false;
  }
}

function reset() {
  $("setup").focus(); // the button goes away
  delete drafts[state.setup];
  return begin(state.setup);
}

// The same as a part of an address: JSON, deflated, in base64url.
async function share() {
  const whole = written();
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(whole)));
  const code = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (code.length > LONGEST_LINK) { $("status").textContent = "too much text for an address"; return; }
  address = JSON.stringify(whole);
  history.replaceState(null, "", "#share=" + code);
  try { await navigator.clipboard.writeText(location.href); $("status").textContent = "address copied"; }
  catch { $("status").textContent = "the address has it now"; }
}

async function shared(code) {
  const bytes = Uint8Array.from(atob(code.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const whole = JSON.parse(new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes)));
  if (whole.v !== VERSION || typeof whole.text !== "string" || !READING[whole.language]) throw new Error("not a studio's address");
  address = JSON.stringify(whole);
  await begin(whole.setup, whole);
}

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function fromAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  if (words.get("token")) {
    token = words.get("token");
    words.delete("token");
    history.replaceState(null, "", words.size ? "#" + words : location.pathname);
  }
  let kept = {};
  try { kept = JSON.parse(sessionStorage.getItem(KEPT)) || {}; }
  catch { } // no storage, or none of ours
  token = token || kept.token || "";
  if (!known.length) {
    const found = await ask("/api/examples");
    if (found.errors.length) { say(found); return; }
    known = found.examples;
    patterns = found.patterns;
    const title = (setup) => setup.name ? `${setup.name} (${setup.language === "ceql" ? "CEQL" : "SPAseq"})` : setup.about;
    $("setup").replaceChildren(...known.map((setup) => { const made = new Option(title(setup), setup.name); made.title = setup.about; return made; }));
  }
  const again = !begun && kept.token === token; // a reload
  if (again) drafts = kept.drafts;
  let wrong = "";
  if (words.get("share")) {
    try { await shared(words.get("share")); return; }
    catch { wrong = "the shared address cannot be read; it may have been cut"; }
  }
  if (!begun && known.length) await begin(again ? kept.setup : known[0].name);
  if (wrong) $("status").textContent = wrong;
}

// -- the parts of the page

function view(name) {
  for (const part of document.querySelectorAll(".view")) part.hidden = part.id !== name;
  for (const tab of document.querySelectorAll("#tabs button")) tab.setAttribute("aria-pressed", String(tab.dataset.view === name));
}

$("run").addEventListener("click", run);
$("cancel").addEventListener("click", stop);
$("reset").addEventListener("click", reset);
$("share").addEventListener("click", share);
$("setup").addEventListener("change", () => {
  const name = $("setup").value;
  remember();
  return begin(name);
});
$("language").addEventListener("change", () => {
  editor.patterns = patterns[$("language").value];
  editor.draw();
  showReading();
  changed();
});
$("events").addEventListener("input", () => { if (files[current]) { files[current].text = $("events").value; changed(); } });
$("add").addEventListener("click", () => {
  const role = $("language").value === "ceql" ? "events" : "stream";
  const names = new Set(files.map((file) => file.file));
  let file = MIME[role];
  for (let i = 2; names.has(file); i++) file = MIME[role].replace(".", i + ".");
  files.push({ role, name: role === "stream" ? "S" + (files.filter((other) => other.role === role).length + 1) : "", file, text: "", own: undefined });
  current = files.length - 1;
  showFiles();
  $("events").focus();
  changed();
});
for (const tab of document.querySelectorAll("#tabs button")) tab.addEventListener("click", () => view(tab.dataset.view));
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
  if (event.key === "Escape" && running) stop();
});
window.addEventListener("beforeunload", (event) => { if (!remember()) event.preventDefault(); });
window.addEventListener("hashchange", fromAddress);
fromAddress();
