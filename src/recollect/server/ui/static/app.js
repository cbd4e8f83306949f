// Search while typing, keys, copying, tokens.
const rules = { createHTML: (text) => text };
const html = globalThis.trustedTypes ? trustedTypes.createPolicy("recollect", rules) : rules;
const find = (what) => document.querySelector(what);
const on = (what, act) => document.addEventListener(what, act);
const here = () => location.pathname + location.search;
const guarded = () => "token" in document.body.dataset;
const token = () => guarded() && sessionStorage.token;
let asked = 0, shown = here(), since = 0, pause = 0;

const say = (text) => {
  find(".failed")?.remove();
  const line = Object.assign(document.createElement("p"), { className: "problem failed", role: "alert" });
  line.textContent = text;
  find("main").prepend(line);
};
const ask = async (address, options = {}) => {
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  const answer = await fetch(address, { ...options, headers }).catch((error) => say(error.message));
  if (answer?.status !== 401) return answer;
  delete sessionStorage.token;
  if (find("[data-refused]")) find("[data-refused]").hidden = false;
  else location.reload();
};
const show = (page, hash) => {
  document.title = page.title;
  document.body.replaceChildren(...page.body.childNodes);
  awaken();
  const target = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
  (target || document.body).scrollIntoView();
};
const update = (page, isGood) => {
  find("#found").textContent = page.querySelector(isGood ? "#found" : "#problem")?.textContent;
  if (!isGood) return;
  for (const part of ["#results", "footer"]) find(part).replaceWith(page.querySelector(part));
  awaken();
};
const visit = async (address, { request, remember = "pushState", live } = {}) => {
  clearTimeout(pause);
  const number = ++asked;
  const answer = await ask(address, request);
  if (!answer || number !== asked) return;
  const text = await answer.text();
  if (!answer.headers.get("content-type").startsWith("text/html")) return say(JSON.parse(text).detail);
  const page = new DOMParser().parseFromString(html.createHTML(text), "text/html");
  const { hash } = new URL(address, location);
  if (answer.ok && remember) history[remember](null, "", answer.url + hash);
  shown = here();
  if (live) update(page, answer.ok);
  else show(page, hash);
};
const load = async (link) => {
  const answer = await ask(link.href);
  if (!answer) return;
  if (!answer.ok) return say((await answer.json()).detail);
  const href = URL.createObjectURL(await answer.blob());
  const named = /filename="(.+?)"/.exec(answer.headers.get("content-disposition"));
  Object.assign(document.createElement("a"), { href, download: named ? named[1] : link.download }).click();
};
const aim = (form) => form.getAttribute("action");
const addressOf = (form) => {
  const fields = [...new FormData(form)].filter(([, value]) => value);
  return `${aim(form)}?${new URLSearchParams(fields)}`;
};

// Show what needs a script.
const awaken = () => {
  since = performance.now();
  for (const each of document.querySelectorAll("[data-copy]")) each.hidden = !navigator.clipboard;
  const keys = find("[data-keys]");
  if (keys) {
    keys.hidden = false;
    keys.querySelector("input").checked = localStorage.keys !== "off";
  }
  const first = find(".done") || (token() && find("h1"));
  if (!first || document.activeElement !== document.body) return;
  first.tabIndex = -1;
  first.focus({ preventScroll: true });
};

on("click", async (event) => {
  if (event.target.closest("[data-sign-out]")) {
    delete sessionStorage.token;
    return location.reload();
  }
  const button = event.target.closest("[data-copy]");
  if (button) return navigator.clipboard.writeText(button.dataset.copy || find("#" + button.value).textContent);
  const link = event.target.closest("a[href]");
  if (!link || !token() || link.origin !== location.origin || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (link.hash && link.pathname + link.search === here()) return;
  event.preventDefault();
  if ("load" in link.dataset) load(link);
  else visit(link.href);
});
on("submit", (event) => {
  const form = event.target;
  const isNew = "signIn" in form.dataset;
  if (!isNew && !token()) return;
  event.preventDefault();
  if (isNew) {
    sessionStorage.token = form.querySelector("input").value.trim();
    return visit(location, { remember: "replaceState" });
  }
  if (form.method === "get") return visit(addressOf(form));
  const body = new URLSearchParams(new FormData(form, event.submitter));
  visit(aim(form), { request: { method: "POST", body } });
});
on("input", (event) => {
  if (event.target.type === "range") find("output").value = event.target.value;
  const form = event.target.closest("form[data-live]");
  if (!form || event.isComposing) return;
  clearTimeout(pause);
  pause = setTimeout(() => visit(addressOf(form), { remember: "replaceState", live: true }), 200);
});
on("change", ({ target }) => {
  if (target.closest("[data-keys]")) localStorage.keys = target.checked ? "on" : "off";
});
on("keydown", (event) => {
  if (localStorage.keys === "off" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const key = `[data-key="${CSS.escape(event.key)}"]`;
  const target = find(`main ${key}`) || find(key);
  if (!target || event.repeat) return;
  if (target.matches("button") && performance.now() - since < 300) return; // meant for the page before
  event.preventDefault();
  if (target.matches("input")) target.focus();
  else target.click();
});
addEventListener("popstate", () => token() && here() !== shown && visit(location, { remember: "" }));

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  if (guarded() && !token()) sessionStorage.token = given;
  history.replaceState(null, "", here());
}
awaken();
if (find("[data-shell]") && token()) visit(location, { remember: "replaceState" });
