// The charts, one function each.
const HALO = { stroke: "var(--surface)", strokeWidth: 4 };
const budgets = [...new Set([...facts.points, ...facts.spending].map((point) => point.target).filter((target) => target !== null))].sort((a, b) => a - b);
const largest = budgets.at(-1) ?? null;
const chosen = { spending: largest, classes: largest, attacked: (facts.attacks.find((attack) => attack.permitted) ?? facts.attacks[0] ?? facts.histograms[0])?.of };
const nameOf = (number) => facts.names[number] ?? String(number);

function setUpCharts() {
  chart("chart-accuracy", "Accuracy against proved epsilon, by method", accuracyChart);
  chart("chart-spending", "Epsilon over the rounds, by method", spendingChart);
  chart("chart-attacks", "True against false positive rate of each attack, with what the guarantee permits", attackChart);
  chart("chart-scores", "Scores of members and of others, by attack", scoreChart);
  chart("chart-audit", "Lower and upper bound of epsilon, by audit", auditChart);
  chart("chart-classes", "Accuracy of each class, by method", classChart);
  chart("chart-private", "Share of examples that were bounded, by round: private", privateChart);
}

// -- accuracy against epsilon ---------------------------------------------------------------------------------------

function accuracyChart(width) {
  const isProved = (point) => point.epsilon !== null;
  const shown = facts.points.filter((point) => !point.plain && isShown(point)).sort((a, b) => isProved(b) - isProved(a));
  if (!shown.length) return null;
  const plain = facts.points.find((point) => point.plain);
  const [low, high] = accuracies(shown.some(isProved) ? [...shown.filter(isProved), ...(plain ? [plain] : [])] : shown);
  const within = (value) => Math.max(low, Math.min(high, value));
  const room = shown.every(isProved) ? 24 : Math.min(130, width * 0.24); // beside the axis, for those without a guarantee
  const end = (d3.max(shown, (point) => point.epsilon) ?? 1) * 1.15;
  const pixel = end / (width - 54 - room);
  const place = (items, item, step, most) => (items.indexOf(item) - (items.length - 1) / 2) * Math.min(step, most / items.length);
  const labels = facts.series.map(({ label }) => label).filter((label) => shown.some((point) => isProved(point) && point.label === label));
  const beside = shown.filter((point) => !isProved(point));
  const points = shown.map((point) => {
    const shift = pixel * (isProved(point) ? place(labels, point.label, 11, width * 0.16) : room / 2 + place(beside, point, 22, room * 0.7));
    return { ...point, ...lookOf(point.label), x: (point.epsilon ?? end) + shift, hollow: (point.claimed ?? Infinity) + shift, y: within(point.mean), from: within(point.low), to: within(point.high) };
  });
  const claimed = points.filter((point) => isProved(point) && point.hollow <= end);
  const outside = points.filter((point) => point.y !== point.mean);
  return {
    width, height: Math.max(330, Math.min(460, width * 0.5)), marginLeft: 54, marginRight: room, marginBottom: 44, marginTop: 26,
    x: { label: "Proved epsilon", labelAnchor: "center", labelArrow: "none", domain: [0, end], ticks: [0, ...budgets], tickFormat: (value) => `${value}`, nice: false },
    y: { label: "Accuracy", labelArrow: "none", domain: [low, high], tickFormat: (value) => percent(value, high - low < 0.04 ? 1 : 0) },
    symbol: { type: "identity" },
    marks: [
      grid(Plot.gridY), grid(Plot.gridX, { ticks: budgets }),
      ...(plain && plain.mean <= high ? levelLine(plain.mean, `without privacy ${percent(plain.mean)}`) : []),
      ...(facts.commonest > low && facts.commonest < high ? levelLine(facts.commonest, `commonest class ${percent(facts.commonest)}`) : []),
      ...(beside.length ? [
        Plot.ruleX([end], { stroke: "var(--line)" }),
        Plot.text([end + (pixel * room) / 2], { x: (value) => value, frameAnchor: "bottom", text: () => "no guarantee", fill: "var(--soft)", dy: 14 }),
      ] : []),
      Plot.line(points.filter(isProved), { x: "x", y: "y", z: "label", stroke: "colour", strokeWidth: 1.5, strokeOpacity: 0.55 }),
      Plot.ruleX(points, { x: "x", y1: "from", y2: "to", stroke: "colour", strokeWidth: 2 }),
      Plot.link(claimed, { x1: "hollow", x2: "x", y1: "y", y2: "y", stroke: "colour", strokeDasharray: "2,3" }),
      Plot.dot(points, { x: "x", y: "y", fill: "colour", stroke: "var(--surface)", strokeWidth: 1, r: 6, symbol: "symbol" }),
      Plot.dot(claimed, { x: "hollow", y: "y", fill: "var(--surface)", stroke: "colour", strokeWidth: 2, r: 5, symbol: "symbol" }),
      Plot.text(outside, { x: "x", y: "y", text: (point) => percent(point.mean, 0), fill: "var(--soft)", dy: -14 }),
      tip([...points, ...claimed.map((point) => ({ ...point, x: point.hollow }))], { x: "x", y: "y", title: accuracyWords }),
    ],
  };
}

