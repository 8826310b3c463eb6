"use strict";
// Offsets everywhere count Unicode code points, as the API does; JavaScript's strings count UTF-16 units.
const $ = (id) => document.getElementById(id);
const state = { model: { labels: [], task: "ner" }, results: [], status: ["nothing", {}], open: null };

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null));
  return element;
}
function hue(label) {
  return "h" + Math.max(0, state.model.labels.indexOf(label)) % 12;
}
function setStatus(key, values = {}) {
  state.status = [key, values];
  $("status").dataset.word = "";
  $("status").removeAttribute("data-word");
  $("status").textContent = word(key, values);
}
function complain(text) {
  $("problem").hidden = !text;
  $("problem").textContent = text || "";
}

// ── talking to the service ──
function headers() {
  const token = $("token").value;
  return token ? { Authorization: "Bearer " + token } : {};
}
async function loadModel() {
  const response = await fetch("/model", { headers: headers() });
  if (response.status === 401) {
    $("token-row").hidden = false;
    return false;
  }
  state.model = await response.json();
  $("model-name").textContent = state.model.name || "";
  $("pair").hidden = !state.model.pairs;
  const examples = state.model.examples || [];
  $("examples").hidden = examples.length === 0;
  $("examples").querySelector("ul").replaceChildren(...examples.map((example) => {
    const pick = () => { $("text").value = example.text; $("text-pair").value = example.text_pair || ""; send(); };
    return make("li", {}, make("button", { type: "button", textContent: example.text, onclick: pick }));
  }));
  return true;
}
async function ask(texts, pairs) {
  const body = { texts: pairs ? texts.map((text, i) => ({ text, text_pair: pairs[i] })) : texts };
  const response = await fetch("/predict", {
    method: "POST", headers: { "Content-Type": "application/json", ...headers() }, body: JSON.stringify(body),
  });
  if (response.ok) return (await response.json()).predictions;
  const detail = JSON.stringify((await response.json().catch(() => ({}))).detail || response.status);
  if (response.status === 401) {
    $("token-row").hidden = false;
    $("token").focus();
    throw new Error(word("needToken"));
  }
  if (response.status === 413) throw new Error(word("tooLarge", { detail }));
  if (response.status === 429) throw new Error(word("busy", { seconds: response.headers.get("Retry-After") }));
  throw new Error(word("refused", { detail }));
}
async function send() {
  const whole = $("text").value;
  const pair = state.model.pairs ? $("text-pair").value : "";
  // A pair is one text each; otherwise every line is a text of its own.
  const texts = pair ? [whole] : whole.split(/\r?\n/).filter((line) => line.trim());
  if (texts.length) await predict(texts, pair ? [pair] : null);
}
async function predict(texts, pairs) {
  complain("");
  setStatus("working");
  $("send").disabled = true;
  const started = performance.now();
  try {
    if (!state.model.name) await loadModel();
    const predictions = await ask(texts, pairs);
    state.results = predictions.map((prediction) => ({
      text: prediction.text, pair: prediction.text_pair, characters: Array.from(prediction.text),
      entities: prediction.entities || null, labels: prediction.labels || null, scores: prediction.scores || null,
      edited: false, cursor: null,
    }));
    const seconds = ((performance.now() - started) / 1000).toFixed(2);
    setStatus("done", { texts: texts.length, seconds });
    showResults();
    $("results").focus({ preventScroll: window.innerWidth > 960 });
  } catch (error) {
    setStatus("nothing");
    complain(error instanceof TypeError ? word("failed", { detail: error.message }) : error.message);
  } finally {
    $("send").disabled = false;
  }
}

// ── files ──
async function openFile(file) {
  const bytes = await file.arrayBuffer();
  let text = null;
  for (const encoding of ["utf-8", "gb18030"]) {
    try { text = new TextDecoder(encoding, { fatal: true }).decode(bytes); break; } catch { text = null; }
  }
  if (text === null) return complain(word("badFile", { name: file.name }));
  const texts = textsOf(text);
  if (!texts.length) return complain(word("noTexts", { name: file.name }));
  $("text").value = texts.map((one) => one.replace(/\r?\n/g, " ")).join("\n");
  await predict(texts, null);
}
function textsOf(content) {
  const trimmed = content.trim();
  const parsers = [(whole) => [JSON.parse(whole)].flat(), (whole) => whole.split(/\r?\n/).filter(Boolean).map((l) => JSON.parse(l))];
  for (const parse of parsers) {
    try {
      const rows = parse(trimmed).map((row) => (typeof row === "string" ? row : row.text)).filter((t) => typeof t === "string");
      if (rows.length) return rows;
    } catch { continue; } // not JSON of this shape: the next, or plain lines
  }
  return trimmed.split(/\r?\n/).filter((line) => line.trim());
}

