// Follows the log of a container while the tab is visible. Without this file, a reload shows what was written since.

const log = document.getElementById("log"), note = document.getElementById("following");
const most = 2000; // lines
let stream = null, lines = 0, last = ""; // when the last line was written

function say(what) { if (note) note.textContent = what; }

function append(line) {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  log.append(document.createTextNode(line + "\n"));
  if (++lines > most) log.firstChild.remove();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function close() {
  stream?.close();
  stream = null;
}

function open() {
  close();
  const from = new URL(log.dataset.follow, location);
  if (last) from.searchParams.set("since", last);
  stream = new EventSource(from);
  stream.onopen = () => say("Lines appear as they are written.");
  stream.onmessage = (event) => {
    last = event.lastEventId || last;
    append(event.data);
  };
  stream.addEventListener("bye", open);
  stream.addEventListener("end", (event) => { close(); say(event.data); });
  stream.onerror = () => { close(); say("It is not followed any more: reload to go on."); };
}

log.scrollTop = log.scrollHeight;
document.addEventListener("visibilitychange", () => {
  if (document.hidden) close(); else open();
});
if (!document.hidden) open();