// What the means span, and a little of the intervals: a few seeds have intervals that would fill any chart.
function accuracies(points) {
  const [least, most] = d3.extent(points, (point) => point.mean);
  const span = Math.max(most - least, 0.02);
  const low = Math.max(d3.min(points, (point) => point.low), least - 0.4 * span);
  const high = Math.min(d3.max(points, (point) => point.high), most + 0.4 * span);
  return [Math.max(0, low - 0.08 * span), Math.min(1, high + 0.08 * span)];
}

const levelLine = (level, text) => [
  Plot.ruleY([level], { stroke: "var(--soft)", strokeDasharray: "6,4", strokeWidth: 1.5 }),
  Plot.text([level], { y: (value) => value, text: () => text, frameAnchor: "left", dx: 6, dy: -9, textAnchor: "start", fill: "var(--soft)", ...HALO }),
];

const accuracyWords = (point) => [
  point.name,
  `accuracy ${percent(point.mean)}` + (point.seeds > 1 ? ` (${percent(point.low)} to ${percent(point.high)}, ${point.seeds} seeds)` : ""),
  point.epsilon === null ? "no guarantee" : `epsilon ${(Math.ceil(point.epsilon * 100 - 1e-6) / 100).toFixed(2)}, proved`,
  ...(point.claimed === null ? [] : [`epsilon ${point.claimed.toFixed(2)}, as claimed`]),
].join("\n");

// -- epsilon over rounds --------------------------------------------------------------------------------------------

function spendingChart(width) {
  const curves = merged(facts.spending.filter((curve) => curve.target === chosen.spending && isShown(curve)));
  const points = curves.flatMap((curve) => curve.points.map(([round, epsilon]) => ({ ...curve, round, epsilon })));
  if (!points.length) return null;
  const ends = curves.map((curve) => points.findLast((point) => point.label === curve.label));
  const room = width > 620 ? 32 + 7.6 * d3.max(curves, (curve) => d3.max(curve.names, (name) => name.length)) : 20;
  return {
    width, height: Math.max(280, Math.min(380, width * 0.4)), marginLeft: 46, marginRight: room, marginBottom: 42, marginTop: 26,
    x: { label: "Rounds", labelAnchor: "center", labelArrow: "none", domain: [0, d3.max(points, (point) => point.round)] },
    y: { label: "Epsilon", labelArrow: "none", domain: [0, d3.max([...points.map((point) => point.epsilon), chosen.spending ?? 0]) * 1.04] },
    marks: [
      grid(Plot.gridY),
      ...(chosen.spending ? [Plot.ruleY([chosen.spending], { stroke: "var(--soft)", strokeDasharray: "6,4" }), Plot.text([chosen.spending], { y: (value) => value, text: (value) => `budget ${value}`, frameAnchor: "left", textAnchor: "start", dx: 6, dy: -9, fill: "var(--soft)" })] : []),
      ...curves.map((curve) => Plot.line(points.filter((point) => point.label === curve.label), { x: "round", y: "epsilon", stroke: lookOf(curve.label).colour, strokeWidth: 2.2, curve: "monotone-x" })),
      ...ends.map((end) => Plot.dot([end], { x: "round", y: "epsilon", r: 5, fill: lookOf(end.label).colour, symbol: lookOf(end.label).symbol })),
      ...(width > 620 ? spread(ends).map((end) => Plot.text([end], { x: "round", y: "epsilon", dx: 12, dy: -6, text: (end) => end.names.join("\n"), textAnchor: "start", lineAnchor: "top", lineHeight: 1.25, fontWeight: 600, fill: lookOf(end.label).colour })) : []),
      tip(points, { x: "round", y: "epsilon", title: (point) => `${point.names.join(", ")}\nround ${point.round}: epsilon ${point.epsilon.toFixed(3)}` }),
    ],
  };
}

