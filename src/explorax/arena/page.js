"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const policies = [...new Map(data.rows.map((row) => [row.policy, row.title])).entries()];
  const order = new Map(policies.map(([name], index) => [name, index]));
  // Hues a golden angle apart: neighbours in the list look different.
  const colour = (name) => `hsl(${(order.get(name) * 137.5 + 210) % 360} 65% ${order.get(name) % 2 ? 38 : 52}%)`;
  const state = { problem: data.problems[0].name, variants: new Set(data.variants), policies: new Set() };

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const shape = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const problem = () => data.problems.find((one) => one.name === state.problem);
  const here = () => data.rows.filter((row) => row.problem === state.problem);
  const last = (values) => values[values.length - 1];
  const shown = () => here().filter((row) => state.variants.has(row.variant) && state.policies.has(row.policy));
  const digits = (value) => value.toFixed(Math.abs(value) < 1000 ? 1 : 0);

  const best = (count) => {
    const names = [...new Set([...here()].sort((a, b) => last(a.mean) - last(b.mean)).map((row) => row.policy))];
    return new Set([...names.slice(0, count), "glm_tsl", "greedy"].filter((name) => names.includes(name)));
  };

  const checkbox = (label, on, change, swatch) => {
    const box = element("input", { type: "checkbox" });
    box.checked = on;
    box.addEventListener("change", () => change(box.checked));
    const made = element("label", {}, box, " ");
    if (swatch) made.append(element("span", { class: "swatch", style: `color: ${swatch}` }), " ");
    made.append(label);
    return made;
  };

  const toggle = (set, value, on) => {
    if (on) set.add(value);
    else set.delete(value);
    draw();
  };

  const bringOut = (policy) => {
    for (const group of document.querySelectorAll("#chart g[data-policy]"))
      group.classList.toggle("faded", policy !== null && group.dataset.policy !== policy);
  };

  const controls = () => {
    const wanted = at("search").value.toLowerCase();
    const playing = new Set(here().map((row) => row.policy));
    at("what").textContent = problem().about;
    at("policies").replaceChildren(
      ...policies
        .filter(([name, title]) => playing.has(name) && `${name} ${title}`.toLowerCase().includes(wanted))
        .map(([name, title]) => {
          const on = state.policies.has(name);
          const made = checkbox(title, on, (now) => toggle(state.policies, name, now), colour(name));
          made.addEventListener("mouseenter", () => bringOut(name));
          made.addEventListener("mouseleave", () => bringOut(null));
          return made;
        }),
    );
    at("variants").replaceChildren(
      ...data.variants.map((name) =>
        checkbox(name === "tuned" ? "tuned (solid)" : "default (dashed)", state.variants.has(name), (now) =>
          toggle(state.variants, name, now),
        ),
      ),
    );
  };

  const ticks = (top) => {
    const rough = top / 5 || 1;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((one) => one * size).find((one) => one >= rough);
    return Array.from({ length: Math.floor(top / step) + 1 }, (_, index) => index * step);
  };

  const chart = () => {
    const rows = shown();
    const [width, height, left, bottom, right, upper] = [900, 420, 56, 34, 14, 10];
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "regret over rounds" });
    const end = Math.max(1, ...rows.map((row) => last(row.rounds)));
    const top = 1.05 * Math.max(1e-9, ...rows.map((row) => last(row.mean) + last(row.half)));
    const x = (value) => left + ((width - left - right) * value) / end;
    const y = (value) => height - bottom - ((height - bottom - upper) * value) / top;
    for (const value of ticks(top)) {
      svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
      const text = shape("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" });
      text.textContent = String(Number(value.toPrecision(3)));
      svg.append(text);
    }
    for (const value of ticks(end)) {
      const text = shape("text", { x: x(value), y: height - bottom + 16, "text-anchor": "middle" });
      text.textContent = String(Number(value.toPrecision(3)));
      svg.append(text);
    }
    for (const row of rows) {
      const group = shape("g", { "data-policy": row.policy });
      const points = row.rounds.map((round, index) => [round, row.mean[index], row.half[index]]);
      const along = (several) => several.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("L");
      const band = [...points.map(([t, m, h]) => [t, m + h]), ...points.map(([t, m, h]) => [t, m - h]).reverse()];
      group.append(shape("path", { class: "band", fill: colour(row.policy), d: `M${along(band)}Z` }));
      const line = { class: "line", stroke: colour(row.policy), d: `M${along([[0, 0], ...points])}` };
      if (row.variant === "default") line["stroke-dasharray"] = "6 4";
      group.append(shape("path", line));
      const name = shape("title", {});
      name.textContent = `${row.title}, ${row.variant}: ${digits(last(row.mean))} ± ${digits(last(row.half))}`;
      group.append(name);
      group.addEventListener("mouseenter", () => bringOut(row.policy));
      group.addEventListener("mouseleave", () => bringOut(null));
      svg.append(group);
    }
    at("chart").replaceChildren(svg);
  };

  const fill = (table, head, lines) => {
    const cells = (name, line) => element("tr", {}, ...line.map((cell) => element(name, {}, cell)));
    table.replaceChildren(element("thead", {}, cells("th", head)), element("tbody", {}, ...lines));
  };

  const standing = () => {
    at("of").textContent = `Regret on ${problem().title}`;
    const lines = shown()
      .sort((a, b) => last(a.mean) - last(b.mean))
      .map((row) => {
        const gap = row.gap ? `${row.gap[0] > 0 ? "+" : ""}${digits(row.gap[0])} ± ${digits(row.gap[1])}` : "";
        const cells = [
          row.title,
          row.variant,
          row.setting,
          `${digits(last(row.mean))} ± ${digits(last(row.half))}`,
          gap,
          row.verdict,
          row.microseconds === null ? "" : String(Number(row.microseconds.toPrecision(3))),
        ].map((cell) => element("td", {}, cell));
        cells[5].className = row.verdict;
        const line = element("tr", {}, ...cells);
        if (row.policy === "glm_tsl") line.className = "reference";
        return line;
      });
    fill(at("standing"), ["policy", "variant", "setting", "regret", "minus GLM-TSL", "", "µs a round"], lines);
  };

  const ranks = () => {
    const lines = data.ranks
      .filter((one) => one.group === problem().group && state.variants.has(one.variant))
      .filter((one) => state.policies.has(one.policy))
      .sort((a, b) => a.mean - b.mean)
      .map((one) => {
        const place = `${one.mean.toFixed(1)} of ${one.rivals}`;
        const cells = [one.title, one.variant, place, `${one.low.toFixed(1)} to ${one.high.toFixed(1)}`];
        return element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));
      });
    fill(at("ranks"), ["policy", "variant", "mean rank", "95 % interval"], lines);
  };

  const draw = () => {
    controls();
    chart();
    standing();
    ranks();
  };

  for (const group of new Set(data.problems.map((one) => one.group))) {
    const options = data.problems.filter((one) => one.group === group);
    at("problem").append(
      element("optgroup", { label: group }, ...options.map((one) => element("option", { value: one.name }, one.title))),
    );
  }
  at("problem").addEventListener("change", (event) => {
    state.problem = event.target.value;
    if (!here().some((row) => state.policies.has(row.policy))) state.policies = best(10);
    draw();
  });
  at("search").addEventListener("input", controls);
  const choose = (id, chosen) =>
    at(id).addEventListener("click", () => {
      state.policies = chosen();
      draw();
    });
  choose("all", () => new Set(policies.map(([name]) => name)));
  choose("none", () => new Set());
  choose("best", () => best(10));
  state.policies = best(10);
  at("app").hidden = false;
  draw();
})();
