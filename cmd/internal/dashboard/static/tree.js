// The keyboard of a tree, as the WAI-ARIA pattern of a treegrid has it: rows are focused, arrows move between them, open and
// close branches. Without this file, all rows are there, and links are reached by the Tab key.

const closed = new Set();

function rows() { return [...document.querySelectorAll("[role=treegrid] tbody tr")]; }
function level(row) { return Number(row.ariaLevel); }
function key(row) { return `${row.ariaLevel} ${row.cells[0].textContent} ${row.cells[1].textContent} ${row.cells[2].textContent}`; }
function shown() { return rows().filter((row) => !row.hidden); }

// arrange hides what is in closed branches.
function arrange() {
  let hiddenFrom = Infinity;
  for (const row of rows()) {
    if (level(row) <= hiddenFrom) hiddenFrom = Infinity;
    row.hidden = level(row) > hiddenFrom;
    if (row.ariaExpanded === null) continue;
    row.ariaExpanded = String(!closed.has(key(row)));
    if (!row.hidden && closed.has(key(row))) hiddenFrom = level(row);
  }
}

function focus(row) {
  if (!row) return;
  for (const other of rows()) other.tabIndex = -1;
  row.tabIndex = 0;
  row.focus();
}

function set(row, open) {
  if (row.ariaExpanded === null) return;
  open ? closed.delete(key(row)) : closed.add(key(row));
  arrange();
}

function parent(row) {
  const all = rows();
  for (let i = all.indexOf(row) - 1; i >= 0; i--) if (level(all[i]) < level(row)) return all[i];
  return null;
}

function press(event) {
  const row = event.target.closest("[role=treegrid] tbody tr");
  if (!row || event.altKey || event.metaKey || event.ctrlKey && !["Home", "End"].includes(event.key)) return;
  const all = shown(), at = all.indexOf(row);
  switch (event.key) {
    case "ArrowDown": focus(all[at + 1]); break;
    case "ArrowUp": focus(all[at - 1]); break;
    case "Home": focus(all[0]); break;
    case "End": focus(all.at(-1)); break;
    case "ArrowRight": row.ariaExpanded === "false" ? set(row, true) : row.ariaExpanded === "true" && focus(all[at + 1]); break;
    case "ArrowLeft": row.ariaExpanded === "true" ? set(row, false) : focus(parent(row)); break;
    case "Enter":
      if (event.target !== row) return;
      row.querySelector("a")?.click();
      break;
    default: return;
  }
  event.preventDefault();
}

document.addEventListener("keydown", press);
document.addEventListener("click", (event) => {
  const row = event.target.closest("[role=treegrid] tbody tr");
  if (!row || event.target.closest("a")) return;
  focus(row);
  if (event.target.closest("th")) set(row, row.ariaExpanded === "false");
});
let held = null; // the row that has the focus while a new copy of the page comes
document.addEventListener("refreshing", () => {
  const row = document.activeElement;
  held = row?.matches("[role=treegrid] tbody tr") ? key(row) : null;
});
document.addEventListener("refreshed", () => {
  arrange();
  if (held) focus(shown().find((row) => key(row) === held));
});
