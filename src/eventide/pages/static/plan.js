// The plan of a script, as the console draws it, without a run.

import { h } from "./dom.js";
import { mount } from "./page_plan.js";

export function show({ name, memory, nodes, edges, texts }) {
  const main = document.getElementById("main");
  const place = h("div", { class: "pages" });
  main.append(h("section", { class: "card" }, h("h1", {}, name), h("p", { class: "note" }, memory)), place);
  let node = "";
  const page = { ask: async () => texts, choose: (chosen) => { node = chosen.node; draw(); } };
  const view = mount(place, page, "Rows go from left to right. Choose a step for its SQL.", false);
  const draw = () => view.update({ nodes, edges, node, why: null, now: 0 });
  draw();
}
