// The editor: a textarea, and a layer behind it that shows the same text in colours, with a wavy line under errors.

const KINDS = {
  "comment.line": "comment", "comment.block": "comment", "string.quoted": "string", "variable.other": "variable",
  "keyword.control": "keyword", "constant.numeric": "number", "entity.name.type.iri": "iri", "entity.name.tag": "tag",
  "entity.name.function": "tag",
};
const LONGEST = 100000; // characters that get colours

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

// [start, end, kind] of the parts of a text, in order; `patterns`: by scope, the first that matches counts.
function parts(text, patterns) {
  const scopes = Object.keys(patterns);
  const any = new RegExp(scopes.map((scope) => `(${patterns[scope]})`).join("|"), "gim");
  const found = [];
  for (const match of text.matchAll(any)) {
    const kind = KINDS[scopes[match.slice(1).findIndex((part) => part !== undefined)]];
    if (kind) found.push([match.index, match.index + match[0].length, kind]);
  }
  return found;
}

export class Editor {
  constructor(place, label, changed) {
    this.area = element("textarea");
    this.area.setAttribute("aria-label", label);
    for (const [name, value] of [["spellcheck", "false"], ["autocapitalize", "off"], ["autocomplete", "off"], ["wrap", "off"]])
      this.area.setAttribute(name, value);
    this.layer = element("pre", "layer");
    this.numbers = element("pre", "numbers");
    this.layer.setAttribute("aria-hidden", "true");
    this.numbers.setAttribute("aria-hidden", "true");
    const text = element("div", "text", this.layer, this.area);
    place.classList.add("editor");
    place.append(this.numbers, text);
    this.patterns = {};
    this.errors = [];
    this.area.addEventListener("input", () => { this.errors = []; this.draw(); changed(); });
    this.area.addEventListener("scroll", () => this.follow());
    new ResizeObserver(() => this.reveal()).observe(this.area); // what is said below takes room from it
  }

  // Scrolls so far that the line where one writes is not below the end of what is shown.
  reveal() {
    if (document.activeElement !== this.area) return;
    const style = getComputedStyle(this.area);
    const lines = this.text.slice(0, this.area.selectionEnd).split("\n").length;
    const end = parseFloat(style.paddingTop) + lines * parseFloat(style.lineHeight);
    this.area.scrollTop = Math.max(this.area.scrollTop, end - this.area.clientHeight);
  }

  get text() { return this.area.value; }

  set text(value) {
    this.area.value = value;
    this.errors = [];
    this.draw();
  }

  // Errors have `start` and `end`, as JavaScript counts.
  mark(errors) {
    this.errors = errors.filter((error) => error.start !== null)
      .map((error) => [error.start, Math.max(error.end, error.start + 1)]);
    this.area.setAttribute("aria-invalid", errors.length ? "true" : "false");
    this.draw();
  }

  select(start, end) {
    this.area.focus();
    this.area.setSelectionRange(start, end);
  }

  draw() {
    const text = this.area.value;
    const lines = text.split("\n").length;
    this.numbers.textContent = Array.from({ length: lines }, (_, i) => i + 1).join("\n") + "\n";
    const coloured = text.length <= LONGEST ? parts(text, this.patterns) : [];
    const cuts = new Set([0, text.length]);
    for (const [start, end] of [...coloured, ...this.errors]) cuts.add(Math.min(start, text.length)).add(Math.min(end, text.length));
    const places = [...cuts].sort((a, b) => a - b);
    const shown = document.createDocumentFragment();
    let at = 0;
    for (let i = 0; i + 1 < places.length; i++) {
      const [start, end] = [places[i], places[i + 1]];
      while (at < coloured.length && coloured[at][1] <= start) at++;
      const kind = at < coloured.length && coloured[at][0] <= start ? coloured[at][2] : "";
      const wrong = this.errors.some(([from, to]) => from <= start && end <= to);
      const piece = text.slice(start, end);
      if (kind || wrong) shown.append(element("span", [kind, wrong ? "wrong" : ""].join(" ").trim(), piece));
      else shown.append(piece);
    }
    if (this.errors.some(([from]) => from >= text.length)) shown.append(element("span", "wrong", " ")); // at the end
    shown.append("\n");
    this.layer.replaceChildren(shown);
    this.follow();
  }

  follow() {
    this.layer.style.transform = `translate(${-this.area.scrollLeft}px, ${-this.area.scrollTop}px)`;
    this.numbers.style.transform = `translateY(${-this.area.scrollTop}px)`;
  }
}
