// Lines over time in the colours of the page; what a chart shows is told in words beside it, for those who do not see it.

import uPlot from "./vendor/uPlot.js";
import { h } from "./dom.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// `make` gives the series and bands for uPlot, with colours from `colour`; it is called again when the theme changes.
export class Chart {
  constructor(label, height, make) {
    this.element = h("div", { class: "chart", role: "img", "aria-label": label });
    this.height = height;
    this.make = make;
    this.key = "";
    this.sized = new ResizeObserver(() => {
      const width = this.element.clientWidth;
      if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: this.height });
    });
    this.sized.observe(this.element);
    this.themed = () => this.redraw();
    document.addEventListener("themechange", this.themed);
  }

  // `shape` says which series there are: another shape is another chart.
  show(data, shape) {
    this.data = data;
    this.shape = shape;
    const key = JSON.stringify(shape);
    if (this.plot && key === this.key) this.plot.setData(data);
    else this.redraw(key);
  }

  redraw(key = this.key) {
    if (!this.data) return;
    this.key = key;
    this.plot?.destroy();
    const options = this.make(this.shape, colour);
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    this.plot = new uPlot({
      width: this.element.clientWidth || 600,
      height: this.height,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      padding: [8, 12, 0, 0],
      ...options,
      axes: [{ ...axis, size: 30, space: 110, grid: { show: false }, ...options.axes[0] }, { ...axis, size: 64, ...options.axes[1] }],
    }, this.data, this.element);
  }

  leave() {
    this.sized.disconnect();
    document.removeEventListener("themechange", this.themed);
    this.plot?.destroy();
  }
}

export const steps = (values, format) => values.map((value) => (value === null ? "" : format(value)));
