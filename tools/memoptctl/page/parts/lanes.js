// What belongs to the layout's time: the load above it, what the engines do below it, and the axes of all three.

// By time without the plan: how much later things begin.
function shiftsOf(waits) {
  const order = d3.range(waits.from.length).sort((a, b) => waits.unplanned[a] - waits.unplanned[b]);
  const at = [], later = [];
  let sum = 0;
  for (const i of order) {
    sum += (waits.to[i] - waits.from[i]) * tick;
    at.push(waits.unplanned[i] * tick);
    later.push(sum);
  }
  return { at, later };
}
function shifted(ns) {
  const i = d3.bisectRight(view.shifts.at, ns + tick / 2);
  return i === 0 ? ns : ns + view.shifts.later[i - 1];
}

// The same of times in later iterations, which lifetimes may reach into.
function planned(ns) {
  const later = Math.floor(ns / (iteration.period_ns || 1));
  return later * view.plan.drawn.length_ns + shifted(ns - later * iteration.period_ns);
}
const lifeOf = (block) => planned(blocks.freed_ns[block]) - planned(blocks.born_ns[block]);

// Those that this page can have something in.
const LANES = PLAIN ? [] : [["kernels", "Kernels"], ...(program ? [["copies", "Copies"]] : []),
  ...(iteration && iteration.steps.kind.includes(REPLAY) ? [["replays", "Again"]] : []), ["out", "Swap out"], ["in", "Swap in"], ["waits", "Waits"]];
const LANE_TOP = 8, LANE_STEP = 21, LANE_HIGH = 16, LANE_AXIS = 39;
lanesCanvas.style.height = `${LANE_TOP + LANES.length * LANE_STEP + LANE_AXIS}px`;

const OF_STEPS = ["kernels", "copies", "replays"];

// [[from, to, what]] of a lane.
function barsOf(name) {
  const { copies, waits } = view.plan.drawn, steps = iteration.steps, bars = [];
  if (OF_STEPS.includes(name)) {
    for (let i = 0; i < steps.begin.length; ++i) {
      const lane = steps.kind[i] === COPY ? "copies" : steps.kind[i] === REPLAY ? "replays" : "kernels";
      if (steps.length[i] === 0 || lane !== name) continue;
      const begin = shifted(steps.begin[i] * tick);
      bars.push([begin, begin + steps.length[i] * tick, i]);
    }
  } else if (name === "waits") {
    for (let i = 0; i < waits.from.length; ++i) bars.push([waits.from[i] * tick, waits.to[i] * tick, i]);
  } else {
    for (let i = 0; i < copies.from.length; ++i) {
      if ((copies.in[i] === 1) === (name === "in")) bars.push([copies.from[i] * tick, copies.to[i] * tick, copies.block[i]]);
    }
  }
  return bars;
}
function lanesOf() {
  if (view.lanesOf !== view.plan) {
    view.lanes = LANES.map(([name, text]) => ({ name, text, bars: barsOf(name) }));
    view.lanesOf = view.plan;
  }
  return view.lanes;
}

