// Elements as data, and the least change that makes the page so: what stays keeps its focus, selection and scrolling.

const SVG = "http://www.w3.org/2000/svg";
const SET_AS_PROPERTIES = new Set(["value", "checked", "disabled", "open"]);

/** An element. `key` in `props` names it among its siblings; null and false children are left out. */
export function h(tag, props, ...children) {
  const kept = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== "");
  return {
    tag,
    key: props?.key,
    props: props ?? {},
    children: kept.map((child) => (typeof child === "object" ? child : { text: String(child) })),
  };
}

/** Make the children of a node those of the list. */
export function render(parent, list) {
  reconcile(parent, [list].flat(), parent.namespaceURI === SVG ? SVG : null);
}

function make(wanted, space) {
  if (wanted.text !== undefined) return document.createTextNode(wanted.text);
  return space ? document.createElementNS(space, wanted.tag) : document.createElement(wanted.tag);
}

function fits(node, wanted) {
  if (wanted.text !== undefined) return node.nodeType === Node.TEXT_NODE;
  return node.wanted?.tag === wanted.tag && node.wanted.key === wanted.key;
}

function reconcile(parent, list, space) {
  const left = [...parent.childNodes];
  let place = parent.firstChild;
  for (const wanted of list) {
    const inside = wanted.tag === "svg" ? SVG : space;
    const found = left.findIndex((node) => fits(node, wanted));
    const node = found >= 0 ? left.splice(found, 1)[0] : make(wanted, inside);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
    if (wanted.text !== undefined) {
      if (node.data !== wanted.text) node.data = wanted.text;
      continue;
    }
    assign(node, node.wanted?.props ?? {}, wanted.props);
    node.wanted = wanted;
    reconcile(node, wanted.children, inside);
  }
  for (const node of left) node.remove();
}

function assign(node, before, props) {
  for (const name of Object.keys(before)) if (!(name in props)) put(node, name, null);
  for (const [name, value] of Object.entries(props)) {
    if (name === "style") for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
    else if (SET_AS_PROPERTIES.has(name) || before[name] !== value) put(node, name, value);
  }
}

function put(node, name, value) {
  if (name === "key") return;
  if (name.startsWith("on")) node[name] = value;
  else if (SET_AS_PROPERTIES.has(name) && name in node) {
    // What somebody is typing is theirs.
    const typing = node === document.activeElement && name === "value";
    if (!typing && node[name] !== (value ?? "")) node[name] = value ?? "";
  } else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}
