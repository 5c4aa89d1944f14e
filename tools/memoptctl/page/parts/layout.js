// The layout as rectangles, on a canvas: all of the shown plan's blocks are in typed arrays, and those in view are put
// into the canvas's pixels again for each frame. Finding what is under the pointer is one pass over the arrays as well:
// both take a few milliseconds for 100,000 blocks (tests/tools/memoptctl/report/paint_times.py).
const canvas = byId("rectangles"), strip = byId("strip"), lanesCanvas = byId("lanes");
const EDGE = { left: 58, right: 10 };  // of all three drawings
const view = {
  plan: null, count: 0, width: 0, height: 0, time: null, address: null, x: null, y: null, transform: d3.zoomIdentity, colour: null,
};
let framePending = false;

function frame() {
  if (framePending) return;
  framePending = true;
  requestAnimationFrame(() => {
    framePending = false;
    drawAll();
  });
}

function sized(element) {
  const ratio = window.devicePixelRatio || 1, width = element.clientWidth, height = element.clientHeight;
  if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
  }
  const context = element.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width, height];
}

// What a block does: a colour for it, in three shades that take turns so that neighbours differ.
const KINDS = PLAIN ? [["stays", "has a fixed offset"], ["made", "a buffer"]]
  : [["stays", "stays through all iterations"], ["made", "made and freed in the iteration"], ["moves", "on the device, away at other times"],
    ["out", "being copied out"], ["in", "being copied in"], ["again", "computed again"]];
function shades(name) {
  const colour = d3.hsl(colours[name]);
  return [0, 0.06, -0.06].map((by) => String(d3.hsl(colour.h, colour.s, Math.max(0.1, Math.min(0.9, colour.l + by)))));
}
function hashOf(number) {
  number = Math.imul(number ^ (number >>> 16), 0x45d9f3b);
  return (number ^ (number >>> 16)) >>> 0;
}