function drawLanes() {
  const [context, width] = sized(lanesCanvas);
  const [t0, t1] = view.x.domain(), [x0, x1] = view.x.range(), perNs = (x1 - x0) / (t1 - t0);
  const colourOf = { kernels: colours.kernel, copies: colours.copy, replays: colours.again, out: colours.out, in: colours.in, waits: colours.wait };
  lanesOf().forEach(({ name, text, bars }, lane) => {
    const top = LANE_TOP + lane * LANE_STEP;
    context.fillStyle = colours.grid;
    context.fillRect(EDGE.left, top, width - EDGE.left - EDGE.right, LANE_HIGH);
    context.fillStyle = colours.muted;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.fillText(text, EDGE.left - 5, top + 12);
    context.save();
    context.beginPath();
    context.rect(EDGE.left, top, width - EDGE.left - EDGE.right, LANE_HIGH);
    context.clip();
    context.fillStyle = colourOf[name];
    let filled = -1;  // up to this pixel: what lies within is not seen
    for (const [from, to, what] of bars) {
      if (to < t0 || from > t1) continue;
      const left = x0 + (from - t0) * perNs, right = Math.max(x0 + (to - t0) * perNs, left + 0.7);
      if (right < filled + 0.5) continue;
      filled = right;
      const marked = (name === "out" || name === "in") && (what === chosen.block || what === chosen.hover);
      if (marked) context.fillStyle = colours.select;
      context.fillRect(left, top, right - left > 3 ? right - left - 0.6 : right - left, LANE_HIGH);
      if (marked) context.fillStyle = colourOf[name];
    }
    context.restore();
    if (chosen.block >= 0 && name === "kernels") markUses(context, top);
  });
}

// What touches the selected block.
function markUses(context, top) {
  context.fillStyle = colours.select;
  for (const { step: use } of usesOf(chosen.block)) {
    const x = view.x(shifted(iteration.steps.begin[use] * tick));
    if (x < EDGE.left || x > view.width - EDGE.right) continue;
    context.beginPath();
    context.moveTo(x, top + 3);
    context.lineTo(x - 4, top - 4);
    context.lineTo(x + 4, top - 4);
    context.fill();
  }
}

function laneTip(x, y) {
  const lane = Math.floor((y - LANE_TOP) / LANE_STEP);
  if (lane < 0 || lane >= LANES.length || x < EDGE.left) return null;
  const { name, text, bars } = lanesOf()[lane];
  const time = view.x.invert(x), slack = Math.abs(view.x.invert(x + 2) - time);
  const bar = bars.find(([from, to]) => time >= from - slack && time <= to + slack);
  if (!bar) return { lines: [`${text}: nothing at ${timeText(time)}`], block: -1 };
  const [from, to, what] = bar;
  const when = `${timeText(from)} to ${timeText(to)}, ${timeText(to - from)}`;
  if (OF_STEPS.includes(name)) return { lines: [stepName(what), when], block: -1 };
  if (name === "waits") return { lines: ["The program waits for a copy", when], block: -1 };
  return { lines: [`${text} of ${bytesText(blocks.bytes[what])}, ${blockName(what)}`, when], block: what };
}

function drawStrip() {
  const [context, width, height] = sized(strip);
  const levels = iteration.load, top = Math.max(view.plan.footprint, iteration.peak.load) * 1.08;
  view.load = d3.scaleLinear().domain([0, top]).range([height - 6, 24]);
  context.save();
  context.beginPath();
  context.rect(EDGE.left, 0, width - EDGE.left - EDGE.right, height);
  context.clip();
  context.beginPath();
  context.moveTo(view.x(0), view.load(0));
  for (let i = 0; i < levels.at_ns.length; ++i) {
    const to = i + 1 < levels.at_ns.length ? shifted(levels.at_ns[i + 1]) : view.plan.drawn.length_ns;
    context.lineTo(view.x(shifted(levels.at_ns[i])), view.load(levels.bytes[i]));
    context.lineTo(view.x(to), view.load(levels.bytes[i]));
  }
  context.lineTo(view.x(view.plan.drawn.length_ns), view.load(0));
  context.fillStyle = colours["load-fill"];
  context.fill();
  context.strokeStyle = colours.load;
  context.lineWidth = 1.2;
  context.stroke();
  context.setLineDash([6, 4]);
  context.strokeStyle = colours.plan;
  context.beginPath();
  context.moveTo(EDGE.left, view.load(view.plan.footprint));
  context.lineTo(width - EDGE.right, view.load(view.plan.footprint));
  context.stroke();
  context.setLineDash([]);
  const x = view.x(shifted(iteration.peak.at_ns)), y = view.load(iteration.peak.load);
  context.beginPath();
  context.arc(x, y, 4, 0, 2 * Math.PI);
  context.fillStyle = colours.card;
  context.fill();
  context.strokeStyle = colours.load;
  context.lineWidth = 2;
  context.stroke();
  context.fillStyle = colours.ink;
  context.font = "600 12px system-ui, sans-serif";
  const text = `${PLAIN ? "needed at once" : "live blocks"}, at most ${bytesText(iteration.peak.load)}`;
  const right = x + context.measureText(text).width > width - EDGE.right;
  context.textAlign = right ? "right" : "left";
  context.fillText(text, right ? x + 4 : Math.max(x - 4, EDGE.left + 2), 14);
  context.restore();
}

