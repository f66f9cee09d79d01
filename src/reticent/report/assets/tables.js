// Tables that sort by a column when its head is chosen; what has no value stays at the end.
function setUpTables() {
  for (const table of document.querySelectorAll("table.sortable"))
    for (const head of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sortBy(table, head));
      head.append(button);
    }
}

function sortBy(table, head) {
  const falling = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => inOrder(valueAt(a, head.cellIndex), valueAt(b, head.cellIndex), falling));
  table.tBodies[0].append(...rows);
}

function valueAt(row, index) {
  const cell = row.cells[index];
  if (!cell) return null; // a failed run has fewer cells
  if (cell.dataset.value === undefined) return cell.classList.contains("error") ? null : cell.textContent.trim();
  return cell.dataset.value === "" ? null : Number(cell.dataset.value);
}

function inOrder(a, b, falling) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "string" ? a.localeCompare(b) : a - b;
  return falling ? -order : order;
}
