// The page of the arena: what is chosen, kept in the address; controls that are made once; and what is drawn of it.
// page_chart.js and page_table.js stand before this file in the page, and page.py writes the data.

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const MOST = 10; // lines that are shown unless more are ticked
const problems = new Map(data.problems.map((one) => [one.name, one]));
const rankOf = new Map(data.ranks.map((one) => [`${one.group}/${one.variant}/${one.policy}`, one]));

// Policies have their colors in the order of their ranks, group by group: the best ones have no dashes.
const byDefault = data.ranks.filter((one) => one.variant === "default").map((one) => one.policy);
const policies = Object.keys(data.policies).sort((a, b) => data.policies[a].localeCompare(data.policies[b], "en"));
const ranked = new Set([...byDefault, ...policies]);
const looks = new Map([...ranked].map((name, place) => [name, look(place)]));

// What is chosen.  `policies` is null for the best ones, whatever the problem.
const DEFAULTS = { problem: data.problems[0].name, variant: "default", regret: "regret", ranks: "rank", find: "" };
const VARIANTS = { default: ["default"], tuned: ["tuned"], both: ["default", "tuned"] };
let state = { ...DEFAULTS, policies: null };

const readAddress = () => {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const known = (name, allowed) => (allowed(given[name]) ? given[name] : DEFAULTS[name]);
  const among = (columns) => (key) => columns.some((one) => key === one.key || key === `-${one.key}`);
  const chosen = given.policies === "all" ? policies : given.policies?.split(",");
  state = {
    problem: known("problem", (name) => problems.has(name)),
    variant: known("variant", (name) => Object.hasOwn(VARIANTS, name ?? "")),
    regret: known("regret", among(REGRET_COLUMNS)),
    ranks: known("ranks", among(RANK_COLUMNS)),
    find: given.find ?? "",
    policies: chosen ? new Set(policies.filter((name) => chosen.includes(name))) : null,
  };
};

const address = () => {
  const kept = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS)) if (state[name] !== usual) kept.set(name, state[name]);
  const everyone = state.policies?.size === policies.length;
  if (state.policies) kept.set("policies", everyone ? "all" : [...state.policies].join());
  return `#${kept}`.replaceAll("%2C", ",");
};

// Every choice is a step that "back" undoes, apart from the letters of a search.
const change = (choice, step = true) => {
  Object.assign(state, choice);
  history[step ? "pushState" : "replaceState"](null, "", address());
  draw();
};

// Rows of the problem and the variant; a policy with nothing to tune is its own tuned variant.
const problem = () => problems.get(state.problem);
const candidates = () => {
  const variants = VARIANTS[state.variant];
  const fits = (row) => variants.includes(row.variant) || row.setting === "";
  return data.rows.filter((row) => row.problem === state.problem && fits(row));
};

// The best policies of the group by mean rank, by regret where there is no rank, as long as their lines are few.
const bestPolicies = () => {
  const rows = candidates();
  const rank = (row, variant) => rankOf.get(`${problem().group}/${variant}/${row.policy}`)?.mean ?? 1e9;
  const place = (row) => Math.min(...VARIANTS[state.variant].map((variant) => rank(row, variant)));
  const ordered = [...rows].sort((a, b) => place(a) - place(b) || last(a.mean) - last(b.mean));
  const chosen = new Set();
  let lines = 0;
  for (const policy of new Set(ordered.map((row) => row.policy))) {
    lines += rows.filter((row) => row.policy === policy).length;
    if (lines > MOST) break;
    chosen.add(policy);
  }
  return chosen;
};

const bringOut = (policy) => {
  const groups = [...document.querySelectorAll("#chart g[data-policy]")];
  const there = groups.some((group) => group.dataset.policy === policy);
  for (const group of groups) {
    group.classList.toggle("faded", there && group.dataset.policy !== policy);
    group.classList.toggle("front", there && group.dataset.policy === policy);
  }
};

// A mouse over a name or a line, or the keyboard's focus on a name, brings the policy out.
const bringsOut = (target, policy) => {
  for (const name of ["mouseenter", "focusin"]) target.addEventListener(name, () => bringOut(policy));
  for (const name of ["mouseleave", "focusout"]) target.addEventListener(name, () => bringOut(null));
};