// ── showing ──
function showResults() {
  const ner = state.model.task === "ner";
  $("how").hidden = state.results.length === 0;
  $("how").textContent = word(ner ? "howNer" : "howClasses");
  $("after").hidden = state.results.length === 0;
  $("legend").replaceChildren(...(ner && state.results.length ? state.model.labels : []).map((label) =>
    make("li", {}, make("span", { className: "chip " + hue(label), textContent: label }))));
  $("cards").replaceChildren(...state.results.map((result, index) =>
    make("li", {}, result.entities ? textWithMarks(result, index) : textWithBars(result, index))));
}
function refresh(index) {
  const card = $("cards").children[index];
  const result = state.results[index];
  card.replaceChildren(result.entities ? textWithMarks(result, index) : textWithBars(result, index));
}
function piece(result, start, end) {
  const element = make("span", { textContent: result.characters.slice(start, end).join("") });
  element.dataset.start = start;
  return element;
}
function textWithMarks(result, index) {
  const box = make("div", { className: "text", tabIndex: 0 });
  box.setAttribute("role", "group");
  box.dataset.index = index;
  let at = 0;
  for (const entity of [...result.entities].sort((a, b) => a.start - b.start)) {
    if (entity.start < at) continue; // nested: the outer one is drawn
    if (entity.start > at) box.append(piece(result, at, entity.start));
    const tip = word("offsets", { start: entity.start, end: entity.end }) + (entity.score ? ` · ${entity.score.toFixed(3)}` : "");
    const tag = make("small", { textContent: entity.label });
    const mark = make("mark", { className: hue(entity.label) + (entity.edited ? " edited" : ""), title: tip });
    mark.append(piece(result, entity.start, entity.end), tag);
    mark.dataset.entity = result.entities.indexOf(entity);
    box.append(mark);
    at = entity.end;
  }
  if (at < result.characters.length) box.append(piece(result, at, result.characters.length));
  const nothing = result.entities.length ? null : make("p", { className: "quiet", textContent: word("none") });
  return make("div", {}, box, nothing);
}
function textWithBars(result, index) {
  const rows = Object.entries(result.scores || {}).sort((a, b) => b[1] - a[1]).slice(0, 30).map(([label, score]) => {
    const bar = make("div");
    bar.style.width = (100 * score).toFixed(1) + "%";
    const box = make("input", { type: state.model.multi_label ? "checkbox" : "radio", name: "class" + index,
      checked: result.labels.includes(label), ariaLabel: `${word("right")}: ${label}` });
    box.onchange = () => {
      const others = result.labels.filter((other) => other !== label);
      result.labels = state.model.multi_label ? (box.checked ? [...others, label] : others) : [label];
      result.edited = true;
    };
    return make("tr", {}, make("td", {}, box), make("td", { textContent: label }), make("td", { className: "bar" }, bar),
      make("td", { className: "number", textContent: (100 * score).toFixed(1) + " %" }));
  });
  const pair = result.pair ? make("p", { className: "text", textContent: result.pair }) : null;
  return make("div", {}, make("p", { className: "text", textContent: result.text }), pair, make("table", {}, make("tbody", {}, ...rows)));
}