// [colour of rectangle i as an index into a palette, palette, legend]
function colouring() {
  const drawn = view.plan.drawn.blocks, by = byId("colour").value;
  const moving = new Uint8Array(blockCount);
  for (let i = 0; i < drawn.block.length; ++i) if (drawn.phase[i] !== 0) moving[drawn.block[i]] = 1;
  for (const block of view.plan.drawn.copies.block) moving[block] = 1;
  if (by === "kind") {
    const palette = KINDS.flatMap(([name]) => shades(name));
    const isFirst = (block) => stays(block) || (PLAIN && (blocks.flags[block] & PINNED) !== 0);
    const kindOf = (i) => (drawn.phase[i] === 2 ? 3 : drawn.phase[i] === 1 ? 4 : moving[drawn.block[i]] ? 2 : blocks.flags[drawn.block[i]] & MADE_AGAIN ? 5
      : isFirst(drawn.block[i]) ? 0 : 1);
    const shown = new Set();
    const index = Uint16Array.from(drawn.block, (block, i) => {
      const kind = kindOf(i);
      shown.add(kind);
      return kind * 3 + hashOf(block) % 3;
    });
    return [index, palette, KINDS.map(([name, text], i) => [i, colours[name], text]).filter(([i]) => shown.has(i)).map(([, colour, text]) => [colour, text])];
  }
  if (by === "size" || by === "life") {
    const valueOf = by === "size" ? (block) => blocks.bytes[block] : (block) => Math.min(blocks.freed_ns[block] - blocks.born_ns[block], iteration.period_ns);
    let least = Infinity, most = 0;
    for (let block = 0; block < blockCount; ++block) {
      const value = Math.max(1, valueOf(block));
      least = Math.min(least, value);
      most = Math.max(most, value);
    }
    const interpolate = colours.isDark ? (t) => d3.interpolateViridis(0.15 + 0.85 * t) : (t) => d3.interpolateViridis(0.98 - 0.9 * t);
    const palette = d3.range(32).map((i) => interpolate(i / 31));
    const scale = d3.scaleLog().domain([least, Math.max(most, least * 2)]).range([0, 31]).clamp(true);
    const index = Uint16Array.from(drawn.block, (block) => Math.round(scale(Math.max(1, valueOf(block)))));
    const text = by === "size" ? bytesText : timeText;
    return [index, palette, [0, 10, 21, 31].map((i) => [palette[i], text(by === "size" ? Math.round(scale.invert(i)) : scale.invert(i))])];
  }
  const keyOf = by === "kernel" ? (block) => firstName[block] : (block) => blocks.stack[block];
  const nameOf = by === "kernel" ? (key) => (key === NONE ? "untouched" : data.operations[key]) : (key) => (key === NONE ? "not recorded" : placeOf(key));
  const bytes = new Map();
  for (let block = 0; block < blockCount; ++block) bytes.set(keyOf(block), (bytes.get(keyOf(block)) || 0) + blocks.bytes[block]);
  const largest = [...bytes.entries()].sort((a, b) => b[1] - a[1]).slice(0, 9).map(([key]) => key);
  const palette = [...d3.schemeTableau10.slice(0, 9), colours.stays];
  const place = new Map(largest.map((key, i) => [key, i]));
  const index = Uint16Array.from(drawn.block, (block) => (place.has(keyOf(block)) ? place.get(keyOf(block)) : 9));
  largest.forEach((key, i) => { if (key === NONE) palette[i] = colours.muted; });
  const entries = largest.map((key, i) => [palette[i], shortName(nameOf(key))]);
  if (bytes.size > 9) entries.push([palette[9], "others"]);
  return [index, palette, entries];
}
function shortName(name) {
  const plain = name.replace(/^void /, "").replace(/<.*$/, "").replace(/\((?!anonymous).*$/, "");
  const last = plain.split("::").pop() || plain;
  return last.length > 34 ? `${last.slice(0, 33)}…` : last;
}

function usePlan() {
  view.plan = drawnPlan();
  if (!view.plan) return;
  const drawn = view.plan.drawn.blocks;
  view.count = drawn.block.length;
  view.top = 0;
  for (let i = 0; i < view.count; ++i) view.top = Math.max(view.top, drawn.offset[i] + blocks.bytes[drawn.block[i]]);
  // A limit a little above all of it is in sight.
  if (view.plan.limit > view.top && view.plan.limit < 1.25 * view.top) view.top = view.plan.limit;
  view.colouring = null;
  view.shifts = shiftsOf(view.plan.drawn.waits);
  describeLayout();
  frame();
}

function describeLayout() {
  if (PLAIN) {
    byId("layout-title").textContent = "Layout";
    byId("layout-lead").textContent = "Each rectangle is a buffer: across, when it is needed; up, at which offset. Above them, what is needed at once.";
    return;
  }
  const plan = view.plan, drawn = plan.drawn;
  const missing = shownPlans[chosen.plan] !== plan ? " The chosen plan has too many blocks to be drawn in one page; this is the layout without swaps." : "";
  byId("layout-lead").textContent = "Each rectangle is a block: across, when it is on the device in one iteration; up, at which addresses. Above them the load, below them what the device does and waits for. " +
    (plan.swaps ? `Within ${bytesText(plan.limit || plan.footprint)}, an iteration takes ${timeText(drawn.length_ns)}.` : `An iteration takes ${timeText(drawn.length_ns)}.`) +
    (drawn.rounds > 1 ? ` Shown is one of ${drawn.rounds} iterations that take turns.` : "") + missing;
}

function scales() {
  view.width = canvas.clientWidth;
  view.height = canvas.clientHeight;
  view.time = d3.scaleLinear().domain([0, view.plan.drawn.length_ns || 1]).range([EDGE.left, view.width - EDGE.right]);
  view.address = d3.scaleLinear().domain([0, view.top * 1.02 || 1]).range([view.height - 4, 4]);
  view.x = view.transform.rescaleX(view.time);
  view.y = view.transform.rescaleY(view.address);
}

function drawAll() {
  if (!view.plan || canvas.clientWidth === 0) return;
  if (!view.colouring) {
    view.colouring = colouring();
    legend(byId("layout-legend"), view.colouring[2]);
  }
  scales();
  drawRectangles();
  drawStrip();
  drawLanes();
  drawAxes();
}

// As a pixel of ImageData: little-endian, as all machines with a browser.
function pixelOf(colour) {
  const { r, g, b } = d3.rgb(colour);
  return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}

// The blocks in view, row by row of pixels. Rectangles do not overlap, so this takes as long as there are blocks and pixels.
function raster(wide, high) {
  if (!view.image || view.image.width !== wide || view.image.height !== high) view.image = new ImageData(wide, high);
  const pixels = new Uint32Array(view.image.data.buffer);
  pixels.fill(pixelOf(colours.grid));
  const drawn = view.plan.drawn.blocks, [index, palette] = view.colouring;
  const fills = palette.map(pixelOf), dimmed = pixelOf(colours.line);
  const [t0, t1] = view.x.domain(), [o0, o1] = view.y.domain();
  const perTick = wide * tick / (t1 - t0), begin = wide * t0 / (t1 - t0);
  const ratio = high / view.height, base = high - 4 * ratio, perByte = (base - 4 * ratio) / (o1 - o0);
  for (let i = 0; i < view.count; ++i) {
    let left = drawn.from[i] * perTick - begin, right = drawn.to[i] * perTick - begin;
    if (right < 0 || left > wide) continue;
    const block = drawn.block[i], low = drawn.offset[i] - o0;
    let top = base - (low + blocks.bytes[block]) * perByte, bottom = base - low * perByte;
    if (bottom < 0 || top > high) continue;
    // A gap between neighbours where there is room for it; a pixel for what is thinner than one.
    left = Math.max(0, Math.round(left));
    right = Math.min(wide, Math.max(left + 1, Math.round(right) - (right - left > 4 ? 1 : 0)));
    top = Math.max(0, Math.round(top));
    bottom = Math.min(high, Math.max(top + 1, Math.round(bottom) - (bottom - top > 4 ? 1 : 0)));
    const fill = chosen.peakOnly && !atPeak[block] ? dimmed : fills[index[i]];
    for (let y = top; y < bottom; ++y) pixels.fill(fill, y * wide + left, y * wide + right);
  }
  return view.image;
}

function drawRectangles() {
  const [context, width, height] = sized(canvas);
  const drawn = view.plan.drawn.blocks, ratio = canvas.width / width;
  const edge = Math.round(EDGE.left * ratio);
  context.putImageData(raster(Math.max(1, Math.round((width - EDGE.left - EDGE.right) * ratio)), canvas.height), edge, 0);
  const perByte = (height - 8) / (view.y.domain()[1] - view.y.domain()[0]);
  context.save();
  context.beginPath();
  context.rect(EDGE.left, 0, width - EDGE.left - EDGE.right, height);
  context.clip();
  for (const [block, line, style] of [[chosen.hover, 1.5, colours.ink], [chosen.block, 2.5, colours.select]]) {
    if (block < 0) continue;
    context.strokeStyle = style;
    context.lineWidth = line;
    for (let i = 0; i < view.count; ++i) {
      if (drawn.block[i] !== block) continue;
      const left = view.x(drawn.from[i] * tick), top = view.y(drawn.offset[i] + blocks.bytes[block]);
      const wide = Math.max(2, view.x(drawn.to[i] * tick) - left), high = Math.max(2, blocks.bytes[block] * perByte);
      context.fillStyle = colours.hover;
      context.fillRect(left, top, wide, high);
      context.strokeRect(left, top, wide, high);
    }
  }
  drawLevels(context, width);
  context.restore();
}

// The footprint, the limit, and when the load is largest.
function drawLevels(context, width) {
  const level = (bytes, text, colour, above) => {
    const y = view.y(bytes);
    if (y < 0 || y > view.height) return;
    context.strokeStyle = colour;
    context.lineWidth = 1.3;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(EDGE.left, y);
    context.lineTo(width - EDGE.right, y);
    context.stroke();
    context.setLineDash([]);
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    const wide = context.measureText(text).width;
    context.fillStyle = colours.card;
    context.globalAlpha = 0.85;
    context.fillRect(width - EDGE.right - wide - 12, above ? y - 19 : y + 3, wide + 10, 16);
    context.globalAlpha = 1;
    context.fillStyle = colour;
    context.fillText(text, width - EDGE.right - 7, above ? y - 7 : y + 15);
  };
  const { footprint, limit } = view.plan;
  level(footprint, `${PLAIN ? "height" : "footprint"} ${bytesText(footprint)}`, colours.plan, false);
  if (data.lower_bound && data.lower_bound < footprint) level(data.lower_bound, `lower bound ${bytesText(data.lower_bound)}`, colours.ink, false);
  // Not where it would be drawn over the other, or out of sight.
  if (limit > 1.02 * footprint && limit <= view.top * 1.02) level(limit, `limit ${bytesText(limit)}`, colours.wait, true);
  const x = view.x(shifted(iteration.peak.at_ns));
  context.strokeStyle = colours.load;
  context.lineWidth = 1.2;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, view.height);
  context.stroke();
  context.setLineDash([]);
}

