//! Faults for the self-test: each is a script put at the end of a sound page, and the
//! judge must find it.

/// A fault: its name, the kind of complaint that it must cause, and the script.
pub const FAULTS: [(&str, &str, &str); 13] = [
    (
        "a chart's label moved over another",
        "overlap",
        "const t = document.querySelectorAll('.plot .xtick text');
         t[1].setAttribute('x', t[0].getAttribute('x'));
         t[1].setAttribute('transform', t[0].getAttribute('transform'));",
    ),
    (
        "a heading moved over its neighbour",
        "overlap",
        "const h = document.querySelector('figcaption .note');
         h.style.position = 'relative'; h.style.top = '-20px';",
    ),
    (
        "a chart's label beyond the chart's edge",
        "clipped",
        "const t = document.querySelector('.plot .ytick text');
         t.setAttribute('x', Number(t.getAttribute('x')) - 60);",
    ),
    (
        "a title cut by its box",
        "clipped",
        "const h = document.querySelector('figure h3');
         h.style.cssText = 'overflow: hidden; white-space: nowrap; width: 40px';",
    ),
    (
        "a series that is not drawn",
        "hidden",
        "document.querySelector('.scatterlayer .trace').style.display = 'none';",
    ),
    (
        "a bar of no length",
        "hidden",
        "document.querySelector('.barlayer .point path').setAttribute('d', '');",
    ),
    (
        "points outside the axes",
        "hidden",
        "const p = document.querySelector('.plot');
         Plotly.relayout(p, {'yaxis.range': p._fullLayout.yaxis.range.map((at) => at / 2)});",
    ),
    (
        "two series that look alike",
        "alike",
        "Plotly.restyle(document.querySelector('.plot'), {
           'line.color': '#777777', 'line.dash': 'solid',
           'marker.color': '#777777', 'marker.symbol': 'circle'});",
    ),
    (
        "bars without names",
        "nameless",
        "const bars = document.querySelector('.barlayer .point').closest('.plot');
         bars.querySelectorAll('.ytick').forEach((tick) => tick.remove());",
    ),
    (
        "a picture from the network",
        "request",
        "document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}));",
    ),
    (
        "a script that throws",
        "script",
        "throw new Error('seeded');",
    ),
    (
        "a page wider than its window",
        "overflow",
        "document.querySelector('main').insertAdjacentHTML(
           'beforeend', '<div style=\"width: 2400px; height: 4px\"></div>');",
    ),
    (
        "text in the colour of its paper",
        "unreadable",
        "document.querySelector('h1').style.color = getComputedStyle(document.body).backgroundColor;",
    ),
];

/// A page with a fault.
pub fn with_fault(page: &str, script: &str) -> String {
    let end = page.rfind("</body>").unwrap_or(page.len());
    let (before, after) = page.split_at(end);
    format!("{before}<script>{script}</script>{after}")
}
