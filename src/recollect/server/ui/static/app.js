// Search while typing, keys, copying, tokens. Without tokens, pages work without it.
const rules = { createHTML: (text) => text };
const html = globalThis.trustedTypes ? trustedTypes.createPolicy("recollect", rules) : rules;
const here = () => location.pathname + location.search;
const token = () => (document.body.hasAttribute("data-token") ? sessionStorage.getItem("token") : null);
let asked = 0, shown = here();

const ask = (address, options = {}) => {
  const headers = new Headers(options.headers);
  if (token()) headers.set("Authorization", `Bearer ${token()}`);
  return fetch(address, { ...options, headers, cache: "no-store", referrerPolicy: "no-referrer" });
};

// Show a fetched page, or only what it found.
const show = async (answer, found) => {
  const page = new DOMParser().parseFromString(html.createHTML(await answer.text()), "text/html");
  const part = page.getElementById("results");
  if (found) {
    if (!part) return;
    document.getElementById("results").replaceWith(part);
    document.querySelector("footer").replaceWith(page.querySelector("footer"));
    return awaken();
  }
  document.title = page.title;
  document.body.replaceChildren(...page.body.childNodes);
  awaken();
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target) target.scrollIntoView();
  else scrollTo(0, 0);
  const heading = document.querySelector(".done, h1");
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
};
const visit = async (address, options = {}) => {
  const number = ++asked;
  const answer = await ask(address, options.request);
  if (number !== asked) return;
  if (answer.status === 401) return refused();
  if (!(answer.headers.get("content-type") || "").startsWith("text/html")) return;
  const remember = options.remember || "pushState";
  if (remember !== "none") history[remember](null, "", answer.url + new URL(address, location.href).hash);
  shown = here();
  await show(answer, options.found);
};
const refused = () => {
  sessionStorage.removeItem("token");
  const line = document.querySelector("[data-refused]");
  if (line) line.hidden = false;
  else location.reload();
};
const load = async (link) => {
  const answer = await ask(link.href);
  if (answer.status === 401) return refused();
  const blob = URL.createObjectURL(await answer.blob());
  const named = /filename="(.+?)"/.exec(answer.headers.get("content-disposition"));
  const made = Object.assign(document.createElement("a"), { href: blob, download: named ? named[1] : link.download });
  made.click();
  URL.revokeObjectURL(blob);
};

// Show what needs a script.
const awaken = () => {
  for (const each of document.querySelectorAll("[data-copy], [data-copy-from]")) each.hidden = false;
  const keys = document.querySelector("[data-keys]");
  if (keys) {
    keys.hidden = false;
    keys.querySelector("[data-keys-switch]").checked = localStorage.getItem("keys") !== "off";
  }
};

document.addEventListener("click", async (event) => {
  if (event.target.closest("[data-sign-out]")) return refused();
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
    sessionStorage.setItem("token", form.querySelector("input").value.trim());
    return visit(location.href, { remember: "replaceState" });
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
  pause = setTimeout(() => visit(addressOf(form), { remember: "replaceState", found: true }), 200);
});
document.addEventListener("change", (event) => {
  if (event.target.hasAttribute("data-keys-switch"))
    localStorage.setItem("keys", event.target.checked ? "on" : "off");
});
document.addEventListener("keydown", (event) => {
  if (localStorage.getItem("keys") === "off" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const key = `[data-key="${CSS.escape(event.key)}"]`;
  const target = document.querySelector(`main ${key}`) || document.querySelector(key);
  if (!target || event.repeat) return;
  event.preventDefault();
  if (target.matches("input")) target.focus();
  else target.click();
});
addEventListener("popstate", () => {
  if (token() && here() !== shown) visit(location.href, { remember: "none" });
});

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  if (document.body.hasAttribute("data-token")) sessionStorage.setItem("token", given);
  history.replaceState(null, "", here());
}
awaken();
if (document.body.hasAttribute("data-shell") && token()) visit(location.href, { remember: "replaceState" });