// The block at a point of the canvas; a little beside it where it is too thin to be met; -1: none.
function blockAt(px, py) {
  const drawn = view.plan.drawn.blocks;
  const time = view.x.invert(px), address = view.y.invert(py);
  const slackTime = Math.abs(view.x.invert(px + 2) - time), slackBytes = Math.abs(view.y.invert(py + 2) - address);
  let near = -1, nearest = Infinity;
  for (let i = 0; i < view.count; ++i) {
    const from = drawn.from[i] * tick, to = drawn.to[i] * tick;
    if (time < from - slackTime || time > to + slackTime) continue;
    const offset = drawn.offset[i], end = offset + blocks.bytes[drawn.block[i]];
    if (address < offset - slackBytes || address > end + slackBytes) continue;
    if (time >= from && time <= to && address >= offset && address <= end) return drawn.block[i];
    const away = Math.max(from - time, time - to, 0) / slackTime + Math.max(offset - address, address - end, 0) / slackBytes;
    if (away < nearest) [near, nearest] = [drawn.block[i], away];
  }
  return near;
}

const zoom = d3.zoom().scaleExtent([1, 20000]).filter(() => {
  const event = d3.event;
  if (event.type === "wheel") return event.ctrlKey || event.metaKey || document.activeElement === canvas;
  if (event.type.startsWith("touch")) return event.touches.length > 1;
  return !event.button;
}).on("zoom", () => {
  view.transform = d3.event.transform;
  frame();
});

