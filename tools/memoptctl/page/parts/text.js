// Bytes, times and elements, as people read them.
const KIB = 1024, MIB = KIB * KIB, GIB = MIB * KIB;

function bytesText(bytes) {
  if (PLAIN) return d3.format(",")(bytes);
  if (bytes < KIB) return `${bytes} B`;
  const [unit, name] = bytes < MIB ? [KIB, "KiB"] : bytes < GIB ? [MIB, "MiB"] : [GIB, "GiB"];
  const value = bytes / unit;
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${name}`;
}
const exactBytes = (bytes) => (PLAIN ? d3.format(",")(bytes) : `${d3.format(",")(bytes)} bytes`);

function timeText(ns) {
  if (PLAIN) return d3.format(",")(Math.round(ns));
  if (ns === 0) return "0 ms";
  const size = Math.abs(ns);
  const [unit, name] = size < 1e3 ? [1, "ns"] : size < 1e6 ? [1e3, "µs"] : size < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  const value = ns / unit;
  return `${value.toFixed(Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0)} ${name}`;
}
const percentText = (part) => `${(100 * part).toFixed(Math.abs(part) < 0.0995 ? 1 : 0)} %`;
const count = (number, one, many = `${one}s`) => `${d3.format(",")(number)} ${number === 1 ? one : many}`;

const byId = (id) => document.getElementById(id);

// A part of the page that there is nothing for.
function removeSection(id) {
  byId(id).remove();
  for (const link of document.querySelectorAll(`a[href="#${id}"]`)) link.remove();
}

// element("p", {class: "x"}, "text", child…): text is never read as markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style") made.style.cssText = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function pairs(list, rows) {
  list.replaceChildren();
  for (const [name, value, kind] of rows) {
    if (value === "" || value === null || value === undefined) continue;
    list.append(element("dt", {}, name), element("dd", kind ? { class: kind } : {}, value));
  }
}

function legend(list, entries) {
  list.replaceChildren(...entries.map(([colour, name, line]) => element("li", {},
    element("i", line ? { class: `line ${line}`, style: `border-color: ${colour}` } : { style: `background: ${colour}` }), name)));
}

// Axes of bytes are in the unit that suits the largest: their ticks are round numbers of it.
function byteUnit(largest) {
  if (PLAIN) return [1, "offset"];
  return largest >= 2 * GIB ? [GIB, "GiB"] : largest >= 2 * MIB ? [MIB, "MiB"] : largest >= 2 * KIB ? [KIB, "KiB"] : [1, "bytes"];
}
function timeUnit(largest) {
  if (PLAIN) return [1, data.begins_at ? `from ${d3.format(",")(data.begins_at)} on` : "as in the file"];
  return largest >= 2e9 ? [1e9, "s"] : largest >= 2e6 ? [1e6, "ms"] : largest >= 2e3 ? [1e3, "µs"] : [1, "ns"];
}
// Ticks of a scale of bytes or ns: [[value, text]].
function ticksOf(scale, unit, wanted) {
  const inUnit = d3.scaleLinear().domain(scale.domain().map((value) => value / unit)).range(scale.range());
  const format = inUnit.tickFormat(wanted);
  return inUnit.ticks(wanted).map((value) => [value * unit, format(value)]);
}
function axis(kind, scale, unit, wanted) {
  const ticks = ticksOf(scale, unit, wanted);
  const names = new Map(ticks);
  return kind(scale).tickValues(ticks.map(([value]) => value)).tickFormat((value) => names.get(value));
}