function drawAxes() {
  const svg = d3.select("#axes");
  svg.selectAll("*").remove();
  const at = canvas.offsetTop, below = lanesCanvas.offsetTop;
  const [unit, unitName] = byteUnit(Math.abs(view.y.domain()[1] - view.y.domain()[0]));
  const [clock, clockName] = timeUnit(view.x.domain()[1] - view.x.domain()[0]);
  const narrow = view.width < 600;
  svg.append("g").attr("class", "axis").attr("transform", `translate(${EDGE.left},${at})`).call(axis(d3.axisLeft, view.y, unit, 8));
  svg.append("text").attr("class", "label").attr("x", 2).attr("y", at + 6).text(view.transform.k > 1 ? unitName : "");
  const [loadUnit, loadUnitName] = byteUnit(view.load.domain()[1]);
  svg.append("g").attr("class", "axis").attr("transform", `translate(${EDGE.left},0)`).call(axis(d3.axisLeft, view.load, loadUnit, 3));
  svg.append("text").attr("class", "label").attr("x", 2).attr("y", 12).text(loadUnitName);
  const bottom = below + LANE_TOP + LANES.length * LANE_STEP - 2;
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`).call(axis(d3.axisBottom, view.x, clock, narrow ? 4 : 9));
  svg.append("text").attr("class", "label").attr("x", view.width - EDGE.right).attr("y", bottom + 34).attr("text-anchor", "end")
    .text(PLAIN ? `time, ${clockName}` : `time in the iteration, ${clockName}`);
}

// The load at a time of the drawing.
function loadTip(x) {
  const time = view.x.invert(x), levels = iteration.load;
  if (x < EDGE.left || time < 0 || time > view.plan.drawn.length_ns) return null;
  let low = 0, high = levels.at_ns.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (shifted(levels.at_ns[middle]) <= time) low = middle;
    else high = middle - 1;
  }
  return PLAIN ? [`${bytesText(levels.bytes[low])} needed`, `at ${timeText(time)}`] : [`${bytesText(levels.bytes[low])} live`, `at ${timeText(time)} of the iteration`];
}

function setUpLanes() {
  if (!iteration) return;
  strip.addEventListener("pointermove", (event) => showTip(loadTip(event.offsetX), event.offsetX, event.offsetY));
  strip.addEventListener("pointerleave", () => showTip(null));
  strip.addEventListener("click", (event) => {
    // The mark of the peak.
    if (Math.abs(event.offsetX - view.x(shifted(iteration.peak.at_ns))) < 12) showPeakOnly(!chosen.peakOnly);
  });
  lanesCanvas.addEventListener("pointermove", (event) => {
    const tip = laneTip(event.offsetX, event.offsetY);
    hoverBlock(tip ? tip.block : -1);
    showTip(tip && tip.lines, event.offsetX, event.offsetY + lanesCanvas.offsetTop);
  });
  lanesCanvas.addEventListener("pointerleave", () => {
    hoverBlock(-1);
    showTip(null);
  });
  lanesCanvas.addEventListener("click", (event) => {
    const tip = laneTip(event.offsetX, event.offsetY);
    if (tip && tip.block >= 0) chooseBlock(tip.block);
  });
}