function zoomTo(block) {
  const drawn = view.plan.drawn.blocks;
  let from = Infinity, to = 0, low = Infinity, high = 0;
  for (let i = 0; i < view.count; ++i) {
    if (drawn.block[i] !== block) continue;
    from = Math.min(from, drawn.from[i] * tick);
    to = Math.max(to, drawn.to[i] * tick);
    low = Math.min(low, drawn.offset[i]);
    high = Math.max(high, drawn.offset[i] + blocks.bytes[block]);
  }
  if (to <= from) return;
  const left = view.time(from), right = view.time(to), top = view.address(high), bottom = view.address(low);
  const wide = view.width - EDGE.left - EDGE.right;
  // All of it in view, unless that makes it too thin to be seen.
  const fits = Math.min(0.6 * wide / Math.max(right - left, 0.01), 0.6 * view.height / Math.max(bottom - top, 0.01));
  const scale = Math.max(1, Math.min(20000, Math.max(fits, 18 / Math.max(bottom - top, 0.01))));
  const wanted = d3.zoomIdentity.translate(EDGE.left + wide / 2 - scale * (left + right) / 2, view.height / 2 - scale * (top + bottom) / 2).scale(scale);
  d3.select(canvas).call(zoom.transform, zoom.constrain()(wanted, zoom.extent().call(canvas), zoom.translateExtent()));
}

// Blocks in the order in which they come: for n and p.
let inOrder = null;
function step(by) {
  if (!inOrder) inOrder = d3.range(blockCount).sort((a, b) => blocks.born_ns[a] - blocks.born_ns[b] || a - b);
  const at = inOrder.indexOf(chosen.block);
  chooseBlock(inOrder[at < 0 ? (by > 0 ? 0 : blockCount - 1) : (at + by + blockCount) % blockCount]);
}
function largestInView() {
  const drawn = view.plan.drawn.blocks, [t0, t1] = view.x.domain(), [o0, o1] = view.y.domain();
  let best = -1;
  for (let i = 0; i < view.count; ++i) {
    const block = drawn.block[i];
    if (drawn.to[i] * tick < t0 || drawn.from[i] * tick > t1 || drawn.offset[i] > o1 || drawn.offset[i] + blocks.bytes[block] < o0) continue;
    if (best < 0 || blocks.bytes[block] > blocks.bytes[best]) best = block;
  }
  if (best >= 0) chooseBlock(best);
}

const KEYS = {
  ArrowLeft: () => d3.select(canvas).call(zoom.translateBy, 60 / view.transform.k, 0),
  ArrowRight: () => d3.select(canvas).call(zoom.translateBy, -60 / view.transform.k, 0),
  ArrowUp: () => d3.select(canvas).call(zoom.translateBy, 0, 60 / view.transform.k),
  ArrowDown: () => d3.select(canvas).call(zoom.translateBy, 0, -60 / view.transform.k),
  "+": () => d3.select(canvas).call(zoom.scaleBy, 1.5),
  "=": () => d3.select(canvas).call(zoom.scaleBy, 1.5),
  "-": () => d3.select(canvas).call(zoom.scaleBy, 1 / 1.5),
  0: () => d3.select(canvas).call(zoom.transform, d3.zoomIdentity),
  n: () => step(1),
  p: () => step(-1),
  l: largestInView,
  z: () => chosen.block >= 0 && zoomTo(chosen.block),
  Escape: () => chooseBlock(-1),
};

