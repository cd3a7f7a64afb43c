"use strict";
// Draws the interactive pictures with BokehJS from the data scripts of the page. The still pictures stay for paper.
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const words = read("kb-words"), palette = read("kb-palette");
  const B = Bokeh, P = Bokeh.Plotting;
  const plots = [];
  const span = (ns) => {
    const size = Math.abs(ns);
    const [unit, by] = size >= 1e9 ? ["s", 1e9] : size >= 1e6 ? ["ms", 1e6] : size >= 1e3 ? ["us", 1e3] : ["ns", 1];
    const value = ns / by;
    return `${value.toFixed(by === 1 || Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 10 ? 1 : 2)} ${unit}`;
  };
  const ink = () => getComputedStyle(document.body).color;
  const paint = (plot) => {
    const text = ink();
    plot.background_fill_color = null;
    plot.border_fill_color = null;
    plot.outline_line_color = null;
    for (const axis of [...plot.below, ...plot.left]) {
      axis.major_label_text_color = text;
      axis.axis_label_text_color = text;
      axis.axis_line_color = text;
      axis.axis_line_alpha = axis.major_tick_line_alpha = 0.3;
      axis.major_tick_line_color = text;
      axis.minor_tick_line_color = null;
    }
    for (const grid of plot.center) {
      grid.grid_line_color = text;
      grid.grid_line_alpha = 0.1;
    }
  };
  document.addEventListener("themechange", () => plots.forEach(({ plot, themed }) => { paint(plot); if (themed) themed(); }));

  const tools = (axis) => [
    new B.PanTool({ dimensions: axis }),
    new B.WheelZoomTool({ dimensions: axis, modifiers: { ctrl: true } }),
    new B.ZoomInTool({ dimensions: axis }),
    new B.ZoomOutTool({ dimensions: axis }),
    new B.ResetTool(),
  ];
  const frame = (height, x_range, y_range, axis, extra = {}) => {
    const plot = P.figure({ height, sizing_mode: "stretch_width", x_range, y_range, tools: tools(axis), toolbar_location: "above", ...extra });
    plot.toolbar.logo = null;
    return plot;
  };
  // Calls `run` once a frame at most, however often a range moves.
  const soon = (run) => {
    let waiting = false;
    return () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; run(); });
    };
  };
  const watch = (range, run) => { const later = soon(run); range.properties.start.change.connect(later); range.properties.end.change.connect(later); };
  const element = (tag, properties) => Object.assign(document.createElement(tag), properties);

  const timeline = (chart, place) => {
    const lanes = chart.lanes.length, row = 34, whole = chart.window_ns / 1e6;
    const x_range = new B.Range1d({ start: 0, end: whole, bounds: [0, whole], min_interval: 1e-5 });
    const y_range = new B.Range1d({ start: lanes + 1, end: -0.1 });
    const plot = frame(row * (lanes + 1) + 74, x_range, y_range, "width", { x_axis_label: "ms" });
    const marks = new B.ColumnDataSource({ data: {} }), gaps = new B.ColumnDataSource({ data: {} });
    const quad = { left: { field: "left" }, right: { field: "right" }, top: { field: "top" }, bottom: { field: "bottom" }, line_color: null };
    const spans = plot.quad({ ...quad, fill_color: { field: "color" }, source: marks });
    const bubbles = plot.quad({ ...quad, fill_color: palette.bubble, source: gaps });
    plot.add_tools(new B.HoverTool({ renderers: [spans], tooltips: [["", "@name"], [words.time, "@length"], ["@", "@begin"], [words.tasks, "@count"]] }));
    plot.add_tools(new B.HoverTool({ renderers: [bubbles], tooltips: [[words["role.bubble"], "@length"], ["", "@between"], [words.why, "@cause"]] }));
    plot.left.forEach((axis) => {
      axis.ticker = new B.FixedTicker({ ticks: [...chart.lanes.keys(), lanes].map((lane) => lane + 0.5), minor_ticks: [] });
      axis.major_label_overrides = new Map([...chart.lanes.map((lane, number) => [number + 0.5, lane.name.slice(0, 24)]), [lanes + 0.5, words["role.bubble"]]]);
      axis.major_tick_line_color = null;
    });
    gaps.data = {
      left: chart.bubbles.map((gap) => gap.start_ns / 1e6), right: chart.bubbles.map((gap) => (gap.start_ns + gap.duration_ns) / 1e6),
      top: chart.bubbles.map(() => lanes + 0.2), bottom: chart.bubbles.map(() => lanes + 0.8),
      length: chart.bubbles.map((gap) => span(gap.duration_ns)), cause: chart.bubbles.map((gap) => gap.cause),
      between: chart.bubbles.map((gap) => `${gap.before} → ${gap.after}`),
    };
    const longest = chart.lanes.map((lane) => lane.durations.reduce((most, value) => Math.max(most, value), 0));
    const total = chart.lanes.reduce((sum, lane) => sum + lane.starts.length, 0);
    const status = element("output", {});
    const find = element("input", { type: "search", placeholder: words["search.hint"] });
    find.setAttribute("aria-label", words.search);
    let wanted = "";
    const first = (lane, from) => {
      let low = 0, high = lane.starts.length;
      while (low < high) { const middle = (low + high) >> 1; if (lane.starts[middle] < from) low = middle + 1; else high = middle; }
      return low;
    };
    // Level of detail: thin spans that begin within one pixel become one mark in the colour of the longest, so that there
    // are never more marks than pixels; neighbours of one colour that touch become one, too.
    const redraw = () => {
      const begin = x_range.start * 1e6, end = x_range.end * 1e6, pixel = (end - begin) / Math.max(plot_width(place), 300);
      const data = { left: [], right: [], top: [], bottom: [], color: [], name: [], length: [], begin: [], count: [] };
      let seen = 0;
      const hits = chart.names.map((name) => wanted === "" || name.toLowerCase().includes(wanted));
      const push = (number, from, to, color, name, count) => {
        data.left.push(from / 1e6); data.right.push(Math.max(to, from + pixel * 0.6) / 1e6); data.top.push(number + 0.12); data.bottom.push(number + 0.88);
        data.color.push(color); data.name.push(name); data.length.push(span(to - from)); data.begin.push(span(from)); data.count.push(count);
      };
      chart.lanes.forEach((lane, number) => {
        let run = null;
        for (let at = first(lane, begin - longest[number]); at < lane.starts.length && lane.starts[at] < end; at++) {
          const from = lane.starts[at], to = from + lane.durations[at];
          if (to < begin) continue;
          seen += lane.counts[at];
          const color = hits[lane.names[at]] ? palette[chart.roles[lane.roles[at]]] : "#8a93a35a";
          if (to - from >= 2 * pixel) {
            push(number, from, to, color, chart.names[lane.names[at]], lane.counts[at]);
          } else if (run && (from < run.from + pixel || (from - run.to < pixel && run.color === color))) {
            if (to - from > run.longest) { run.longest = to - from; run.color = color; }
            run.to = Math.max(run.to, to); run.count += lane.counts[at];
          } else {
            if (run) push(number, run.from, run.to, run.color, run.count > 1 ? "…" : run.name, run.count);
            run = { from, to, color, longest: to - from, name: chart.names[lane.names[at]], count: lane.counts[at] };
          }
        }
        if (run) push(number, run.from, run.to, run.color, run.count > 1 ? "…" : run.name, run.count);
      });
      marks.data = data;
      status.textContent = words.shown_of.replace("{shown}", data.left.length.toLocaleString()).replace("{all}", seen.toLocaleString());
      place.dataset.marks = String(data.left.length);
    };
    const plot_width = (box) => box.clientWidth - 120;
    find.addEventListener("input", soon(() => { wanted = find.value.trim().toLowerCase(); redraw(); }));
    const reset = element("button", { type: "button", textContent: words.reset });
    reset.addEventListener("click", () => { x_range.setv({ start: 0, end: whole }); });
    const bar = element("div", { className: "tools" });
    bar.append(find, reset, words.zoom_hint, status);
    place.append(bar);
    watch(x_range, redraw);
    redraw();
    place.dataset.total = String(total);
    return { plot, range: x_range };
  };

  const flame = (chart, place) => {
    const frames = [];
    const walk = (node, from, level, path) => {
      frames.push({ node, from, to: from + node.value_ns, level, path });
      let at = from;
      for (const child of node.children) { walk(child, at, level + 1, `${path} → ${child.name}`); at += child.value_ns; }
    };
    walk(chart.root, 0, 0, chart.root.name);
    const total = chart.root.value_ns || 1, rows = frames.reduce((most, one) => Math.max(most, one.level), 0) + 1;
    const x_range = new B.Range1d({ start: 0, end: total, bounds: [0, total], min_interval: total / 1e6 });
    const y_range = new B.Range1d({ start: rows, end: 0 });
    const plot = frame(rows * 30 + 46, x_range, y_range, "width");
    plot.below.forEach((axis) => { axis.visible = false; });
    plot.left.forEach((axis) => { axis.visible = false; });
    plot.center.forEach((grid) => { grid.visible = false; });
    const source = new B.ColumnDataSource({ data: {} });
    const shade = [1, 0.92, 0.74, 0.56];
    const boxes = plot.quad({
      left: { field: "left" }, right: { field: "right" }, top: { field: "top" }, bottom: { field: "bottom" }, fill_color: { field: "color" },
      fill_alpha: { field: "alpha" }, line_color: { field: "edge" }, line_width: { field: "edge_width" }, source,
      selection_fill_alpha: { field: "alpha" }, nonselection_fill_alpha: { field: "alpha" },
    });
    plot.text({
      x: { field: "left" }, y: { field: "middle" }, text: { field: "label" }, x_offset: 5, text_baseline: "middle", text_font_size: "12px",
      text_color: { field: "ink" }, source,
    });
    plot.add_tools(new B.HoverTool({ renderers: [boxes], tooltips: [["", "@path"], [words.total, "@length"], [words.share, "@share"], [words.count, "@count"]] }));
    const status = element("output", {});
    const find = element("input", { type: "search", placeholder: words["search.hint"] });
    find.setAttribute("aria-label", words.search);
    let wanted = "", shown = [];
    const redraw = () => {
      const { start, end } = x_range, per = Math.max(place.clientWidth - 30, 300) / (end - start), text = ink();
      const data = { left: [], right: [], top: [], bottom: [], middle: [], color: [], alpha: [], edge: [], edge_width: [], label: [], ink: [], path: [], length: [], share: [], count: [] };
      let matched = 0, hits = 0;
      shown = frames.filter((one) => one.to > start && one.from < end && (one.to - one.from) * per >= 0.4);
      for (const one of shown) {
        const left = Math.max(one.from, start), width = (Math.min(one.to, end) - left) * per;
        const hit = wanted !== "" && one.node.name.toLowerCase().includes(wanted);
        if (hit) { hits += 1; matched += one.node.value_ns; }
        const alpha = shade[Math.min(one.level, 3)] * (wanted === "" || hit ? 1 : 0.3), room = Math.floor((width - 10) / 7.2);
        data.left.push(left); data.right.push(Math.min(one.to, end)); data.top.push(one.level + 0.04); data.bottom.push(one.level + 0.96);
        data.middle.push(one.level + 0.5); data.color.push(palette[one.node.role]); data.alpha.push(alpha);
        data.edge.push(hit ? text : null); data.edge_width.push(hit ? 2 : 0);
        data.label.push(room < 3 ? "" : one.node.name.length > room ? `${one.node.name.slice(0, room - 1)}…` : one.node.name);
        data.ink.push(alpha > 0.6 ? "#ffffff" : text); data.path.push(one.path); data.length.push(span(one.node.value_ns));
        data.share.push(`${(100 * one.node.value_ns / total).toFixed(1)} %`); data.count.push(one.node.count.toLocaleString());
      }
      source.data = data;
      status.textContent = wanted === "" ? "" : `${hits} ${words.matches}, ${span(matched)} (${(100 * matched / total).toFixed(1)} %)`;
      place.dataset.hits = String(hits);
    };
    source.selected.properties.indices.change.connect(() => {
      const [index] = source.selected.indices;
      if (index === undefined) return;
      const one = shown[index];
      source.selected.indices = [];
      if (one) x_range.setv({ start: one.from, end: one.to });
    });
    plot.add_tools(new B.TapTool({ renderers: [boxes] }));
    find.addEventListener("input", soon(() => { wanted = find.value.trim().toLowerCase(); redraw(); }));
    const reset = element("button", { type: "button", textContent: words.reset });
    reset.addEventListener("click", () => { x_range.setv({ start: 0, end: total }); });
    const bar = element("div", { className: "tools" });
    bar.append(find, reset, words.enter_hint, status);
    place.append(bar);
    watch(x_range, redraw);
    redraw();
    return { plot, themed: redraw, range: x_range };
  };

  const curves = (chart) => {
    const xs = chart.series.flatMap((line) => [line.x[0], line.x[line.x.length - 1]]);
    const highest = chart.series.reduce((most, line) => line.y.reduce((top, value) => Math.max(top, value), most), 0);
    const x_range = new B.Range1d({ start: Math.min(...xs), end: Math.max(...xs), bounds: [Math.min(...xs), Math.max(...xs)] });
    const plot = frame(300, x_range, new B.Range1d({ start: 0, end: highest * 1.05 || 1 }), "width", { x_axis_label: chart.x_title, y_axis_label: chart.y_title });
    for (const line of chart.series) {
      const source = new B.ColumnDataSource({ data: { x: line.x, y: line.y, name: line.x.map(() => line.name) } });
      if (chart.filled) plot.varea({ x: { field: "x" }, y1: 0, y2: { field: "y" }, fill_color: palette[line.role], fill_alpha: 0.08, source });
      const drawn = plot.line({ x: { field: "x" }, y: { field: "y" }, line_color: palette[line.role], line_width: 2, source });
      plot.add_tools(new B.HoverTool({ renderers: [drawn], mode: "vline", tooltips: [["", "@name"], [chart.x_title, "@x{0,0.0}"], [chart.y_title, "@y{0,0.00}"]] }));
    }
    return { plot, range: x_range };
  };

  const roofline = (chart) => {
    const ridge = chart.peak_flops / chart.bandwidth, dots = chart.dots;
    const low = Math.min(1, ...dots.map((dot) => dot.intensity)) / 1.5, high = Math.max(ridge * 10, ...dots.map((dot) => dot.intensity)) * 1.5;
    const floor = Math.min(1, ...dots.map((dot) => dot.flops / 1e12)) / 1.5;
    const x_range = new B.Range1d({ start: low, end: high });
    const plot = frame(360, x_range, new B.Range1d({ start: floor, end: chart.peak_flops / 1e12 * 2 }), "both",
      { x_axis_type: "log", y_axis_type: "log", x_axis_label: "FLOP/B", y_axis_label: "TFLOP/s" });
    plot.line({ x: [low, ridge, high], y: [low * chart.bandwidth / 1e12, chart.peak_flops / 1e12, chart.peak_flops / 1e12], line_color: palette.accent, line_width: 2.5 });
    const source = new B.ColumnDataSource({ data: {
      x: dots.map((dot) => dot.intensity), y: dots.map((dot) => dot.flops / 1e12), size: dots.map((dot) => 8 + 52 * Math.sqrt(dot.weight)),
      name: dots.map((dot) => dot.name), share: dots.map((dot) => `${(100 * dot.weight).toFixed(1)} %`), color: dots.map((dot) => palette[dot.role]),
    } });
    const drawn = plot.scatter({ x: { field: "x" }, y: { field: "y" }, size: { field: "size" }, fill_color: { field: "color" }, fill_alpha: 0.5, line_color: { field: "color" }, source });
    plot.add_tools(new B.HoverTool({ renderers: [drawn], tooltips: [["", "@name"], ["FLOP/B", "@x{0.0}"], ["TFLOP/s", "@y{0.0}"], [words.share, "@share"]] }));
    return { plot, range: x_range };
  };

  const kinds = { Timeline: timeline, FlameGraph: flame, Curves: curves, Roofline: roofline };
  const start = async (figure) => {
    const chart = JSON.parse(figure.querySelector("script.chart").textContent);
    const place = figure.querySelector(".live");
    place.hidden = false;
    const made = kinds[chart.type](chart, place);
    const box = element("div", {});
    place.append(box);
    paint(made.plot);
    await P.show(made.plot, box);
    plots.push(made);
    place.range = made.range;
    figure.querySelector(".still").style.display = "none";
    place.dataset.ready = "true";
  };
  // A picture is built when it comes near the screen: a page with many of them opens at once.
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { near.unobserve(entry.target); start(entry.target); }
    }
  }, { rootMargin: "600px" });
  document.querySelectorAll("figure:has(script.chart)").forEach((figure) => near.observe(figure));
})();
