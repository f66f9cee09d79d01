// Everything is set up once the page is read.
function setUpLegends() {
  const entries = facts.series.map(({ label, name }) => ({ key: label, name, look: lookOf(label) }));
  toggles("legend", entries, (label) => hidden.has(label), (label) => {
    hidden.has(label) ? hidden.delete(label) : hidden.add(label);
    drawAll();
  });
  for (const name of ["spending", "classes"])
    choices(`${name}-budget`, budgets, (budget) => `epsilon ${budget}`, chosen[name], (budget) => {
      chosen[name] = budget;
      drawAll();
    });
}

function setUpAttacks() {
  const select = document.getElementById("attacked");
  select?.append(...[...new Set([...facts.attacks, ...facts.histograms].map((entry) => entry.of))].map((of) => new Option(of, of, false, of === chosen.attacked)));
  select?.addEventListener("change", () => { chosen.attacked = select.value; drawAll(); });
  const entries = attackNames.map((attack) => ({ key: attack, name: attack, look: attackLooks.get(attack) }));
  toggles("attack-legend", entries, (attack) => hiddenAttacks.has(attack), (attack) => {
    hiddenAttacks.has(attack) ? hiddenAttacks.delete(attack) : hiddenAttacks.add(attack);
    drawAll();
  });
}

function setUpStatements() {
  const data = document.getElementById("statements").textContent;
  document.getElementById("statements-file").href = URL.createObjectURL(new Blob([data], { type: "application/json" }));
}

// On paper nothing can be unfolded: what is folded is opened for the print, and closed again after it.
function setUpPrinting() {
  const folded = () => document.querySelectorAll("#statement details:not([open])");
  let opened = [];
  addEventListener("beforeprint", () => { opened = [...folded()]; opened.forEach((part) => { part.open = true; }); });
  addEventListener("afterprint", () => opened.forEach((part) => { part.open = false; }));
}

setUpTheme();
setUpTables();
setUpCharts();
setUpSingle();
setUpLegends();
setUpAttacks();
setUpStatements();
setUpPrinting();