// What there is nothing to colour by.
function offerColours() {
  const without = [...(PLAIN ? ["kernel"] : []), ...(program ? [] : ["stack"])];
  for (const by of without) byId("colour").querySelector(`option[value="${by}"]`).remove();
}

function setUpLayout() {
  if (!iteration) {
    if (data.trade_offs) {
      removeSection("layout");
      return;
    }
    byId("layout-lead").textContent = `There is no layout to show: ${data.no_iteration}.`;
    for (const part of byId("layout").querySelectorAll(".bar, .split, .keys")) part.remove();
    return;
  }
  offerColours();
  d3.select(canvas).call(zoom).on("dblclick.zoom", null);
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  let pressed = null;
  canvas.addEventListener("pointerdown", (event) => { pressed = [event.offsetX, event.offsetY]; });
  canvas.addEventListener("click", (event) => {
    canvas.focus({ preventScroll: true });
    const moved = pressed && Math.hypot(event.offsetX - pressed[0], event.offsetY - pressed[1]) > 4;
    if (!moved) chooseBlock(blockAt(event.offsetX, event.offsetY));
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons || event.pointerType === "touch") return;
    const block = event.offsetX < EDGE.left ? -1 : blockAt(event.offsetX, event.offsetY);
    hoverBlock(block);
    showTip(block < 0 ? null : blockTip(block), event.offsetX, event.offsetY + canvas.offsetTop);
  });
  canvas.addEventListener("pointerleave", () => {
    hoverBlock(-1);
    showTip(null);
  });
  byId("zoom-in").addEventListener("click", KEYS["+"]);
  byId("zoom-out").addEventListener("click", KEYS["-"]);
  byId("zoom-reset").addEventListener("click", KEYS[0]);
  byId("colour").addEventListener("change", () => {
    view.colouring = null;
    frame();
  });
  const button = byId("peak-blocks");
  button.textContent = PLAIN ? `${count(iteration.peak.blocks.length, "buffer")} needed at once` : `${count(iteration.peak.blocks.length, "block")} live at the peak`;
  button.addEventListener("click", () => showPeakOnly(!chosen.peakOnly));
  changed.on("peak.layout", () => {
    button.setAttribute("aria-pressed", String(chosen.peakOnly));
    frame();
  });
  changed.on("plan.layout", usePlan);
  changed.on("block.layout", frame);
  changed.on("hover.layout", frame);
  changed.on("size.layout", () => {
    const wide = [EDGE.left, canvas.clientWidth - EDGE.right];
    zoom.extent([[wide[0], 0], [wide[1], canvas.clientHeight]]).translateExtent([[wide[0], 0], [wide[1], canvas.clientHeight]]);
    frame();
  });
  changed.on("theme.layout", () => {
    view.colouring = null;
    frame();
  });
  usePlan();
}

function blockTip(block) {
  if (PLAIN) {
    return [`${bytesText(blocks.bytes[block])}, ${blockName(block)}`, `from ${timeText(blocks.born_ns[block])} to ${timeText(blocks.freed_ns[block])}`,
      `at ${offsetsText(block)}`];
  }
  const touched = count(blocks.accesses[block], "use");
  return [`${bytesText(blocks.bytes[block])}, ${blockName(block)}`,
    stays(block) ? "there always" : `lives ${timeText(lifeOf(block))}, from ${timeText(planned(blocks.born_ns[block]))}`,
    firstNameOf(block) ? `${touched}, first ${shortName(firstNameOf(block))}` : touched];
}
function showTip(lines, x, y) {
  const tip = byId("tip");
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(element("b", {}, lines[0]), ...lines.slice(1).map((line) => element("span", { style: "display: block" }, line)));
  const room = byId("stack").clientWidth;
  tip.style.left = `${Math.max(0, x + 16 + tip.offsetWidth > room ? x - tip.offsetWidth - 12 : x + 16)}px`;
  tip.style.top = `${Math.max(0, y + 14)}px`;
}
