// What all charts share: how a series looks, which are shown, and drawing again when the page's width changes.
const facts = JSON.parse(document.getElementById("facts").textContent);
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "wye", "hexagon", "cross"];
const hidden = new Set();
const charts = [];

const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
const looks = (names) => new Map(names.map((name, i) => [name, { colour: `var(--s${i % 10})`, symbol: SYMBOLS[i % SYMBOLS.length] }]));
const methodLooks = looks(facts.series.map((series) => series.label));
const lookOf = (label) => methodLooks.get(label) ?? { colour: "var(--soft)", symbol: "circle" };
const isShown = (entry) => !hidden.has(entry.label);

function chart(id, describe, options) {
  const place = document.getElementById(id);
  if (!place) return;
  const draw = () => {
    const made = options(Math.max(280, Math.min(place.clientWidth, 1040)));
    if (made === null) return place.replaceChildren(emptyNote());
    const svg = Plot.plot({ ...made, ariaLabel: describe, style: { background: "none", color: "var(--ink)" } });
    svg.setAttribute("role", "img");
    setUpKeys(svg);
    place.replaceChildren(svg);
  };
  charts.push(draw);
  let width = 0;
  new ResizeObserver(() => {
    if (place.clientWidth !== width) { width = place.clientWidth; draw(); }
  }).observe(place);
}

// The arrow keys move a pointer over a chart: what hovering tells can be had without a mouse.
const STEP = 12;
const MOVES = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };

function setUpKeys(svg) {
  let at = null;
  svg.tabIndex = 0;
  svg.setAttribute("aria-keyshortcuts", Object.keys(MOVES).join(" "));
  svg.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    const [x, y] = at ?? [box.width / 2, box.height / 2];
    at = [Math.max(0, Math.min(box.width, x + move[0])), Math.max(0, Math.min(box.height, y + move[1]))];
    point(svg, "pointermove", box.x + at[0], box.y + at[1]);
  });
  svg.addEventListener("blur", () => point(svg, "pointerleave", 0, 0));
}

const point = (svg, kind, clientX, clientY) => svg.dispatchEvent(new PointerEvent(kind, { clientX, clientY, pointerType: "mouse" }));

function emptyNote() {
  const note = document.createElement("p");
  note.className = "empty";
  note.textContent = "Nothing to show here.";
  return note;
}

const drawAll = () => charts.forEach((draw) => draw());
const tip = (data, options) => Plot.tip(data, Plot.pointer({ maxRadius: 60, fill: "var(--surface)", stroke: "var(--line)", fontSize: 13, lineHeight: 1.4, ...options }));
const grid = (axis, options) => axis({ stroke: "var(--grid)", strokeOpacity: 1, ...options });

function swatch({ colour, symbol }) {
  const svg = Plot.plot({
    width: 14, height: 14, margin: 0, axis: null, x: { domain: [0, 1] }, y: { domain: [0, 1] },
    marks: [Plot.dot([{}], { x: 0.5, y: 0.5, r: 4.5, fill: colour, symbol })],
  });
  svg.setAttribute("aria-hidden", "true");
  return svg;
}

// A row of buttons, one a series, each of which hides or shows it.
function toggles(id, entries, isHidden, toggle) {
  const place = document.getElementById(id);
  place?.replaceChildren(...entries.map(({ key, name, look }) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(!isHidden(key)));
    button.append(swatch(look), name);
    button.addEventListener("click", () => {
      toggle(key);
      button.setAttribute("aria-pressed", String(!isHidden(key)));
    });
    return button;
  }));
}

// A row of buttons of which one is chosen.
function choices(id, values, name, chosen, choose) {
  const place = document.getElementById(id);
  const buttons = values.map((value) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name(value);
    button.setAttribute("aria-pressed", String(value === chosen));
    button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      choose(value);
    });
    return button;
  });
  place?.replaceChildren(...(values.length > 1 ? buttons : []));
}
