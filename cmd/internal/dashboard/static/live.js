// Keeps a page as it is now: one stream of events while the tab is visible, and a new copy of the page when
// something that it shows has changed. Without this file, a reload does the same.

const first = 1000, longest = 30000; // milliseconds between two attempts to connect
let wait = first, stream = null, retry = 0, later = 0;
let fetching = false, outdated = false; // the page is being fetched, and has changed since that began
let unfollowed = ""; // what the page does not follow
let latest = ""; // version of the object of a page that is not fetched again by itself
let held = false; // a copy was not shown because a field of the page has the focus
const away = "The dashboard does not answer: this is what was last seen.";
const fields = "input, select, textarea";

function main() { return document.getElementById("main"); }

function say(text) {
  const line = document.getElementById("connection");
  line.textContent = text;
  line.hidden = text === "";
}

// address of the stream. The first tells what the page has seen; those after it begin with a new copy of the page.
function address(again) {
  const query = new URLSearchParams();
  for (const kind of main().dataset.kinds.split(" ").filter(Boolean)) query.append("kind", kind);
  if (main().dataset.object) query.set("object", main().dataset.object);
  if (!query.size) return "";
  if (!again) query.set("seen", main().dataset.seen);
  return "/live?" + query;
}

// follows says which changes the page does not follow.
function follows() {
  const line = document.getElementById("partial");
  line.textContent = unfollowed;
  line.hidden = unfollowed === "";
}

// outdate says that the object has changed since a page was read that is not fetched again by itself, because that is costly.
function outdate() {
  const line = document.getElementById("outdated"), shows = main().dataset.version;
  line.hidden = !shows || !latest || latest === shows;
  if (line.hidden) return line.replaceChildren();
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Read it again";
  line.replaceChildren("It has changed since this page was read. ", link);
}

// refresh replaces the page by a new copy. What changes meanwhile is fetched afterwards, in one, and after a pause as long as this
// copy took: what is slow is not asked all the time.
async function refresh() {
  outdated = fetching;
  if (fetching) return;
  fetching = true;
  const began = performance.now();
  await renew().catch(() => {});
  setTimeout(() => {
    fetching = false;
    if (outdated && stream) refresh();
  }, performance.now() - began);
}

// renewIn refreshes the page after some milliseconds.
function renewIn(pause) {
  clearTimeout(later);
  later = setTimeout(refresh, pause);
}

// pauseOf returns how many milliseconds after an answer to ask again: not all tabs at once; 0 if it does not say.
function pauseOf(answer) {
  return 1000 * (Number(answer.headers.get("Retry-After")) || 0) * (1 + Math.random());
}

async function renew() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (answer.status === 401) return end(answer);
  if (answer.status === 429) return renewIn(pauseOf(answer) || first);
  const copy = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (answer.status >= 500) return keep(copy.querySelector("#main .message")?.textContent ?? "The page cannot be read");
  const next = copy.getElementById("main");
  const old = main();
  held = old.contains(document.activeElement) && document.activeElement.matches(fields);
  if (!next || held) return;
  const typed = [...old.querySelectorAll(fields)].map((f) => f.value);
  const button = [...old.querySelectorAll("button")].indexOf(document.activeElement);
  const open = [...old.querySelectorAll("details")].map((d) => d.open);
  const scrolled = [...old.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
  const focused = document.activeElement?.getAttribute("href");
  document.dispatchEvent(new Event("refreshing"));
  old.replaceChildren(...next.childNodes);
  old.querySelectorAll(fields).forEach((f, i) => { f.value = typed[i] ?? f.value; });
  old.querySelectorAll("button")[button]?.focus({ preventScroll: true });
  old.querySelectorAll("details").forEach((d, i) => { d.open = open[i] ?? false; });
  old.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = scrolled[i] ?? 0; });
  old.dataset.version = next.dataset.version ?? "";
  say(""); // a new copy has a line of its own
  follows();
  outdate();
  document.dispatchEvent(new Event("refreshed"));
  if (focused) [...old.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
}

// keep leaves the page as it is while what it is read from does not answer, and says so. Its stream tells when that is over, unless
// that was not noticed there.
function keep(why) {
  say(`${why}: this is what was last seen.`);
  renewIn(longest * (0.5 + Math.random()));
}

// end stops following the page for a user whose session has ended, and offers the way back in, if there is one.
async function end(answer) {
  close();
  say(await answer.text());
  if (!answer.headers.has("Waybill-Sign-In")) return;
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Sign in again";
  document.getElementById("connection").append(" ", link);
}

function close() {
  clearTimeout(retry);
  clearTimeout(later);
  stream?.close();
  stream = null;
}

function connect(again) {
  close();
  const at = address(again);
  if (!at) return;
  unfollowed = "";
  stream = new EventSource(at);
  stream.onopen = () => {
    wait = first;
    say("");
    if (again && !main().dataset.version) refresh(); // of others, the stream tells the version
  };
  stream.addEventListener("bye", () => connect(true));
  stream.addEventListener("change", refresh);
  stream.addEventListener("version", (event) => {
    latest = event.data;
    outdate();
  });
  stream.addEventListener("partial", (event) => {
    unfollowed = JSON.parse(event.data);
    follows();
  });
  stream.onerror = () => {
    const refused = stream.readyState === EventSource.CLOSED; // and not cut: there is an answer
    close();
    if (refused) return refusal(at);
    say(away);
    retry = setTimeout(async () => {
      const alive = await fetch("/search").catch(() => null);
      if (alive?.status === 401) return end(alive);
      connect(true);
    }, backoff());
  };
}

// backoff returns how many milliseconds to wait before the next attempt to connect: longer each time.
function backoff() {
  const pause = wait * (0.5 + Math.random());
  wait = Math.min(wait * 2, longest);
  return pause;
}

// refusal asks once more for a stream that was refused, as an EventSource does not tell the answer, and says why the page is not
// followed until it may be asked for again.
async function refusal(at) {
  const asking = new AbortController();
  const answer = await fetch(at, { signal: asking.signal }).catch(() => null);
  if (document.hidden || stream) return asking.abort();
  if (answer?.status === 401) return end(answer);
  const explained = answer && !answer.ok && answer.headers.get("Content-Type")?.startsWith("text/plain"); // what a proxy sends is not for people
  const why = explained ? await answer.text() : "";
  asking.abort(); // it is a stream if it is not refused any more
  say(answer ? `This page is not followed for now, and shows what was last seen. ${why}` : away);
  retry = setTimeout(() => connect(true), answer && pauseOf(answer) || backoff());
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : connect(true)));
document.addEventListener("focusout", () => {
  if (held && stream) refresh();
});
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && !e.target.matches("input, textarea")) {
    e.preventDefault();
    document.getElementById("search").focus();
  }
});
if (!document.hidden) connect(false);
for (const [part, module] of [["[role=treegrid]", "tree"], ["[data-editor]", "editor"], ["[data-follow]", "logs"]]) {
  if (document.querySelector(part)) import(`/static/${module}.js`).catch(() => {}); // without it, the page is whole as well
}
