// The charts that only the page of one model has.
function setUpSingle() {
  if (!facts.run) return;
  chart("chart-standing", "Accuracy beside always naming the commonest class, and beside no privacy", standingChart);
  chart("chart-learning", "The model on public examples, by round", learningChart);
  chart("chart-confusion", "How many test examples of each class were given each answer", confusionChart);
}

function standingChart(width) {
  const { accuracy, commonest, plain } = facts.run;
  const bars = [
    { name: "this model", value: accuracy, colour: "var(--s1)" },
    { name: "without privacy", value: plain, colour: "var(--mild)" },
    { name: "commonest class", value: commonest, colour: "var(--line)" },
  ].filter((bar) => bar.value !== null);
  return {
    width, height: 30 + 34 * bars.length, marginLeft: 124, marginRight: 60, marginTop: 4, marginBottom: 26,
    x: { domain: [0, 1], label: null, ticks: [0, 0.25, 0.5, 0.75, 1], tickFormat: (value) => percent(value, 0) },
    y: { domain: bars.map((bar) => bar.name), label: null, padding: 0.25, tickSize: 0 },
    marks: [
      grid(Plot.gridX, { ticks: [0, 0.25, 0.5, 0.75, 1] }),
      Plot.barX(bars, { x: "value", y: "name", fill: "colour", rx: 3 }),
      Plot.text(bars, { x: "value", y: "name", text: (bar) => percent(bar.value), dx: 8, textAnchor: "start", fontWeight: 600, fill: "var(--ink)", ...HALO }),
    ],
  };
}

function learningChart(width) {
  const { of, points } = facts.run.learning;
  const curve = points.map(([round, value]) => ({ round, value }));
  const shares = of === "accuracy";
  const [low, high] = d3.extent(curve, (point) => point.value);
  const level = shares && facts.run.commonest !== null ? facts.run.commonest : null;
  const bottom = shares ? Math.max(0, Math.min(low, level ?? low) - 0.05) : 0;
  const say = (value) => (shares ? percent(value) : value.toPrecision(3));
  return {
    width, height: Math.max(230, Math.min(320, width * 0.34)), marginLeft: 54, marginRight: 24, marginBottom: 42, marginTop: 26,
    x: { label: "Rounds", labelAnchor: "center", labelArrow: "none", domain: [0, d3.max(curve, (point) => point.round)] },
    y: { label: shares ? "Accuracy" : "Loss", labelArrow: "none", domain: [bottom, shares ? Math.min(1, high + 0.05) : high * 1.08], tickFormat: shares ? (value) => percent(value, 0) : undefined },
    marks: [
      grid(Plot.gridY),
      ...(level === null ? [] : levelLine(level, `commonest class ${percent(level)}`)),
      Plot.line(curve, { x: "round", y: "value", stroke: "var(--s1)", strokeWidth: 2.2 }),
      Plot.dot(curve, { x: "round", y: "value", fill: "var(--s1)", r: 3 }),
      tip(curve, { x: "round", y: "value", title: (point) => `round ${point.round}: ${say(point.value)}` }),
    ],
  };
}

function confusionChart(width) {
  const rows = facts.run.confusion;
  const sums = rows.map((row) => d3.sum(row));
  const cells = rows.flatMap((row, truth) => row.map((count, answer) => ({ truth, answer, count, share: sums[truth] ? count / sums[truth] : 0 })));
  const names = rows.map((_, number) => nameOf(number));
  const longest = d3.max(names, (name) => name.length);
  const left = Math.min(width * 0.3, 34 + 7 * longest);
  const side = Math.min(width, left + Math.max(240, 64 * rows.length));
  const ticks = classTicks(d3.range(rows.length), side - left);
  const cell = (side - left - 12) / rows.length;
  const heat = ({ truth, answer, share }) => `color-mix(in srgb, var(${truth === answer ? "--good" : "--bad"}) ${Math.round((truth === answer ? 30 : 55) * Math.sqrt(share))}%, var(--surface))`;
  return {
    width: side, height: Math.min(cell, 46) * rows.length + 28 + ticks.margin, marginLeft: left, marginRight: 12, marginTop: 28, marginBottom: ticks.margin, padding: 0.04,
    x: { label: "Answer", labelAnchor: "center", labelArrow: "none", type: "band", tickFormat: nameOf, tickRotate: ticks.rotate, tickSize: 0 },
    y: { label: "Class", labelArrow: "none", type: "band", tickFormat: nameOf, tickSize: 0 },
    marks: [
      Plot.cell(cells, { x: "answer", y: "truth", fill: heat, rx: 3 }),
      ...(cell < 17 ? [] : [Plot.text(cells.filter(({ count }) => count), { x: "answer", y: "truth", text: "count", fontSize: Math.min(13, cell * 0.42), fill: "var(--ink)" })]),
      tip(cells, { x: "answer", y: "truth", title: ({ truth, answer, count }) => `${count} of ${sums[truth]} of class ${names[truth]}\nwere given ${truth === answer ? "the right answer" : names[answer]}` }),
    ],
  };
}
