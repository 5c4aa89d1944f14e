// Limits, what they add to an iteration, and the slider over them.
const replayedNs = iteration ? d3.sum(iteration.steps.length, (length, i) => (iteration.steps.kind[i] === REPLAY ? length * tick : 0)) : 0;
const limitOf = (plan) => (plan.limit === null ? plan.footprint : plan.limit);

function planText(plan) {
  if (plan.of_file) return `The file's plan: ${bytesText(plan.footprint)}, ${addedText(plan)}`;
  if (!plan.swaps) return `No limit: ${bytesText(plan.footprint)}, no time added`;
  const within = plan.limit === null ? `${bytesText(plan.footprint)}, the least at no added time` : `Within ${bytesText(plan.limit)}`;
  return plan.limit === null ? within : `${within}: ${addedText(plan)}`;
}
function addedText(plan) {
  // The iteration of a plan that computes again has those launches in it.
  const added = plan.added_ns + replayedNs, part = added / (iteration.period_ns - replayedNs || 1);
  return part < 0.0005 ? "no time added" : `+${timeText(added)} an iteration, ${percentText(part)}`;
}

function drawLimits() {
  const holder = byId("limits-chart"), width = holder.clientWidth, height = width < 600 ? 220 : 300;
  holder.replaceChildren();
  const swapped = shownPlans.filter((plan) => plan.swaps);
  if (!swapped.length || width === 0) return;
  const margin = { left: 62, right: 18, top: 30, bottom: 42 };
  const most = Math.max(...shownPlans.map((plan) => plan.footprint), ...swapped.map(limitOf));
  const least = Math.min(...swapped.map((plan) => plan.footprint), iteration.least_limit || Infinity);
  const [unit, unitName] = byteUnit(most);
  const x = d3.scaleLinear().domain([Math.max(0, least - 0.06 * (most - least)), most + 0.04 * (most - least)]).range([margin.left, width - margin.right]);
  const y = d3.scaleLinear().domain([0, Math.max(0.01, d3.max(swapped, (plan) => plan.added_ns / iteration.period_ns)) * 1.12])
    .range([height - margin.bottom, margin.top]);
  const svg = d3.select(holder).append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("height", height).attr("aria-hidden", "true");
  svg.append("g").attr("class", "grid").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).ticks(5).tickSize(-(width - margin.left - margin.right))).selectAll("text").remove();
  if (iteration.least_limit > x.domain()[0]) {
    const end = x(iteration.least_limit);
    svg.append("rect").attr("x", margin.left).attr("y", margin.top).attr("width", Math.max(0, end - margin.left))
      .attr("height", height - margin.top - margin.bottom).attr("fill", colours.grid);
    svg.append("line").attr("x1", end).attr("x2", end).attr("y1", margin.top).attr("y2", height - margin.bottom).attr("stroke", colours.muted);
    svg.append("text").attr("class", "label").attr("x", end + 6).attr("y", height - margin.bottom - 8).text("no plan is below");
  }
  const points = [...shownPlans].sort((a, b) => a.footprint - b.footprint);
  svg.append("path").attr("d", d3.line().x((plan) => x(plan.footprint)).y((plan) => y(plan.added_ns / iteration.period_ns))(points))
    .attr("fill", "none").attr("stroke", colours.accent).attr("stroke-width", 1.8);
  const now = shownPlans[chosen.plan];
  svg.selectAll("circle").data(shownPlans).enter().append("circle")
    .attr("cx", (plan) => x(plan.footprint)).attr("cy", (plan) => y(plan.added_ns / iteration.period_ns))
    .attr("r", (plan) => (plan === now ? 7 : 4.5)).attr("fill", (plan) => (plan === now ? colours.accent : colours.card))
    .attr("stroke", colours.accent).attr("stroke-width", 2).style("cursor", "pointer")
    .on("click", (plan) => choosePlan(shownPlans.indexOf(plan)))
    .append("title").text(planText);
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`).call(axis(d3.axisBottom, x, unit, width < 600 ? 4 : 8));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).ticks(5, "%"));
  svg.append("text").attr("class", "label").attr("x", width - margin.right).attr("y", height - 6).attr("text-anchor", "end")
    .text(`footprint of the plan, ${unitName}`);
  svg.append("text").attr("class", "label").attr("x", 4).attr("y", 16).text("time added to an iteration, % of it");
  holder.setAttribute("aria-label", `Time added within limits: ${swapped.map(planText).join("; ")}.`);
}

function showChosen() {
  const plan = shownPlans[chosen.plan], slider = byId("limit");
  slider.value = chosen.plan;
  slider.setAttribute("aria-valuetext", planText(plan));
  const rows = [[plan.swaps && plan.limit !== null ? "limit" : "needs", bytesText(plan.swaps ? limitOf(plan) : plan.footprint), "big"],
    ["added time", plan.added_ns / iteration.period_ns < 0.0005 ? "none" : `${timeText(plan.added_ns)} (${percentText(plan.added_ns / iteration.period_ns)})`, "big"],
    ["an iteration takes", timeText(iteration.period_ns + plan.added_ns)],
    ["footprint", bytesText(plan.footprint)],
    ["of the peak load", percentText(plan.footprint / iteration.peak.load)]];
  if (plan.swaps) {
    rows.push(["copied out", `${bytesText(plan.bytes_out)}, engine busy ${percentText(plan.out_utilisation)}`],
      ["copied in", `${bytesText(plan.bytes_in)}, engine busy ${percentText(plan.in_utilisation)}`],
      ["moves", `${count(plan.moves, "block")} an iteration`],
      ["waits", plan.added_ns > 0 ? `${timeText(plan.wait_malloc_ns)} at allocations, ${timeText(plan.wait_access_ns)} at accesses` : ""]);
  } else {
    rows.push(["moves", "nothing: blocks are only laid out"]);
  }
  pairs(byId("chosen"), rows);
}

function setUpLimits() {
  if (data.kind !== "report") {
    removeSection("limits");
    return;
  }
  if (!iteration || (data.no_swaps && shownPlans.length < 2)) {
    const reason = iteration ? data.no_swaps : data.no_iteration;
    byId("limits").querySelector(".lead").textContent = `There are no plans within limits: ${reason}.`;
    byId("limits").querySelector(".split").remove();
    return;
  }
  const slider = byId("limit");
  slider.max = shownPlans.length - 1;
  slider.addEventListener("input", () => choosePlan(Number(slider.value)));
  const failed = plans.filter((plan) => !plan.feasible);
  if (failed.length) {
    byId("limits").append(element("p", { class: "readout" },
      `No plan was found within ${failed.map((plan) => bytesText(plan.limit)).join(", ")}` +
      (failed[0].footprint ? `; the least that was reached is ${bytesText(Math.min(...failed.map((plan) => plan.footprint || Infinity)))}.` : ".")));
  }
  if (iteration.left_out_limits) {
    byId("limits").append(element("p", { class: "readout" }, `There was no time for ${count(iteration.left_out_limits, "further limit")} (--time-budget).`));
  }
  changed.on("plan.limits", () => {
    showChosen();
    drawLimits();
  });
  each(["theme", "size"], drawLimits);
  showChosen();
}
