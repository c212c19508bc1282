(() => {
  "use strict";
  const { base, plots } = JSON.parse(document.getElementById("plots").textContent);
  const root = document.documentElement;

  // Figures name the style sheet's colours, so that both follow the theme.
  const paint = (value, style) => {
    if (typeof value === "string" && value.startsWith("theme:")) {
      return style.getPropertyValue("--" + value.slice(6)).trim();
    }
    if (Array.isArray(value)) {
      return value.map((item) => paint(item, style));
    }
    if (value && typeof value === "object") {
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, paint(item, style)]),
      );
    }
    return value;
  };

  // Series that the reader has hidden, by figure.
  const hidden = new Map();
  // Figures that the reader wants on a logarithmic scale.
  const logarithmic = new Set();
  const isHidden = (figure, series) => hidden.get(figure)?.has(series) ?? false;

  const draw = (within = document) => {
    const style = getComputedStyle(root);
    const narrow = window.innerWidth < 600;
    const wide = window.innerWidth >= 960;
    for (const [id, plot] of Object.entries(plots)) {
      const box = document.getElementById(id);
      // What is folded away is drawn when it is opened.
      if (!within.contains(box) || box.closest("details:not([open])")) {
        continue;
      }
      const figure = box.closest("figure").id;
      const data = paint(plot.data, style).map((trace) => ({
        ...trace,
        visible: !(trace.meta && isHidden(figure, trace.meta)),
      }));
      const common = paint(base, style);
      const layout = { ...common.layout, ...paint(plot.layout, style) };
      layout.hoverlabel = {
        bgcolor: style.getPropertyValue("--card").trim(),
        bordercolor: style.getPropertyValue("--line").trim(),
        font: { color: style.getPropertyValue("--ink").trim() },
        align: "left",
      };
      if (logarithmic.has(figure)) {
        layout.yaxis = { ...layout.yaxis, type: "log", rangemode: "normal" };
      }
      if (wide && plot.roomy) {
        const more = paint(plot.roomy, style);
        const shown = (label) => !isHidden(figure, label.text);
        layout.xaxis = { ...layout.xaxis, ...more.xaxis };
        layout.annotations = [...(layout.annotations ?? []), ...(more.annotations ?? []).filter(shown)];
        layout.margin = { ...layout.margin, r: more.right ?? layout.margin.r };
      }
      if (narrow) {
        layout.font = { ...layout.font, size: 12 };
        // A finger that scrolls the page must not zoom a chart.
        layout.dragmode = false;
      }
      Plotly.react(box, data, layout, common.config);
    }
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("figure button");
    if (!button) {
      return;
    }
    const figure = button.closest("figure");
    if (button.classList.contains("scale")) {
      const linear = logarithmic.delete(figure.id);
      if (!linear) {
        logarithmic.add(figure.id);
      }
      button.setAttribute("aria-pressed", String(!linear));
      draw(figure);
      return;
    }
    const own = hidden.get(figure.id) ?? new Set();
    const series = button.dataset.series;
    const shown = own.delete(series);
    if (!shown) {
      own.add(series);
    }
    hidden.set(figure.id, own);
    button.setAttribute("aria-pressed", String(shown));
    draw(figure);
  });

  draw();
  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => {
      if (details.open) {
        draw(details);
      }
    });
  }
  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.classList.contains("js-plotly-plot") && target.clientWidth > 0) {
        Plotly.Plots.resize(target);
      }
    }
  });
  for (const id of Object.keys(plots)) {
    resized.observe(document.getElementById(id));
  }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  for (const width of ["(max-width: 599px)", "(min-width: 960px)"]) {
    window.matchMedia(width).addEventListener("change", () => draw());
  }
  window.addEventListener("beforeprint", () => {
    root.classList.add("print");
    for (const details of document.querySelectorAll("details")) {
      details.open = true;
    }
    draw();
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("print");
    draw();
  });
})();
