// Follows the log of a container while the tab is visible. Without this file, a reload shows what was written since.

const log = document.getElementById("log"), note = document.getElementById("following");
const most = 2000; // lines
let stream = null, lines = 0, missed = false;

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
  stream = new EventSource(log.dataset.follow);
  stream.onopen = () => say(missed ? "What was written meanwhile is missing: reload to see it. Lines appear as they are written." : "Lines appear as they are written.");
  stream.onmessage = (event) => append(event.data);
  stream.addEventListener("end", (event) => { close(); say(event.data); });
  stream.onerror = () => { close(); say("It is not followed any more: reload to go on."); };
}

log.scrollTop = log.scrollHeight;
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { close(); missed = true; } else open();
});
if (!document.hidden) open();
