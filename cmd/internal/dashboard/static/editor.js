// Helps to edit values: a filter for the values that the chart knows, and a button that adds one. Without this file, they are
// a list beside the text.

const list = document.getElementById("known"), text = document.getElementById("values");

// add puts a value into the text: below what is there of its path already, else at the end.
function add(snippet) {
  const wanted = snippet.replace(/\n$/, "").split("\n"), lines = text.value.trimEnd() === "" ? [] : text.value.trimEnd().split("\n");
  let at = lines.length, depth = 0, from = 0;
  for (; depth < wanted.length - 1; depth++) {
    const found = lines.findIndex((line, i) => i >= from && line.trimEnd() === wanted[depth]);
    if (found < 0) break;
    from = found + 1;
    at = from;
  }
  lines.splice(at, 0, ...wanted.slice(depth));
  text.value = lines.join("\n") + "\n";
  const end = lines.slice(0, at + wanted.length - depth).join("\n").length;
  text.focus();
  text.setSelectionRange(end, end);
}

if (list && text) {
  const label = document.createElement("label"), filter = document.createElement("input");
  label.textContent = "Filter ";
  filter.type = "search";
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    for (const item of list.children) item.hidden = !item.textContent.toLowerCase().includes(wanted);
  });
  filter.setAttribute("form", ""); // it is no part of the form that it is in: Enter does not send that
  label.append(filter);
  list.before(label);
  for (const item of list.children) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Add";
    button.setAttribute("aria-label", `Add ${item.dataset.name}`);
    button.addEventListener("click", () => add(item.dataset.snippet));
    item.prepend(button, " ");
  }
}
