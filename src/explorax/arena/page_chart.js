// The chart of the arena: mean regret over rounds, a line with its interval for each row, and names at the ends.

const COLORS = 6; // of page.css, which can be told apart by the color-blind, too
const DASHES = ["none", "7 4", "2 3", "12 3 2 3", "5 2 5 7"]; // when there are more policies than colors
const GAP = 15; // between the names at the ends, from line to line

const shape = (name, attributes = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const last = (values) => values[values.length - 1];
const digits = (value) => value.toFixed(Math.abs(value) < 1000 ? 1 : 0);
const withError = ([mean, half]) => `${digits(mean)} ± ${digits(half)}`;

// The look of the policy in that place of the list: six colors, then the same with dashes.
const look = (place) => ({ color: place % COLORS, dashes: DASHES[Math.floor(place / COLORS) % DASHES.length] });

const swatch = ({ color, dashes }) => {
  const line = { x1: 0, x2: 30, y1: 5, y2: 5, class: `stroke-${color}`, "stroke-dasharray": dashes };
  return shape("svg", { class: "swatch", viewBox: "0 0 30 10", "aria-hidden": "true" }, shape("line", line));
};

// Round numbers from 0 to the top, about as many as asked for.
const ticks = (top, count) => {
  const rough = top / count || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * size).find((one) => one >= rough);
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, index) => Number((index * step).toPrecision(6)));
};

// Places for names that want to be at these heights (ascending): at least a gap apart, between low and high, and as
// near as possible.  With the gaps taken off this is a monotone regression: neighbors in the wrong order share a mean.
const spread = (wanted, gap, low, high) => {
  const blocks = [];
  wanted.forEach((height, index) => {
    let block = { mean: height - index * gap, count: 1 };
    while (blocks.length && last(blocks).mean > block.mean) {
      const { mean, count } = blocks.pop();
      const both = count + block.count;
      block = { mean: (mean * count + block.mean * block.count) / both, count: both };
    }
    blocks.push(block);
  });
  const free = blocks.flatMap(({ mean, count }) => Array(count).fill(mean));
  const top = high - gap * (wanted.length - 1);
  return free.map((mean, index) => Math.max(low, Math.min(top, mean)) + index * gap);
};

const textWidth = (texts) => {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
  return Math.max(0, ...texts.map((text) => context.measureText(text).width));
};

// An SVG of that width.  Each line is {name, policy, variant, look, rounds, mean, half}.
const drawChart = (lines, width, description) => {
  const [left, upper, bottom] = [62, 14, 46];
  const right = Math.ceil(textWidth(lines.map((line) => line.name))) + 34;
  const height = Math.max(width < 600 ? 360 : 440, lines.length * GAP + upper + bottom);
  const end = Math.max(1, ...lines.map((line) => last(line.rounds)));
  const top = 1.04 * Math.max(1e-9, ...lines.map((line) => last(line.mean) + last(line.half)));
  const x = (round) => left + ((width - left - right) * round) / end;
  const y = (regret) => height - bottom - ((height - bottom - upper) * regret) / top;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description });
  svg.append(...axes(width, height, { left, right, upper, bottom, end, top, x, y }));
  const ordered = [...lines].sort((a, b) => last(b.mean) - last(a.mean)); // from the upper edge down
  const wanted = ordered.map((line) => y(last(line.mean)));
  const places = spread(wanted, GAP, upper, height - bottom);
  svg.append(...ordered.map((line, index) => series(line, x, y, places[index])));
  return svg;
};

const axes = (width, height, { left, right, upper, bottom, end, top, x, y }) => {
  const made = [];
  for (const value of ticks(top, 5)) {
    made.push(shape("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    made.push(shape("text", { class: "tick", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)));
  }
  for (const value of ticks(end, width - left - right < 400 ? 2 : 5)) {
    const foot = height - bottom;
    made.push(shape("line", { class: "grid", x1: x(value), x2: x(value), y1: foot, y2: foot + 4 }));
    made.push(shape("text", { class: "tick", x: x(value), y: foot + 17, "text-anchor": "middle" }, String(value)));
  }
  const [middle, center] = [(upper + height - bottom) / 2, (left + width - right) / 2];
  const turned = { class: "title", "text-anchor": "middle", transform: `translate(13 ${middle}) rotate(-90)` };
  made.push(shape("text", turned, "mean regret"));
  made.push(shape("text", { class: "title", "text-anchor": "middle", x: center, y: height - 8 }, "round"));
  return made;
};

const series = (line, x, y, place) => {
  const { color, dashes } = line.look;
  const points = line.rounds.map((round, index) => [round, line.mean[index], line.half[index]]);
  const path = (several) => several.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("L");
  const above = points.map(([round, mean, half]) => [round, mean + half]);
  const below = points.map(([round, mean, half]) => [round, Math.max(0, mean - half)]);
  const middle = `M${path([[0, 0], ...points])}`;
  const [endX, endY] = [x(last(line.rounds)), y(last(line.mean))];
  const leader = `M${endX + 5},${endY}L${endX + 18},${place}H${endX + 24}`;
  const about = `${line.name}: ${withError([last(line.mean), last(line.half)])}`;
  return shape(
    "g",
    { class: `series ${line.variant}`, "data-policy": line.policy },
    shape("title", {}, about),
    shape("path", { class: `band fill-${color}`, d: `M${path([...above, ...below.reverse()])}Z` }),
    shape("path", { class: `line stroke-${color}`, "stroke-dasharray": dashes, d: middle }),
    shape("path", { class: "target", d: middle }),
    shape("circle", { class: `end stroke-${color} fill-${color}`, cx: endX, cy: endY, r: 3.2 }),
    shape("path", { class: `leader stroke-${color}`, d: leader }),
    shape("text", { class: "name", x: endX + 27, y: place + 4 }, line.name),
  );
};
