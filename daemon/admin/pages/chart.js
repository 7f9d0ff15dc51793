// Charts over time, each with its numbers in a table.

import { h, setText } from "./dom.js";
import { clock, minutes } from "./format.js";

const HEIGHT = 190;
// The rows of the table: one for each of the last seconds.
const MAX_ROWS = 30;

// The colours of the style sheet, which depend on the theme.
function colour(name) {
  const probe = h("span", { class: `colour-${name}` });
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

// A chart of lines over time. A line has a name, the name of its colour, its dashes, whether it is left
// out while all its values are zero, and whether it spans times without a value.
export class Chart {
  constructor(title, lines, format, formatTick = format) {
    this.title = title;
    this.lines = lines;
    this.format = format;
    this.formatTick = formatTick;
    this.data = [[], ...lines.map(() => [])];
    this.canvas = h("div", { class: "canvas", role: "img", "aria-label": title });
    this.legend = h("ul", { class: "legend" });
    this.body = h("tbody");
    this.details = h("details", { ontoggle: () => this.fillTable() },
      h("summary", {}, "Show the numbers"),
      h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `${title}, the last seconds` },
        h("table", {},
          h("caption", { class: "hidden" }, `${title}, the last seconds`),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Time"),
            lines.map((line) => h("th", { scope: "col", class: "number" }, line.name)))),
          this.body)));
    this.element = h("figure", { class: "chart" },
      h("div", { class: "chart-head" }, h("figcaption", {}, title), this.legend),
      this.canvas, this.details);
    this.values = lines.map((line) => {
      const value = h("span", { class: "number" }, "–");
      const key = h("span", { class: `key colour-${line.colour}`, "data-dash": line.dash === undefined ? null : "" });
      const item = h("li", {}, key, line.name, " ", value);
      this.legend.append(item);
      return { item, value };
    });
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.canvas);
    this.isEmpty = h("p", { class: "chart-empty" }, "Collecting the first seconds…");
    this.canvas.append(this.isEmpty);
  }

  // Shows these values: times in seconds, then one list for each line, with null for gaps.
  update(data) {
    this.data = data;
    const hasValues = data.slice(1).some((values) => values.some((value) => value !== null));
    setText(this.isEmpty, data[0].length < 2 ? "Collecting the first seconds…" : "No requests yet");
    this.isEmpty.hidden = data[0].length > 1 && hasValues;
    this.canvas.classList.toggle("without-values", !hasValues);
    this.lines.forEach((line, index) => {
      const values = data[index + 1];
      const isShown = !line.optional || values.some((value) => value > 0);
      this.values[index].item.hidden = !isShown;
      const last = values.at(-1);
      setText(this.values[index].value, last === null || last === undefined ? "–" : this.format(last));
      if (this.plot?.series[index + 1].show !== isShown) {
        this.plot?.setSeries(index + 1, { show: isShown });
      }
    });
    const now = this.lines.filter((_, index) => !this.values[index].item.hidden)
      .map((line) => `${line.name} ${this.values[this.lines.indexOf(line)].value.textContent}`);
    this.canvas.setAttribute("aria-label", `${this.title}. Now: ${now.join(", ")}.`);
    this.plot?.setData(data);
    if (this.details.open) {
      this.fillTable();
    }
  }

  // Draws again, as after a change of the theme.
  redraw() {
    this.plot?.destroy();
    const width = this.canvas.clientWidth;
    if (width === 0) {
      return;
    }
    const [text, grid] = [colour("quiet"), colour("grid")];
    const axis = {
      stroke: text,
      grid: { stroke: grid, width: 1 },
      ticks: { show: false },
      font: `11px ${getComputedStyle(document.body).fontFamily}`,
    };
    const series = this.lines.map((line, index) => ({
      label: line.name,
      stroke: colour(line.colour),
      fill: line.fill ? colour(`${line.colour}-area`) : undefined,
      width: 1.5,
      dash: line.dash,
      spanGaps: line.spansGaps ?? false,
      points: { show: line.spansGaps ?? false, size: 4 },
      show: !this.values[index].item.hidden,
    }));
    const values = (_, ticks) => ticks.map((tick) => this.formatTick(tick));
    const times = (_, ticks) => ticks.map(ticks.length > 1 && ticks[1] - ticks[0] < 60 ? clock : minutes);
    this.plot = new window.uPlot({
      width,
      height: HEIGHT,
      legend: { show: false },
      padding: [8, 24, 0, 0],
      cursor: { drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: true }, y: { range: (_, min, max) => [0, max > 0 ? max * 1.15 : 4] } },
      axes: [
        { ...axis, space: 80, size: 26, values: times },
        { ...axis, space: 36, size: 58, values },
      ],
      series: [{}, ...series],
      hooks: { setCursor: [(plot) => this.point(plot.cursor.idx)] },
    }, this.data, this.canvas);
  }

  // Shows the values at the cursor, or the last ones, in the legend.
  point(index) {
    const at = index ?? this.data[0].length - 1;
    this.lines.forEach((_, line) => {
      const value = this.data[line + 1][at];
      setText(this.values[line].value, value === null || value === undefined ? "–" : this.format(value));
    });
    this.element.classList.toggle("pointing", index !== null && index !== undefined);
  }

  resize() {
    if (this.plot === undefined) {
      this.redraw();
    } else if (this.canvas.clientWidth > 0 && this.plot.width !== this.canvas.clientWidth) {
      this.plot.setSize({ width: this.canvas.clientWidth, height: HEIGHT });
    }
  }

  fillTable() {
    const [times, ...lines] = this.data;
    const rows = times.map((_, index) => index).slice(-MAX_ROWS).reverse();
    this.body.replaceChildren(...rows.map((index) => h("tr", {},
      h("th", { scope: "row" }, clock(times[index])),
      lines.map((values) => {
        const value = values[index];
        return h("td", { class: "number" }, value === null || value === undefined ? "–" : this.format(value));
      }))));
  }

  close() {
    this.sizes.disconnect();
    this.plot?.destroy();
  }
}
