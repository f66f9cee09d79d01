// The papers' charts: ours as full points with their intervals (pale: as claimed), the paper's as hollow ones.
const KINDS = { levels: levelsChart, curves: curvesChart, "trade-off": tradeOffChart };

function setUpPapers() {
  for (const drawn of facts.charts) {
    const off = new Set();
    const look = looks(drawn.rows);
    const isOn = (entry) => !off.has(entry.row);
    chart(drawn.id, drawn.title, (width) => KINDS[drawn.kind](drawn, width, look, isOn));
    const redraw = charts.at(-1);
    toggles(`${drawn.id}-legend`, drawn.rows.map((row) => ({ key: row, name: row, look: look.get(row) })), (row) => off.has(row), (row) => {
      off.has(row) ? off.delete(row) : off.add(row);
      redraw();
    });
  }
}

const frame = (width) => ({ width, height: Math.max(280, Math.min(380, width * 0.4)), marginLeft: 54, marginRight: 20, marginBottom: 44, marginTop: 26, symbol: { type: "identity" } });
const axis = (label) => ({ label, labelAnchor: "center", labelArrow: "none" });
const full = { r: 5.5, stroke: "var(--surface)", strokeWidth: 1 };
const hollow = { r: 5.5, fill: "none", strokeWidth: 2 };

function levelsChart(drawn, width, look, isOn) {
  const points = drawn.points.filter(isOn);
  const means = points.flatMap((point) => [point.printed, point.claimed?.[0], point.proved?.[0]]).filter((value) => value !== null && value !== undefined);
  if (!means.length) return null;
  const room = Math.max((d3.max(means) - d3.min(means)) * 0.15, drawn.measure === "accuracy" ? 0.5 : 1e-3);
  const domain = [d3.min(means) - room, d3.max(means) + room];
  const within = (value) => Math.max(domain[0], Math.min(domain[1], value));
  const step = Math.min(11, (0.7 * (width - 74)) / drawn.places.length / drawn.rows.length);
  const marks = drawn.rows.flatMap((row, number) => {
    const { colour, symbol } = look.get(row);
    const own = points.filter((point) => point.row === row);
    const dx = (number - (drawn.rows.length - 1) / 2) * step;
    const ours = (kind) => own.filter((point) => point[kind]).map((point) => ({ ...point, at: point[kind][0], low: within(point[kind][1]), high: within(point[kind][2]) }));
    const [proved, claimed, printed] = [ours("proved"), ours("claimed"), own.filter((point) => point.printed !== null)];
    const hovered = [...proved, ...claimed, ...printed.map((point) => ({ ...point, at: point.printed }))];
    return [
      Plot.ruleX([...proved, ...claimed], { x: "place", y1: "low", y2: "high", stroke: colour, strokeWidth: 2, dx }),
      Plot.dot(claimed, { x: "place", y: "at", fill: colour, symbol, fillOpacity: 0.45, ...full, dx }),
      Plot.dot(proved, { x: "place", y: "at", fill: colour, symbol, ...full, dx }),
      Plot.dot(printed, { x: "place", y: "printed", stroke: colour, symbol, ...hollow, dx }),
      tip(hovered, { x: "place", y: "at", dx, title: "words" }),
    ];
  });
  return { ...frame(width), x: { ...axis(drawn.x), type: "point", domain: drawn.places, padding: 0.6 }, y: { label: drawn.measure, labelArrow: "none", domain }, marks: [grid(Plot.gridY), ...marks] };
}

function curvesChart(drawn, width, look, isOn) {
  const curves = drawn.curves.filter(isOn);
  if (!curves.length) return null;
  const points = curves.flatMap(({ row, points }) => points.map(([epsilon, accuracy]) => ({ row, epsilon, accuracy })));
  return {
    ...frame(width), x: axis("epsilon spent, proved"), y: { label: "accuracy", labelArrow: "none" },
    marks: [
      grid(Plot.gridY),
      ...curves.map(({ row }) => Plot.line(points.filter((point) => point.row === row), { x: "epsilon", y: "accuracy", stroke: look.get(row).colour, strokeWidth: 2 })),
      tip(points, { x: "epsilon", y: "accuracy", title: ({ row, epsilon, accuracy }) => `${row}\naccuracy ${accuracy.toFixed(2)} at epsilon ${epsilon.toFixed(2)}` }),
    ],
  };
}

function tradeOffChart(drawn, width, look, isOn) {
  const points = drawn.points.filter(isOn);
  if (!points.length) return null;
  const place = (kind) => points.filter((point) => point[kind]).map((point) => ({ ...point, x: point[kind][0], y: point[kind][1], ...look.get(point.row) }));
  return {
    ...frame(width), x: axis("AUC of the attack"), y: { label: "accuracy", labelArrow: "none" },
    marks: [
      grid(Plot.gridY),
      Plot.dot(place("ours"), { x: "x", y: "y", fill: "colour", symbol: "symbol", ...full }),
      Plot.dot(place("printed"), { x: "x", y: "y", stroke: "colour", symbol: "symbol", ...hollow }),
      tip([...place("ours"), ...place("printed")], { x: "x", y: "y", title: "words" }),
    ],
  };
}

setUpTheme();
setUpTables();
setUpPapers();
