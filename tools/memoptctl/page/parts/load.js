// The load of the whole recording, as it was recorded.
const loadChart = byId("load-chart");
let loadCursor = -1;

function drawLoad() {
  const pieces = data.load.end_ns.length;
  const width = loadChart.clientWidth, height = width < 600 ? 190 : 240;
  const margin = { left: 58, right: 14, top: 26, bottom: 40 };
  loadChart.replaceChildren();
  if (pieces === 0 || width === 0) return;
  const planned = data.planned ? data.planned.footprint : 0;
  const most = Math.max(d3.max(data.load.most), d3.max(data.load.reserved), planned);
  const [unit, unitName] = byteUnit(most), [clock, clockName] = timeUnit(program.length_ns);
  const x = d3.scaleLinear().domain([0, program.length_ns || 1]).range([margin.left, width - margin.right]);
  const y = d3.scaleLinear().domain([0, most * 1.04 || 1]).range([height - margin.bottom, margin.top]);
  const svg = d3.select(loadChart).append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("height", height).attr("aria-hidden", "true");
  svg.append("g").attr("class", "grid").attr("transform", `translate(${margin.left},0)`)
    .call(axis(d3.axisLeft, y, unit, 5).tickSize(-(width - margin.left - margin.right))).selectAll("text").remove();
  const at = d3.range(pieces);
  const begin = (i) => (i === 0 ? 0 : data.load.end_ns[i - 1]);
  const area = d3.area().curve(d3.curveStepAfter).x((i) => x(begin(i)));
  svg.append("path").attr("d", area.y0(y(0)).y1((i) => y(data.load.most[i]))(at)).attr("fill", colours["load-fill"]);
  svg.append("path").attr("d", d3.line().curve(d3.curveStepAfter).x((i) => x(begin(i))).y((i) => y(data.load.most[i]))(at))
    .attr("fill", "none").attr("stroke", colours.load).attr("stroke-width", 1.4);
  const entries = [[colours.load, "live blocks"]];
  if (data.peak.reserved_by_caching_allocator !== null) {
    svg.append("path").attr("d", d3.line().curve(d3.curveStepAfter).x((i) => x(begin(i))).y((i) => y(data.load.reserved[i]))(at))
      .attr("fill", "none").attr("stroke", colours.held).attr("stroke-width", 1.6).attr("stroke-dasharray", "5 4");
    entries.push([colours.held, "PyTorch's caching allocator would hold", "dashed"]);
  }
  if (planned) {
    svg.append("line").attr("x1", x(program.iteration_known_ns)).attr("x2", x.range()[1]).attr("y1", y(planned)).attr("y2", y(planned))
      .attr("stroke", colours.plan).attr("stroke-width", 1.6);
    entries.push([colours.plan, "memopt's layout holds, from when the iteration is known", "line"]);
  }
  legend(byId("load-legend"), entries);
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(axis(d3.axisBottom, x, clock, width < 600 ? 4 : 9));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(axis(d3.axisLeft, y, unit, 5));
  svg.append("text").attr("class", "label").attr("x", x.range()[1]).attr("y", height - 4).attr("text-anchor", "end")
    .text(`time since the first record, ${clockName}`);
  svg.append("text").attr("class", "label").attr("x", 4).attr("y", 14).text(unitName);
  const px = x(data.peak.at_ns), py = y(data.peak.load);
  svg.append("circle").attr("cx", px).attr("cy", py).attr("r", 4.5).attr("fill", colours.card).attr("stroke", colours.load).attr("stroke-width", 2);
  svg.append("text").attr("class", "label").attr("x", px + (px > width * 0.8 ? -8 : 8)).attr("y", margin.top - 10)
    .attr("text-anchor", px > width * 0.8 ? "end" : "start").attr("style", "font-weight: 600").text(`peak ${bytesText(data.peak.load)}`);
  const cursor = svg.append("line").attr("y1", margin.top).attr("y2", height - margin.bottom).attr("stroke", colours.muted).attr("visibility", "hidden");
  const show = (piece) => {
    loadCursor = Math.max(0, Math.min(pieces - 1, piece));
    const middle = (begin(loadCursor) + data.load.end_ns[loadCursor]) / 2;
    cursor.attr("x1", x(middle)).attr("x2", x(middle)).attr("visibility", "visible");
    const { least, most: top, reserved } = data.load;
    byId("load-readout").textContent = `At ${timeText(middle)}: ` +
      (least[loadCursor] === top[loadCursor] ? `${bytesText(top[loadCursor])} live` : `${bytesText(least[loadCursor])} to ${bytesText(top[loadCursor])} live`) +
      (data.peak.reserved_by_caching_allocator !== null ? `, ${bytesText(reserved[loadCursor])} in PyTorch's caching allocator` : "");
  };
  loadChart.onpointermove = (event) => show(d3.bisectLeft(data.load.end_ns, x.invert(event.offsetX)));
  loadChart.onpointerleave = () => cursor.attr("visibility", "hidden");
  loadChart.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
    if (event.key === "Home") show(0);
    else if (event.key === "End") show(pieces - 1);
    else if (step) show((loadCursor < 0 ? d3.bisectLeft(data.load.end_ns, data.peak.at_ns) : loadCursor) + step);
    else return;
    event.preventDefault();
  };
  loadChart.setAttribute("aria-label", `Live bytes over ${timeText(program.length_ns)}: at most ${bytesText(data.peak.load)}, at ${timeText(data.peak.at_ns)}. ` +
    "Arrow keys read single times.");
}

function setUpLoad() {
  if (!data.load) {
    removeSection("load");
    return;
  }
  const button = byId("recorded-peak");
  button.textContent = `Peak ${bytesText(data.peak.load)} at ${timeText(data.peak.at_ns)}: show its ${count(data.peak.blocks, "block")}`;
  button.disabled = data.peak.blocks === 0;
  button.addEventListener("click", () => {
    chooseTable("recorded");
    byId("blocks").scrollIntoView();
    byId("table-source").focus({ preventScroll: true });
  });
  byId("load-readout").textContent = program.length_ns === 0 ? "The recording has no times." : "Point at the chart, or use the arrow keys in it, to read single times.";
  each(["theme", "size"], drawLoad);
}
