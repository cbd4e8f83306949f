// Search while typing, keys, copying, tokens. Without tokens, every page works without it.
const rules = { createHTML: (text) => text };
const html = globalThis.trustedTypes ? trustedTypes.createPolicy("recollect", rules) : rules;
const store = { token: "recollect-token", keys: "recollect-keys" };
const here = () => location.pathname + location.search;
const token = () => (document.body.hasAttribute("data-token") ? sessionStorage.getItem(store.token) : null);
let asked = 0, shown = here();

const ask = (address, options = {}) => {
  const headers = new Headers(options.headers);
  if (token()) headers.set("Authorization", `Bearer ${token()}`);
  return fetch(address, { ...options, headers, cache: "no-store", referrerPolicy: "no-referrer" });
};
const parsed = async (answer) =>
  new DOMParser().parseFromString(html.createHTML(await answer.text()), "text/html");

// Show a fetched page.
const show = async (answer, keepFocus) => {
  const page = await parsed(answer);
  if (keepFocus) {
    document.getElementById("results").replaceWith(page.getElementById("results"));
    document.querySelector("footer").replaceWith(page.querySelector("footer"));
  } else {
    document.title = page.title;
    document.body.replaceChildren(...page.body.childNodes);
  }
  awaken();
  if (keepFocus) return;
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target) target.scrollIntoView();
  else scrollTo(0, 0);
  const heading = document.querySelector("h1");
  if (heading) { heading.tabIndex = -1; heading.focus({ preventScroll: true }); }
};
const visit = async (address, options = {}) => {
  const number = ++asked;
  const answer = await ask(address, options.request);
  if (number !== asked) return; // a later one is under way
  if (answer.status === 401) return refused();
  if (!(answer.headers.get("content-type") || "").startsWith("text/html")) return;
  const hash = new URL(address, location.href).hash;
  if (options.remember === "replace") history.replaceState(null, "", answer.url + hash);
  else if (options.remember !== "none") history.pushState(null, "", answer.url + hash);
  shown = here();
  await show(answer, options.keepFocus);
};
const refused = () => {
  sessionStorage.removeItem(store.token);
  const line = document.querySelector("[data-refused]");
  if (line) line.hidden = false;
  else location.reload();
};
const load = async (link) => {
  const answer = await ask(link.href);
  if (answer.status === 401) return refused();
  const blob = URL.createObjectURL(await answer.blob());
  const made = Object.assign(document.createElement("a"), { href: blob, download: link.pathname.split("/").pop() });
  made.click();
  URL.revokeObjectURL(blob);
};

// Show what needs a script.
const awaken = () => {
  for (const each of document.querySelectorAll("[data-copy], [data-copy-from]")) each.hidden = false;
  const keys = document.querySelector("[data-keys]");
  if (keys) {
    keys.hidden = false;
    keys.querySelector("[data-keys-switch]").checked = localStorage.getItem(store.keys) !== "off";
  }
};

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (button) {
    const from = button.dataset.copyFrom;
    return navigator.clipboard.writeText(from ? document.getElementById(from).textContent : button.dataset.copy);
  }
  const link = event.target.closest("a[href]");
  if (!link || !token() || link.origin !== location.origin || event.ctrlKey || event.metaKey) return;
  if (link.hash && link.pathname + link.search === here()) return;
  event.preventDefault();
  if (link.hasAttribute("data-load")) await load(link);
  else await visit(link.href);
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.hasAttribute("data-sign-in")) {
    event.preventDefault();
    sessionStorage.setItem(store.token, form.querySelector("input").value.trim());
    return visit(location.href, { remember: "replace" });
  }
  if (!token()) return;
  event.preventDefault();
  if (form.method === "get") return visit(addressOf(form));
  const body = new URLSearchParams(new FormData(form, event.submitter));
  await visit(form.getAttribute("action"), { request: { method: "POST", body } });
});
const addressOf = (form) => {
  const fields = [...new FormData(form)].filter(([, value]) => value !== "");
  return `${form.getAttribute("action")}?${new URLSearchParams(fields)}`;
};

let pause = 0;
document.addEventListener("input", (event) => {
  const output = event.target.dataset.shows;
  if (output) document.getElementById(output).value = event.target.value;
  const form = event.target.closest("form[data-live]");
  if (!form || event.isComposing) return;
  clearTimeout(pause);
  pause = setTimeout(() => visit(addressOf(form), { remember: "replace", keepFocus: true }), 200);
});
document.addEventListener("change", (event) => {
  if (event.target.hasAttribute("data-keys-switch"))
    localStorage.setItem(store.keys, event.target.checked ? "on" : "off");
});
document.addEventListener("keydown", (event) => {
  if (localStorage.getItem(store.keys) === "off" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!target) return;
  event.preventDefault();
  if (target.matches("input")) target.focus();
  else target.click();
});
addEventListener("popstate", () => {
  if (token() && here() !== shown) visit(location.href, { remember: "none" });
});

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  if (document.body.hasAttribute("data-token")) sessionStorage.setItem(store.token, given);
  history.replaceState(null, "", here());
}
awaken();
if (document.body.hasAttribute("data-shell") && token()) visit(location.href, { remember: "replace" });
