// What plans of several strategies cost over what they need: a line each, and the bound below which no plan is.
function linesOf(drawn) {
  let number = 0;
  return drawn.map((line) => {
    const at = line.bound ? -1 : number++;
    return { ...line, colour: line.bound ? colours.ink : d3.schemeTableau10[at % 10], dashed: line.bound || at >= 10, none: line.points.every((point) => point.up === null) };
  });
}

function drawComparison() {
  const { across, up, most, lines: drawn } = data.trade_offs;
  const holder = byId("comparison-chart"), width = holder.clientWidth, height = width < 600 ? 320 : 460;
  holder.replaceChildren();
  if (width === 0) return;
  const lines = linesOf(drawn), points = lines.flatMap((line) => line.points), found = points.filter((point) => point.up !== null);
  legend(byId("comparison-legend"), lines.map((line) => [line.colour, line.name + (line.none ? " (no plan)" : ""), line.dashed ? "dashed" : "line"]));
  const margin = { left: 62, right: 18, top: 30, bottom: 42 };
  const [least, largest] = points.length ? d3.extent(points, (point) => point.across) : [0, 1], room = Math.max(0.04 * (largest - least), 1e-3);
  const highest = 1.05 * d3.max(found, (point) => point.up) || 1, edge = most === null ? highest : Math.min(most, highest);
  const x = d3.scaleLinear().domain([Math.max(0, least - room), largest + room]).range([margin.left, width - margin.right]);
  const y = d3.scaleLinear().domain([0, edge]).range([height - margin.bottom, margin.top]);
  const svg = d3.select(holder).append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("height", height).attr("aria-hidden", "true");
  svg.append("clipPath").attr("id", "comparison-clip").append("rect").attr("x", margin.left).attr("y", margin.top)
    .attr("width", width - margin.left - margin.right).attr("height", height - margin.top - margin.bottom);
  svg.append("g").attr("class", "grid").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).ticks(6).tickSize(-(width - margin.left - margin.right))).selectAll("text").remove();
  const path = d3.line().defined((point) => point.up !== null).x((point) => x(point.across)).y((point) => y(point.up));
  for (const line of lines) {
    const group = svg.append("g").attr("class", "line").attr("data-name", line.name);
    group.append("path").attr("d", path(line.points)).attr("clip-path", "url(#comparison-clip)").attr("fill", "none").attr("stroke", line.colour)
      .attr("stroke-width", 2).attr("stroke-dasharray", line.dashed ? "5 4" : null);
    for (const point of line.points.filter((one) => one.up !== null)) {
      // What is above the drawing is a mark at its edge.
      const above = point.up > edge;
      const mark = above ? group.append("path").attr("d", `M${x(point.across) - 5} ${margin.top + 8}l5 -8l5 8Z`)
        : group.append("circle").attr("cx", x(point.across)).attr("cy", y(point.up)).attr("r", line.bound ? 2.5 : 4);
      mark.attr("fill", line.colour).append("title").text(`${line.name}: ${point.said}`);
    }
  }
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).ticks(width < 600 ? 4 : 8));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).ticks(6));
  svg.append("text").attr("class", "label").attr("x", width - margin.right).attr("y", height - 6).attr("text-anchor", "end").text(across);
  svg.append("text").attr("class", "label").attr("x", 4).attr("y", 16).text(up);
  holder.setAttribute("aria-label", `${up} over ${across}: the table below has the numbers.`);
}

// The same as numbers.
function tabulateComparison() {
  const { across, up, lines } = data.trade_offs;
  const format = d3.format(",.4~r");
  byId("comparison-table").tHead.replaceChildren(element("tr", {}, ...["strategy", across, up].map((name, i) => element("th", { scope: "col", class: i ? "number" : null }, name))));
  byId("comparison-table").tBodies[0].replaceChildren(...lines.flatMap((line) => line.points.map((point) => element("tr", { style: "cursor: default" },
    element("td", { class: "name" }, line.name), element("td", { class: "number" }, format(point.across)),
    element("td", { class: "number" }, point.up === null ? "no plan" : format(point.up))))));
}

function setUpComparison() {
  if (!data.trade_offs) {
    removeSection("comparison");
    return;
  }
  byId("comparison-lead").textContent = "Each point is a plan: across, what it needs of the device; up, what it adds to an iteration. Less of both is better. Point at one to read it." +
    (data.trade_offs.most === null ? "" : " What adds much more than the best plans do is a mark at the upper edge.");
  each(["theme", "size"], drawComparison);
  tabulateComparison();
}