// Curves that are one and the same are drawn once, under all their names.
function merged(curves) {
  const found = new Map();
  for (const curve of curves) {
    const key = JSON.stringify(curve.points.map(([round, epsilon]) => [round, epsilon.toFixed(4)]));
    if (found.has(key)) found.get(key).names.push(curve.name);
    else found.set(key, { ...curve, names: [curve.name] });
  }
  return [...found.values()];
}

// All curves end at the budget: their names would lie on top of each other, so they are stacked below it.
function spread(ends) {
  const sorted = [...ends].sort((a, b) => b.epsilon - a.epsilon);
  const line = (d3.max(ends, (end) => end.epsilon) || 1) * 0.055;
  let next = Infinity;
  return sorted.map((end) => {
    const epsilon = Math.min(end.epsilon, next);
    next = epsilon - line * end.names.length;
    return { ...end, epsilon };
  });
}

// -- attacks --------------------------------------------------------------------------------------------------------

// The blind baseline never asks the model: it shows what the examples alone give away, and is drawn apart.
const BLIND = "blind";
const attackNames = [...new Set([...facts.attacks, ...facts.histograms].map((entry) => entry.attack))].sort((a, b) => (a === BLIND) - (b === BLIND));
const attackLooks = looks(attackNames.filter((name) => name !== BLIND)).set(BLIND, { colour: "var(--soft)", symbol: "circle" });
const hiddenAttacks = new Set();
const ofChosen = (entries) => entries.filter((entry) => entry.of === chosen.attacked);
const isAttackShown = (entry) => !hiddenAttacks.has(entry.attack);

function attackChart(width) {
  const attacks = ofChosen(facts.attacks);
  const shown = attacks.filter(isAttackShown);
  const permitted = attacks.find((attack) => attack.permitted)?.permitted;
  const most = d3.max(attacks, (attack) => attack.outsiders) ?? 1000;
  const floor = 10 ** Math.max(-5, Math.min(-2, Math.floor(Math.log10(1 / most))));
  // Below one in as many as there are others, nothing can be measured.
  const points = shown.flatMap((attack) => attack.roc.filter(([fpr]) => fpr >= 0.999 / attack.outsiders)
    .map(([fpr, tpr]) => ({ ...attack, fpr, tpr: Math.max(tpr, floor) })));
  const sure = (point) => point.fpr >= 9.99 / point.outsiders;
  const side = Math.min(width, 560);
  const axis = { type: "log", domain: [floor, 1], ticks: d3.range(Math.round(Math.log10(floor)), 1).map((power) => 10 ** power), tickFormat: (value) => `${+(100 * value).toPrecision(2)} %`, labelArrow: "none" };
  return {
    width: side, height: side * 0.92, marginLeft: 62, marginBottom: 44, marginTop: 26, marginRight: 20,
    x: { ...axis, label: "False alarms", labelAnchor: "center" }, y: { ...axis, label: "Members found" },
    marks: [
      grid(Plot.gridX, { ticks: axis.ticks }), grid(Plot.gridY, { ticks: axis.ticks }),
      ...(permitted ? [
        Plot.areaY(permitted.filter(([fpr]) => fpr >= floor), { x: ([fpr]) => fpr, y1: ([, tpr]) => Math.max(tpr, floor), y2: 1, fill: "var(--bad)", fillOpacity: 0.1 }),
        Plot.line(permitted.filter(([fpr]) => fpr >= floor), { x: ([fpr]) => fpr, y: ([, tpr]) => Math.max(tpr, floor), stroke: "var(--bad)", strokeWidth: 1.5 }),
        Plot.text([side < 420 ? "ruled out" : "ruled out by the guarantee"], { frameAnchor: "top-left", dx: 10, dy: 10, fill: "var(--bad)" }),
      ] : []),
      Plot.line([[floor, floor], [1, 1]], { stroke: "var(--soft)", strokeDasharray: "6,4" }),
      ...shown.flatMap((attack) => {
        const mine = points.filter((point) => point.attack === attack.attack);
        const dashed = attack.attack === BLIND ? { strokeDasharray: "3,3" } : {};
        const line = { x: "fpr", y: "tpr", stroke: attackLooks.get(attack.attack).colour, curve: "step-after", ...dashed };
        return [Plot.line(mine, { ...line, strokeWidth: 0.8 }), Plot.line(mine.filter(sure), { ...line, strokeWidth: 2.2 })];
      }),
      tip(points, { x: "fpr", y: "tpr", title: (point) => `${point.attack}\n${percent(point.tpr, 2)} found at ${percent(point.fpr, 2)} false alarms` }),
    ],
  };
}

