// Places the nodes of a graph without cycles in columns, so that edges go to the right and cross little.

const SWEEPS = 6;
// A picture that is higher than a screen begins with the first box of each column.
const TALL = 1000;

/**
 * `nodes` are { id, height }, `edges` are { from, to } of ids. Returns where each node is, and the points of each edge:
 * { width, height, places: Map(id, { x, y, column }), lines: [{ from, to, points }] }.
 */
export function layOut(nodes, edges, { boxWidth, gapX, gapY }) {
  const columns = columnsOf(nodes, edges);
  const { all, short, chains } = withBends(nodes, edges, columns);
  const order = sorted(all, short);
  const places = new Map();
  const heights = order.map((column) => column.reduce((sum, node) => sum + node.height + gapY, -gapY));
  const height = Math.max(...heights, 0);
  order.forEach((column, number) => {
    let y = height > TALL ? 0 : (height - heights[number]) / 2;
    for (const node of column) {
      places.set(node.id, { x: number * (boxWidth + gapX), y, height: node.height, column: number });
      y += node.height + gapY;
    }
  });
  const middle = (id) => places.get(id).y + places.get(id).height / 2;
  const lines = chains.map(({ from, to, bends }) => ({
    from,
    to,
    points: [
      [places.get(from).x + boxWidth, middle(from)],
      ...bends.flatMap((id) => [[places.get(id).x, middle(id)], [places.get(id).x + boxWidth, middle(id)]]),
      [places.get(to).x, middle(to)],
    ],
  }));
  return { width: order.length * (boxWidth + gapX) - gapX, height, places, lines };
}

/** The column of each node: one after the last of what it reads; what reads nothing is just before its first reader. */
function columnsOf(nodes, edges) {
  const above = groupedBy(edges, "to", "from"), below = groupedBy(edges, "from", "to"), columns = new Map();
  const visit = (id) => {
    if (!columns.has(id)) {
      columns.set(id, 0); // were there a cycle, it would end here
      columns.set(id, Math.max(-1, ...(above.get(id) ?? []).map(visit)) + 1);
    }
    return columns.get(id);
  };
  for (const node of nodes) visit(node.id);
  for (const { id } of nodes) {
    const readers = (below.get(id) ?? []).map((reader) => columns.get(reader));
    if (!above.has(id) && readers.length) columns.set(id, Math.max(Math.min(...readers) - 1, 0));
  }
  return columns;
}

function groupedBy(edges, key, value) {
  const found = new Map();
  for (const edge of edges) found.set(edge[key], [...(found.get(edge[key]) ?? []), edge[value]]);
  return found;
}

/** An edge over several columns bends in each of them, at a place of its own, so that it goes between boxes. */
function withBends(nodes, edges, columns) {
  const all = nodes.map((node) => ({ ...node, column: columns.get(node.id) }));
  const short = [], chains = [];
  for (const { from, to } of edges) {
    const bends = [];
    for (let column = columns.get(from) + 1; column < columns.get(to); column++) {
      const id = `${from}>${to}@${column}`;
      all.push({ id, height: 6, column });
      bends.push(id);
    }
    const chain = [from, ...bends, to];
    chain.slice(1).forEach((id, place) => short.push({ from: chain[place], to: id }));
    chains.push({ from, to, bends });
  }
  return { all, short, chains };
}

/** The nodes of each column in an order in which each is near the average of its neighbours. */
function sorted(all, edges) {
  const order = [];
  for (const node of all) (order[node.column] ??= []).push(node);
  for (let column = 0; column < order.length; column++) order[column] ??= [];
  const above = groupedBy(edges, "to", "from"), below = groupedBy(edges, "from", "to");
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const near = sweep % 2 ? below : above;
    const rank = new Map();
    order.forEach((column) => column.forEach((node, place) => rank.set(node.id, place / column.length)));
    const weight = (node) => {
      const others = near.get(node.id);
      return others ? others.reduce((sum, id) => sum + rank.get(id), 0) / others.length : rank.get(node.id);
    };
    for (const column of order) {
      const weights = new Map(column.map((node) => [node.id, weight(node)]));
      column.sort((one, other) => weights.get(one.id) - weights.get(other.id));
    }
  }
  return order;
}
