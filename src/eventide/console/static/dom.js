// Elements from plain values. Whatever comes from data becomes text: there is no way here to make markup of it.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
}

// Lists are rebuilt only when what they show has changed, so that a focus or a selection stays where it is.
export function renderer(element, draw) {
  let last;
  return (value) => {
    const key = JSON.stringify(value);
    if (key === last) return;
    last = key;
    replace(element, draw(value));
  };
}

export function table(caption, head, rows, className) {
  return h("div", { class: "scroll" },
    h("table", { class: className || null },
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, head.map((one) =>
        h("th", { scope: "col", class: one.number ? "number" : null, title: one.title }, one.name)))),
      h("tbody", {}, rows)));
}

export const card = (title, ...children) => h("section", { class: "card" }, title ? h("h2", {}, title) : null, children);