// Scores have no unit in common: every attack has a box of its own, from its lowest bar to its highest.
function scoreChart(width) {
  const shown = ofChosen(facts.histograms).filter(isAttackShown);
  if (!shown.length) return null;
  const across = Math.max(2, Math.min(shown.length, Math.floor(width / 235)));
  const boxes = shown.map((entry, i) => ({ ...entry, column: i % across, row: Math.floor(i / across) }));
  const bars = boxes.flatMap((box) => {
    const [members, outsiders] = [d3.sum(box.members), d3.sum(box.outsiders)];
    const most = d3.max(box.members.map((count, i) => Math.max(count / members, box.outsiders[i] / outsiders)));
    return box.members.map((count, i) => ({
      ...box, at: (i + 0.5) / box.members.length, ours: count / members / most, theirs: box.outsiders[i] / outsiders / most,
      says: [box.attack, `scores from ${box.edges[i]} to ${box.edges[i + 1]}`, `${count} of ${members} members`, `${box.outsiders[i]} of ${outsiders} others`].join("\n"),
    }));
  });
  const rows = d3.max(boxes, (box) => box.row) + 1;
  const place = { fx: "column", fy: "row" };
  const steps = { ...place, x: "at", curve: "step" };
  return {
    width, height: rows * 124 + 8, margin: 4,
    fx: { axis: null, padding: 0.06 }, fy: { axis: null, padding: 0.2 }, x: { axis: null, domain: [0, 1] }, y: { axis: null, domain: [0, 1.3] },
    marks: [
      Plot.ruleY(boxes, { ...place, y: 0, stroke: "var(--line)" }),
      Plot.areaY(bars, { ...steps, y: "ours", fill: "var(--s1)", fillOpacity: 0.35 }),
      Plot.lineY(bars, { ...steps, y: "theirs", stroke: "var(--s2)", strokeWidth: 1.8 }),
      Plot.text(boxes, { ...place, frameAnchor: "top-left", text: "attack", fontWeight: 600, fill: "var(--ink)", dy: 2 }),
      tip(bars, { ...place, x: "at", y: (bar) => Math.max(bar.ours, bar.theirs), title: "says" }),
    ],
  };
}

// -- audits ---------------------------------------------------------------------------------------------------------

function auditChart(width) {
  const audits = facts.audits.map((audit) => ({ ...audit, row: `${audit.of}: ${audit.name}` }));
  if (!audits.length) return null;
  const bounded = audits.filter((audit) => audit.upper !== null);
  const colour = (audit) => (audit.verdict === "contradicted" ? "var(--bad)" : "var(--s1)");
  const left = width > 620 ? 20 + 6.6 * d3.max(audits, (audit) => audit.row.length) : 12;
  return {
    width, height: 74 + 44 * audits.length, marginLeft: Math.min(left, width * 0.5), marginBottom: 42, marginRight: 30,
    x: { label: "Epsilon", labelAnchor: "center", labelArrow: "none", domain: [0, d3.max(audits, (audit) => Math.max(audit.lower, audit.upper ?? 0)) * 1.1] },
    y: { label: null, axis: width > 620 ? "left" : null, domain: audits.map((audit) => audit.row) },
    marks: [
      grid(Plot.gridX),
      Plot.link(bounded, { x1: "lower", x2: "upper", y1: "row", y2: "row", stroke: colour, strokeWidth: 6, strokeOpacity: 0.3, strokeLinecap: "round" }),
      Plot.tickX(bounded, { x: "upper", y: "row", stroke: colour, strokeWidth: 3, insetTop: 9, insetBottom: 9 }),
      Plot.dot(audits, { x: "lower", y: "row", fill: colour, r: 6 }),
      ...(width > 620 ? [] : [Plot.text(audits, { frameAnchor: "left", y: "row", dy: -14, dx: 4, textAnchor: "start", text: "row", fill: "var(--soft)", ...HALO })]),
      tip(audits, { x: "lower", y: "row", title: (audit) => `${audit.row}\nat least ${audit.lower.toFixed(2)} (confidence ${percent(audit.confidence, 0)})\n${audit.upper === null ? "nothing promised" : `at most ${audit.upper.toFixed(2)}`}: ${audit.verdict}` }),
    ],
  };
}