const named = (row) => [swatch(looks.get(row.policy)), ` ${row.title}`];
const REGRET_COLUMNS = [
  { key: "policy", title: "policy", text: true, value: (row) => row.title, show: named },
  { key: "variant", title: "variant", text: true, value: (row) => row.variant, show: (row) => row.variant },
  { key: "setting", title: "setting", text: true, value: (row) => row.setting, show: (row) => row.setting || "none" },
  {
    key: "regret",
    title: "regret",
    value: (row) => last(row.mean),
    show: (row) => withError([last(row.mean), last(row.half)]),
  },
  {
    key: "gap",
    title: "minus GLM-TSL",
    value: (row) => (row.gap ? row.gap[0] : null),
    show: (row) => (row.gap ? `${row.gap[0] > 0 ? "+" : ""}${withError(row.gap)}` : "–"),
  },
  {
    key: "verdict",
    title: "verdict",
    text: true,
    value: (row) => ["better", "no difference seen", "worse"].indexOf(row.verdict),
    show: (row) => row.verdict,
    kind: (row) => (["better", "worse"].includes(row.verdict) ? row.verdict : ""),
  },
  {
    key: "time",
    title: "µs per round",
    value: (row) => row.microseconds,
    show: (row) => (row.microseconds === null ? "–" : String(Number(row.microseconds.toPrecision(3)))),
  },
];
const RANK_COLUMNS = [
  { key: "policy", title: "policy", text: true, value: (one) => one.title, show: named },
  { key: "variant", title: "variant", text: true, value: (one) => one.variant, show: (one) => one.variant },
  {
    key: "rank",
    title: "mean rank",
    value: (one) => one.mean,
    show: (one) => `${one.mean.toFixed(1)} of ${one.rivals}`,
  },
  {
    key: "low",
    title: "95 % interval",
    value: (one) => one.low,
    show: (one) => `${one.low.toFixed(1)} to ${one.high.toFixed(1)}`,
  },
];
const fillRegrets = sortableTable(at("regrets"), REGRET_COLUMNS, (by) => change({ regret: by }));
const fillRanks = sortableTable(at("ranks"), RANK_COLUMNS, (by) => change({ ranks: by }));

for (const group of new Set(data.problems.map((one) => one.group))) {
  const options = data.problems.filter((one) => one.group === group);
  const made = options.map((one) => element("option", { value: one.name }, one.title));
  at("problem").append(element("optgroup", { label: group }, ...made));
}
const boxes = new Map(
  policies.map((name) => {
    const box = element("input", { type: "checkbox", value: name });
    const label = element("label", {}, box, " ", swatch(looks.get(name)), ` ${data.policies[name]}`);
    box.addEventListener("change", () => {
      const chosen = new Set(state.policies ?? bestPolicies());
      if (box.checked) chosen.add(name);
      else chosen.delete(name);
      change({ policies: chosen });
      bringOut(box.checked ? name : null);
    });
    bringsOut(label, name);
    at("policies").append(label);
    return [name, box];
  }),
);
at("problem").addEventListener("change", (event) => change({ problem: event.target.value }));
at("variants").addEventListener("change", (event) => change({ variant: event.target.value }));
at("find").addEventListener("input", (event) => change({ find: event.target.value }, false));
at("all").addEventListener("click", () => change({ policies: new Set(policies) }));
at("clear").addEventListener("click", () => change({ policies: new Set() }));
at("best").addEventListener("click", () => change({ policies: null }));

const chart = (rows) => {
  const both = new Set(rows.map((row) => row.variant)).size > 1;
  const lines = rows.map((row) => ({
    ...row,
    name: data.policies[row.policy] + (both ? `, ${row.variant}` : ""),
    look: looks.get(row.policy),
    rounds: problem().rounds,
  }));
  if (!lines.length) {
    at("chart").replaceChildren(element("p", {}, "No line to draw: tick a policy above, or press “Best ten”."));
    return;
  }
  const described = `Mean regret over rounds on ${problem().title}; the table below has the numbers`;
  at("chart").replaceChildren(drawChart(lines, Math.max(320, at("chart").clientWidth), described));
  for (const group of document.querySelectorAll("#chart g[data-policy]")) bringsOut(group, group.dataset.policy);
};

// Only attributes of controls change here: a control that is made anew would lose the focus.
const draw = () => {
  const chosen = state.policies ?? bestPolicies();
  const rows = candidates();
  const shown = rows.filter((row) => chosen.has(row.policy));
  const playing = new Set(rows.map((row) => row.policy));
  const wanted = state.find.trim().toLowerCase();
  const found = (name) => playing.has(name) && `${name} ${data.policies[name]}`.toLowerCase().includes(wanted);
  at("problem").value = state.problem;
  at("what").textContent = problem().about;
  at(`variant-${state.variant}`).checked = true;
  if (at("find").value !== state.find) at("find").value = state.find;
  for (const [name, box] of boxes) {
    box.checked = chosen.has(name);
    box.parentElement.hidden = !found(name);
  }
  at("unfound").hidden = policies.some(found);
  at("count").textContent = `${shown.length} of ${rows.length} lines shown`;
  chart(shown);
  at("of").textContent = `Regret on ${problem().title}, after ${last(problem().rounds)} rounds`;
  fillRegrets(shown, state.regret, (row) => (row.policy === "glm_tsl" ? "reference" : ""));
  const inGroup = (one) => one.group === problem().group && VARIANTS[state.variant].includes(one.variant);
  at("group").textContent = `Mean rank over the ${problem().group}`;
  fillRanks(data.ranks.filter((one) => inGroup(one) && chosen.has(one.policy)), state.ranks);
  const reasons = problem().absent.map(([title, reason]) => element("li", {}, `${title}: ${reason}`));
  at("absent").hidden = !reasons.length;
  at("reasons").replaceChildren(...reasons);
};

const restore = () => {
  readAddress();
  draw();
};
addEventListener("popstate", restore);
at("app").hidden = false;
restore();
let width = at("chart").clientWidth;
new ResizeObserver(() => {
  if (at("chart").clientWidth === width) return;
  width = at("chart").clientWidth;
  draw();
}).observe(at("chart"));