// ── correcting entities: by pointer or by keyboard ──
function offsetOf(node, offset) {
  const holder = (node.nodeType === Node.TEXT_NODE ? node.parentElement : node).closest("[data-start]");
  if (!holder) return null;
  const before = node.nodeType === Node.TEXT_NODE ? holder.textContent.slice(0, offset) : "";
  return Number(holder.dataset.start) + Array.from(before).length;
}
function selectedIn(box) {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed || !box.contains(selection.anchorNode) || !box.contains(selection.focusNode)) return null;
  const ends = [offsetOf(selection.anchorNode, selection.anchorOffset), offsetOf(selection.focusNode, selection.focusOffset)];
  if (ends.includes(null) || ends[0] === ends[1]) return null;
  return ends.sort((a, b) => a - b);
}
function showSelection(box, [from, to]) {
  const place = (offset) => {
    const holders = [...box.querySelectorAll("[data-start]")];
    const holder = holders.filter((one) => Number(one.dataset.start) <= offset).pop() || holders[0];
    const units = Array.from(holder.textContent).slice(0, offset - Number(holder.dataset.start)).join("").length;
    return [holder.firstChild, Math.min(units, holder.textContent.length)];
  };
  getSelection().setBaseAndExtent(...place(from), ...place(to));
}
function openMenu(index, start, end, near) {
  const result = state.results[index];
  const touched = result.entities.filter((entity) => entity.start < end && entity.end > start);
  const change = (label) => {
    result.entities = result.entities.filter((entity) => !touched.includes(entity));
    if (label) result.entities.push({ start, end, label, text: result.characters.slice(start, end).join(""), edited: true });
    result.edited = true;
    closeMenu();
    refresh(index);
    $("cards").children[index].querySelector(".text").focus();
  };
  const buttons = state.model.labels.map((label) =>
    make("button", { type: "button", className: hue(label), textContent: label, onclick: () => change(label) }));
  if (touched.length) buttons.push(make("button", { type: "button", textContent: word("remove"), onclick: () => change(null) }));
  for (const button of buttons) button.setAttribute("role", "menuitem");
  const menu = $("menu");
  menu.setAttribute("aria-label", word("choose"));
  menu.replaceChildren(...buttons);
  menu.hidden = false;
  menu.style.top = `${near.bottom + scrollY + 6}px`;
  menu.style.left = `${Math.max(8, Math.min(near.left + scrollX, innerWidth - menu.offsetWidth - 8))}px`;
  state.open = index;
  buttons[0].focus();
}
function closeMenu() {
  $("menu").hidden = true;
  state.open = null;
}
function correctByPointer(event) {
  const box = event.target.closest(".text[data-index]");
  if (!box) return;
  const index = Number(box.dataset.index);
  const range = selectedIn(box);
  if (range) return openMenu(index, ...range, getSelection().getRangeAt(0).getBoundingClientRect());
  const mark = event.target.closest("mark");
  if (!mark) return;
  const entity = state.results[index].entities[Number(mark.dataset.entity)];
  openMenu(index, entity.start, entity.end, mark.getBoundingClientRect());
}
function correctByKey(event) {
  const box = event.target.closest(".text[data-index]");
  if (!box) return;
  const result = state.results[Number(box.dataset.index)];
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) {
    // The cursor is two characters, both included; without Shift they are the same one.
    const [anchor, head] = result.cursor || [0, step > 0 ? -1 : result.characters.length];
    const moved = Math.max(0, Math.min(result.characters.length - 1, head + step));
    result.cursor = event.shiftKey ? [Math.max(0, anchor), moved] : [moved, moved];
    showSelection(box, [Math.min(...result.cursor), Math.max(...result.cursor) + 1]);
  } else if (event.key === "Enter" || event.key === "Delete") {
    const range = selectedIn(box);
    if (!range) return;
    openMenu(Number(box.dataset.index), ...range, box.getBoundingClientRect());
    if (event.key === "Delete") {
      const removal = [...$("menu").children].find((button) => button.textContent === word("remove"));
      if (removal) removal.click(); else closeMenu();
    }
  } else return;
  event.preventDefault();
}

// ── downloading what was corrected ──
function download() {
  const lines = state.results.map((result) => {
    const row = { text: result.text };
    if (result.pair) row.text_pair = result.pair;
    if (result.entities) row.entities = [...result.entities].sort((a, b) => a.start - b.start).map(({ start, end, label }) => ({ start, end, label }));
    else row.label = state.model.multi_label ? result.labels : result.labels[0];
    return JSON.stringify(row);
  });
  const url = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "application/x-ndjson" }));
  make("a", { href: url, download: "corrected.jsonl" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// ── wiring ──
$("form").addEventListener("submit", (event) => { event.preventDefault(); send(); });
$("text").addEventListener("keydown", (event) => { if (event.key === "Enter" && event.ctrlKey) send(); });
$("clear").addEventListener("click", () => { $("text").value = $("text-pair").value = ""; state.results = []; complain(""); setStatus("nothing"); showResults(); });
$("file").addEventListener("change", () => { if ($("file").files.length) openFile($("file").files[0]); });
for (const name of ["dragover", "dragleave", "drop"]) {
  $("text").addEventListener(name, (event) => {
    event.preventDefault();
    $("text").classList.toggle("over", name === "dragover");
    if (name !== "drop") return;
    if (event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
    else $("text").value = event.dataTransfer.getData("text");
  });
}
$("cards").addEventListener("pointerup", (event) => setTimeout(() => correctByPointer(event), 0));
$("cards").addEventListener("keydown", correctByKey);
$("download").addEventListener("click", download);
$("language").addEventListener("click", () => {
  language = language === "zh" ? "en" : "zh";
  localStorage.setItem("language", language);
  showWords();
  setStatus(...state.status);
  showResults();
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeMenu(); });
document.addEventListener("pointerdown", (event) => { if (!$("menu").hidden && !event.target.closest("#menu, .text")) closeMenu(); });
showWords();
loadModel().catch((error) => complain(word("failed", { detail: error.message })));
