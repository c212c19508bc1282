// Judges a report as a browser has laid it out, and gives what is wrong with it as
// [kind, words]. Evaluated in the page by the example `judge_pages`.
(async () => {
  "use strict";
  const found = [];
  const say = (kind, words) => found.push([kind, words]);
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));

  for (const details of document.querySelectorAll("details")) {
    details.open = true;
  }
  // Charts are drawn in several passes: until nothing changes any more.
  const state = () =>
    `${document.documentElement.scrollHeight} ${document.querySelectorAll("svg text").length}`;
  for (let last = "", same = 0; same < 3; ) {
    await pause(60);
    const now = state();
    same = now === last ? same + 1 : 0;
    last = now;
  }

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    say("overflow", `the page is ${root.scrollWidth} pixels wide in a window of ${root.clientWidth}`);
  }

  // Texts.

  const short = (text) => {
    const words = text.replace(/\s+/g, " ").trim();
    return `“${words.length > 50 ? words.slice(0, 49) + "…" : words}”`;
  };
  const isShown = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const corners = (box) => [
    { x: box.left, y: box.top },
    { x: box.right, y: box.top },
    { x: box.right, y: box.bottom },
    { x: box.left, y: box.bottom },
  ];
  // Glyphs fill the middle of their line.
  const SHRINK = 0.18;
  const texts = [];

  const luminance = (colour) => {
    const parts = colour.map((part) => {
      const c = part / 255;
      return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const numbers = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) {
        return colour;
      }
    }
    return [255, 255, 255];
  };
  const judgeContrast = (element, colour, text) => {
    const of = numbers(colour);
    if (of.length === 4 && of[3] === 0) {
      say("unreadable", `${short(text)} is transparent`);
      return;
    }
    const [a, b] = [luminance(of), luminance(background(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 3) {
      say("unreadable", `${short(text)} has a contrast of ${ratio.toFixed(1)}`);
    }
  };

  const inside = (quad, box, slack) =>
    quad.every(
      (p) =>
        p.x >= box.left - slack &&
        p.x <= box.right + slack &&
        p.y >= box.top - slack &&
        p.y <= box.bottom + slack,
    );

  for (const text of document.querySelectorAll(".plot svg text")) {
    if (!text.textContent.trim() || !isShown(text)) {
      continue;
    }
    const box = text.getBBox();
    const matrix = text.getScreenCTM();
    const point = (x, y) => new DOMPoint(x, y).matrixTransform(matrix);
    const cut = (box.height * SHRINK) / Math.max(1, text.querySelectorAll("tspan.line").length);
    const quad = [
      point(box.x, box.y + cut),
      point(box.x + box.width, box.y + cut),
      point(box.x + box.width, box.y + box.height - cut),
      point(box.x, box.y + box.height - cut),
    ];
    texts.push({ quad, words: text.textContent, element: text });
    const edge = text.closest(".plot").getBoundingClientRect();
    const svg = text.ownerSVGElement.getBoundingClientRect();
    if (!inside(quad, edge, 1) || !inside(quad, svg, 1)) {
      say("clipped", `${short(text.textContent)} reaches over its chart's edge`);
    }
    judgeContrast(text.closest(".plot"), getComputedStyle(text).fill, text.textContent);
  }

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("script, style, noscript, svg") || !isShown(parent)) {
      continue;
    }
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const line of range.getClientRects()) {
      const cut = line.height * SHRINK;
      let box = { left: line.left, right: line.right, top: line.top + cut, bottom: line.bottom - cut };
      for (let at = parent; at && at !== document.body; at = at.parentElement) {
        const style = getComputedStyle(at);
        const edge = at.getBoundingClientRect();
        for (const [overflow, low, high] of [
          [style.overflowX, "left", "right"],
          [style.overflowY, "top", "bottom"],
        ]) {
          if (overflow === "visible" || !box) {
            continue;
          }
          const outside = box[low] < edge[low] - 1 || box[high] > edge[high] + 1;
          if (outside && (overflow === "hidden" || overflow === "clip")) {
            say("clipped", `${short(node.data)} is cut off by its box`);
          }
          // What can be scrolled to is not lost; only what is in sight can overlap.
          box = {
            ...box,
            [low]: Math.max(box[low], edge[low]),
            [high]: Math.min(box[high], edge[high]),
          };
          if (box[low] >= box[high]) {
            box = null;
          }
        }
      }
      if (box && box.right - box.left > 0.5) {
        texts.push({ quad: corners(box), words: node.data, element: parent, node });
      }
    }
    judgeContrast(parent, getComputedStyle(parent).color, node.data);
  }

  // Two convex figures overlap unless some line along an edge parts them.
  const SLACK = 1.5;
  const apart = (a, b) => {
    for (const quad of [a, b]) {
      for (let i = 0; i < 4; i++) {
        const from = quad[i];
        const to = quad[(i + 1) % 4];
        const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
        const [nx, ny] = [(from.y - to.y) / length, (to.x - from.x) / length];
        const along = (points) => points.map((p) => p.x * nx + p.y * ny);
        const [pa, pb] = [along(a), along(b)];
        if (
          Math.max(...pa) - SLACK <= Math.min(...pb) ||
          Math.max(...pb) - SLACK <= Math.min(...pa)
        ) {
          return true;
        }
      }
    }
    return false;
  };
  for (const text of texts) {
    const ys = text.quad.map((p) => p.y);
    text.top = Math.min(...ys);
    text.bottom = Math.max(...ys);
  }
  texts.sort((a, b) => a.top - b.top);
  let open = [];
  for (const text of texts) {
    open = open.filter((other) => other.bottom > text.top);
    for (const other of open) {
      const same = other.node && other.node === text.node;
      if (!same && !apart(text.quad, other.quad)) {
        say("overlap", `${short(text.words)} lies over ${short(other.words)}`);
      }
    }
    open.push(text);
  }

  // Series.

  const marksOf = (plot, index, kind) => {
    const groups = [...plot.querySelectorAll(".scatterlayer .trace, .barlayer .trace")];
    const own = groups.filter((group) => group.__data__?.[0]?.trace?.index === index);
    return own.flatMap((group) => [...group.querySelectorAll(kind === "bar" ? ".point path" : "path")]);
  };
  const styleOf = (trace) => {
    const first = (value) => (Array.isArray(value) ? value[0] : value);
    const marker = trace.marker ?? {};
    return trace.type === "bar"
      ? [first(marker.color), first(marker.pattern?.shape) ?? ""].join(" ")
      : [
          trace.mode?.includes("lines") ? `${trace.line.color} ${trace.line.dash}` : "",
          trace.mode?.includes("markers") ? `${first(marker.color)} ${first(marker.symbol)}` : "",
        ].join(" ");
  };

  for (const plot of document.querySelectorAll(".plot")) {
    const figure = plot.closest("figure");
    const name = `${figure.querySelector("h3").textContent}, ${plot.id}`;
    if (!plot._fullData) {
      say("hidden", `${name} was not drawn`);
      continue;
    }
    const panel = plot.parentElement.querySelector("h4")?.textContent ?? "";
    const legend = [...figure.querySelectorAll("button[data-series]")];
    const named = new Set(legend.map((button) => button.dataset.series));
    const ticks = (axis) =>
      [...plot.querySelectorAll(`.${axis}tick text`)].filter(isShown).map((t) => t.textContent);
    const beside = new Set(ticks("y"));
    const area = plot.querySelector(".bglayer .bg, .plotbg, .nsewdrag").getBoundingClientRect();
    const looks = new Map();
    const metas = new Set();
    for (const trace of plot._fullData) {
      const series = trace.meta ?? "";
      const label = `${trace.name || "a series"} of ${name}`;
      const [x, y] = [trace.x ?? [], trace.y ?? []];
      const points = [...x].map((value, at) => [value, y[at]]);
      const drawn = points.filter(([a, b]) => a !== null && b !== null && !Number.isNaN(b));
      if (trace.visible !== true) {
        say("hidden", `${label} is not shown`);
        continue;
      }
      if (drawn.length === 0) {
        say("hidden", `${label} has no point`);
        continue;
      }
      const shown = marksOf(plot, trace.index, trace.type).filter((mark) => {
        const box = mark.getBoundingClientRect();
        const within =
          box.right > area.left && box.left < area.right && box.bottom > area.top && box.top < area.bottom;
        return within && Math.max(box.width, box.height) > 0.5 && isShown(mark);
      });
      const value = (bar) => (trace.orientation === "h" ? bar[0] : bar[1]);
      const wanted = trace.type === "bar" ? drawn.filter((bar) => value(bar) > 0).length : 1;
      if (shown.length < wanted) {
        say("hidden", `${label} shows ${shown.length} of ${wanted} marks`);
      }
      const xa = plot._fullLayout[trace.xaxis === "x" ? "xaxis" : `xaxis${trace.xaxis.slice(1)}`];
      const ya = plot._fullLayout[trace.yaxis === "y" ? "yaxis" : `yaxis${trace.yaxis.slice(1)}`];
      const beyond = (axis, at) => !(axis.d2p(at) >= -2 && axis.d2p(at) <= axis._length + 2);
      const lost = drawn.filter(([a, b]) => beyond(xa, a) || beyond(ya, b));
      // The ends of bars that are stacked or have a base are elsewhere.
      if (trace.type === "scatter" && lost.length > 0) {
        say("hidden", `${label} has ${lost.length} points outside its axes`);
      }
      if (series) {
        metas.add(series);
        const stacked = plot._fullLayout.barmode === "stack";
        const look = styleOf(trace);
        const other = looks.get(look);
        const published = /, (published|struck|fitted|a percentile)$/.test(trace.name ?? "");
        if (other !== undefined && other !== series && !published && !stacked) {
          say("alike", `${series} and ${other} look the same in ${name}`);
        }
        if (!published && trace.fill !== "toself") {
          looks.set(look, series);
        }
      }
      if (trace.type === "bar") {
        const wanted = plot._fullLayout.yaxis.tickvals.length;
        if (beside.size === 0 || ticks("y").length < wanted) {
          say("nameless", `${ticks("y").length} of ${wanted} names stand beside the bars of ${name}`);
        }
      }
    }
    // A line behind another one of the same breadth is not seen.
    const lines = plot._fullData.filter((trace) => trace.meta && trace.mode === "lines+markers");
    const at = (trace) =>
      [...trace.x].map((x, i) => [plot._fullLayout.xaxis.d2p(x), plot._fullLayout.yaxis.d2p(trace.y[i])]);
    for (const [i, under] of lines.entries()) {
      for (const over of lines.slice(i + 1)) {
        const [a, b] = [at(under), at(over)];
        const same = (p) => b.some((q) => Math.hypot(p[0] - q[0], p[1] - q[1]) < 1.5);
        if (under.meta !== over.meta && a.every(same) && over.line.width >= under.line.width) {
          say("hidden", `${under.meta} lies behind ${over.meta} in ${name}`);
        }
      }
    }
    const squeezed = (text) => text.replace(/[\s\u200b-]/g, "");
    const sides = [...beside].map(squeezed);
    for (const series of metas) {
      const own = named.has(series) || panel === series || sides.includes(squeezed(series));
      if (!own && metas.size > 1) {
        say("nameless", `nothing says which is ${series} in ${name}`);
      }
    }
  }
  for (const figure of document.querySelectorAll("figure")) {
    const swatches = new Map();
    for (const button of figure.querySelectorAll("button[data-series]")) {
      const picture = button.querySelector("svg").outerHTML;
      const series = button.dataset.series;
      if (swatches.has(picture)) {
        say("alike", `${series} and ${swatches.get(picture)} have the same picture in a legend`);
      }
      swatches.set(picture, series);
    }
  }
  return found;
})()