// -- classes --------------------------------------------------------------------------------------------------------

const MOST_CELLS = 30;

function classChart(width) {
  const entries = facts.classes.filter((entry) => (entry.target === chosen.classes || entry.target === null) && isShown(entry));
  if (!entries.length) return null;
  return new Set(entries.map((entry) => entry.class)).size > MOST_CELLS ? classStrips(entries, width) : classCells(entries, width);
}

const classWords = (entry) => `${entry.name}, class ${nameOf(entry.class)}\n${percent(entry.accuracy)} of ${entry.examples} test examples`;

// Names of classes lie side by side where there is room for them, and lean where there is not.
function classTicks(numbers, width) {
  const longest = d3.max(numbers, (number) => nameOf(number).length);
  const leans = longest * 7 > (width * 0.8) / new Set(numbers).size;
  return { rotate: leans ? -45 : 0, margin: leans ? 44 + 5 * longest : 42 };
}

function classCells(entries, width) {
  const low = d3.min(entries, (entry) => entry.accuracy);
  const names = [...new Set(entries.map((entry) => entry.name))];
  const small = width < 560;
  const ticks = classTicks(entries.map((entry) => entry.class), width);
  const heat = (entry) => `color-mix(in srgb, var(--heat) ${Math.round(60 * ((1 - entry.accuracy) / Math.max(1 - low, 1e-9)))}%, var(--surface))`;
  return {
    width, height: 22 + ticks.margin + names.length * (small ? 46 : 36), marginLeft: small ? 6 : 24 + 7 * d3.max(names, (name) => name.length), marginTop: 8, marginBottom: ticks.margin, padding: 0.06,
    x: { label: "Class", labelAnchor: "center", labelArrow: "none", type: "band", tickFormat: nameOf, tickRotate: ticks.rotate },
    y: { label: null, axis: small ? null : "left", domain: names, paddingInner: small ? 0.5 : 0.06 },
    marks: [
      Plot.cell(entries, { x: "class", y: "name", fill: heat, stroke: "var(--line)", strokeWidth: 0.5, rx: 4 }),
      Plot.text(entries, { x: "class", y: "name", text: (entry) => Math.round(100 * entry.accuracy), fill: "var(--ink)" }),
      ...(small ? [Plot.text(names, { y: (name) => name, text: (name) => name, frameAnchor: "left", textAnchor: "start", dy: -19, fill: "var(--soft)" })] : []),
      tip(entries, { x: "class", y: "name", title: classWords }),
    ],
  };
}

function classStrips(entries, width) {
  const names = [...new Set(entries.map((entry) => entry.name))];
  return {
    width, height: 64 + 34 * names.length, marginLeft: Math.min(width * 0.4, 24 + 7 * d3.max(names, (name) => name.length)), marginBottom: 42,
    x: { label: "Accuracy of a class", labelAnchor: "center", labelArrow: "none", tickFormat: (value) => percent(value, 0) },
    y: { label: null, domain: names },
    marks: [
      grid(Plot.gridX),
      Plot.tickX(entries, { x: "accuracy", y: "name", stroke: (entry) => lookOf(entry.label).colour, strokeOpacity: 0.6 }),
      tip(entries, { x: "accuracy", y: "name", title: classWords }),
    ],
  };
}

// -- private diagnostics --------------------------------------------------------------------------------------------

function privateChart(width) {
  const records = facts.private.filter((record) => record.drawn > 0);
  if (!records.length) return null;
  return {
    width, height: 280, marginLeft: 54, marginBottom: 42,
    x: { label: "Rounds", labelAnchor: "center", labelArrow: "none" },
    y: { label: "Bounded", labelArrow: "none", domain: [0, 1], tickFormat: (value) => percent(value, 0) },
    marks: [
      grid(Plot.gridY),
      Plot.line(records, { x: "round", y: (record) => record.bounded / record.drawn, z: "run", stroke: "var(--bad)" }),
      tip(records, { x: "round", y: (record) => record.bounded / record.drawn, title: (record) => `round ${record.round}: ${percent(record.bounded / record.drawn)} bounded` }),
    ],
  };
}
