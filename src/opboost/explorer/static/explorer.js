"use strict";
// Redraws the results of the form, and keeps a trial or a job up to date. Everything is drawn on the
// server; this file fetches it and puts it in its place.

const $ = (id) => document.getElementById(id);

function place(target, html) {
  if (target.dataset.html === html) return;
  target.dataset.html = html;
  const open = [...target.querySelectorAll("details[open]")].map((d) => d.id);
  const focused = target.contains(document.activeElement) ? document.activeElement.id : "";
  target.innerHTML = html;
  for (const id of open) if ($(id)) $(id).open = true;
  if (focused && $(focused)) $(focused).focus({ preventScroll: true });
}

// Show the total for one person first, in bold.
function say(words) {
  const first = words.startsWith("One person's record") ? words.indexOf(". ") + 1 : 0;
  if ($("summary").textContent.trim() === words) return;
  const total = document.createElement("strong");
  total.textContent = words.slice(0, first);
  $("summary").replaceChildren(...(first ? [total] : []), words.slice(first));
}

const GONE = "The server of this page does not answer. Is opboost explore still running?";

async function ask(address, options) {
  let answer;
  try {
    answer = await fetch(address, { cache: "no-store", referrerPolicy: "no-referrer", ...options });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error(GONE);
  }
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

// The form of either page; data-part is the address that renders its results.
const form = $("choice");
let pending = null;

const query = () => new URLSearchParams(new FormData(form)).toString();

function showProblems(problems) {
  for (const said of form.querySelectorAll(".problem")) {
    const name = said.id.slice("problem-".length);
    const words = problems[name] || "";
    said.textContent = words;
    said.hidden = !words;
    const control = $(name);
    if (control) words ? control.setAttribute("aria-invalid", "true") : control.removeAttribute("aria-invalid");
  }
}

async function redraw() {
  if (pending) pending.abort();
  const mine = (pending = new AbortController());
  const begun = performance.now();
  const asked = query();
  let found;
  try {
    found = await ask(`${form.dataset.part}?${asked}`, { signal: mine.signal });
  } catch (error) {
    if (error.name !== "AbortError") {
      say(error.message);
      $("results").classList.add("stale");
    }
    return;
  }
  showProblems(found.problems);
  say(found.summary);
  $("results").classList.toggle("stale", found.html === null);
  if (found.html !== null) {
    place($("results"), found.html);
    $("results").offsetHeight; // force layout, so that the time measured below is complete
    history.replaceState(null, "", `?${asked}`);
  }
  Object.assign(document.documentElement.dataset, { drawn: asked, redraw: performance.now() - begun });
}

function showFitting() {
  for (const field of form.querySelectorAll("[data-only]")) {
    field.hidden = !field.dataset.only.split(" ").includes($("kind").value);
  }
  for (const slider of form.querySelectorAll("[data-slider]")) {
    const typed = Number($(slider.dataset.slider).value);
    const level = slider.dataset.scale === "linear" ? typed : Math.log10(typed);
    if (Number.isFinite(level)) slider.value = level;
  }
}

function numberRows() {
  const chosen = $("look").value;
  $("look").replaceChildren();
  form.querySelectorAll("[data-row]").forEach((row, i) => {
    for (const name of ["column", "lower", "upper"]) {
      const input = row.querySelector(`[name=${name}]`);
      input.id = `${name}-${i}`;
      input.setAttribute("aria-describedby", `problem-${name}-${i}`);
      input.previousElementSibling.htmlFor = input.id;
      row.querySelectorAll(".problem")[["column", "lower", "upper"].indexOf(name)].id = `problem-${name}-${i}`;
    }
    const title = row.querySelector("[name=column]").value;
    row.querySelector("[data-remove]").setAttribute("aria-label", `Remove column ${title || i + 1}`);
    $("look").add(new Option(title || `column ${i + 1}`, i, false, String(i) === chosen));
  });
}

function watchForm() {
  for (const element of document.querySelectorAll("[data-js]")) element.hidden = false;
  form.addEventListener("submit", (event) => { event.preventDefault(); redraw(); });
  form.addEventListener("input", (event) => {
    const { slider, scale } = event.target.dataset;
    if (slider) {
      const place = Number(event.target.value);
      $(slider).value = scale === "linear" ? place : Number((10 ** place).toPrecision(2));
    } else if (event.target.name === "column") numberRows();
    showFitting();
    redraw();
  });
  if ($("add-column")) watchColumns();
  showFitting();
}

function watchColumns() {
  $("add-column").addEventListener("click", () => {
    $("columns").append($("column-row").content.cloneNode(true));
    numberRows();
    $("columns").lastElementChild.querySelector("input").focus();
  });
  $("columns").addEventListener("click", (event) => {
    if (!event.target.closest("[data-remove]")) return;
    event.target.closest("[data-row]").remove();
    numberRows();
    $("add-column").focus();
    redraw();
  });
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = $(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
    $("copied").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(source);
    $("copied").textContent = "Selected: press Ctrl+C to copy.";
  }
});

// The trial.
async function followTrial() {
  const found = await ask("trial/part");
  place($("trial-part"), found.html);
  const running = found.state === "running";
  $("trial-stop").disabled = !running;
  $("trial").dataset.state = found.state;
  if (running) setTimeout(followTrial, 500);
}

function watchTrial() {
  $("trial-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form));
    body.set("label", $("label").value);
    const found = await ask("trial/start", { method: "POST", body });
    $("trial-said").textContent = found.problem;
    $("trial-said").hidden = !found.problem;
    if (!found.problem) followTrial();
  });
  $("trial-stop").addEventListener("click", async () => {
    await ask("trial/stop", { method: "POST" });
    followTrial();
  });
  followTrial();
}

// The run page.
async function followRun() {
  const live = $("run");
  try {
    const found = await ask("run/part");
    place(live, found.html);
    say(found.words);
    if (found.over) return;
  } catch (error) {
    say(error.message);
  }
  setTimeout(followRun, 1000);
}

// On a narrow screen, fold the controls so that the results come first.
function foldControls() {
  const narrow = matchMedia("(max-width: 959px)");
  const fold = () => { for (const part of document.querySelectorAll(".controls")) part.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
}

if (form) watchForm();
foldControls();
if ($("trial")) watchTrial();
if ($("run")) followRun();
