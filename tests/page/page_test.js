// Runs after the page in a browser: it sends events to the page, as a user would, and
// compares the displayed data with the trace. At the end the result is in #outcome.
'use strict';
(function () {
  const failures = [];
  let checks = 0;
  function check(what, holds, seen) {
    checks++;
    if (!holds) failures.push(what + (seen === undefined ? '' : ' (it is ' + JSON.stringify(seen) + ')'));
  }
  const box = () => canvas.getBoundingClientRect();
  function send(type, x, y, more) {
    const at = { clientX: box().left + x, clientY: box().top + y, bubbles: true, cancelable: true };
    const Kind = type === 'wheel' ? WheelEvent : type.startsWith('pointer') ? PointerEvent : MouseEvent;
    const event = new Kind(type, Object.assign(at, more));
    (type === 'pointerup' ? window : canvas).dispatchEvent(event);
  }
  const key = name => canvas.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
  const near = (a, b, by) => Math.abs(a - b) <= by;
  const rowNamed = title => rows.find(r => r.title === title);
  const middleY = row => row.y + row.height / (2 * row.depth) - holder.scrollTop;
  const middleX = item => (xOf(O.start[item]) + xOf(O.end[item])) / 2;
  function colourAt(x, y) {
    const ratio = canvas.width / canvas.clientWidth;
    return [...draw2d.getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data].slice(0, 3).join();
  }

  function small() {
    // Rows: engines and queues of the device, then the host's.
    const titles = rows.map(r => r.heading || r.title);
    check('the rows', titles.join('|') === ['NVIDIA H200 (the "one")', 'copies to the device', 'copies to the host',
      'kernels', 'queue first', 'queue <\/script><b>second', 'host', 'main: regions', 'main: calls'].join('|'), titles);
    check('every operation has its place', rowNamed('queue first').items.length === 3 &&
      rowNamed('queue <\/script><b>second').items.length === 2);
    const kernel = O.queue.findIndex((q, i) => S[O.title[i]] === 'scale');
    const row = rowNamed('queue first');
    check('it begins with the first start', view.from === 100000 && ZERO === view.from && view.to > 3300000 && view.to < 3500000,
      [view.from, view.to]);
    paint();
    const band = colourAt(xOf(ALL.to) + 3, middleY(row)), ink = colourAt(middleX(kernel), row.y + 3);
    check('the kernel is painted', ink !== band, ink);
    const hex = ink.split(',').map(n => (+n).toString(16).padStart(2, '0')).join('');
    check('in the colour of kernels', '#' + hex === '#2f9e77', hex);
    check('few rows fill the page', rows.height <= holder.clientHeight && row.height > 1.5 * ROW, [rows.height, row.height]);
    fill(100);
    check('and many do not', row.height === ROW, row.height);
    fill(holder.clientHeight);
    check('waits that held something up', held.map(w => W.line[w]).join() === '9' && W.to.length === 2, held);

    // Zoom: the moment under the pointer stays there.
    const x = middleX(kernel), before = timeAt(x), width = view.to - view.from;
    send('wheel', x, middleY(row), { deltaY: -400 });
    check('the wheel zooms', near((view.to - view.from) / width, 1 / Math.E, .01), (view.to - view.from) / width);
    check('around the pointer', near(timeAt(x), before, width / plotWidth()), timeAt(x) - before);
    const from = view.from;
    send('pointerdown', 400, 200);
    send('pointermove', 300, 200);
    send('pointerup', 300, 200);
    check('a drag moves', near(view.from - from, 100 / plotWidth() * (view.to - view.from), 1), view.from - from);
    key('ArrowRight');
    check('a key moves', view.from > from);
    send('dblclick', 300, 200);
    check('a double click shows everything', near(view.from, ALL.from, 1) && near(view.to, ALL.to, 1));
    send('pointerdown', xOf(O.start[kernel]), 200, { shiftKey: true });
    send('pointermove', xOf(O.end[kernel]), 200, { shiftKey: true });
    send('pointerup', xOf(O.end[kernel]), 200, { shiftKey: true });
    check('shift and drag zoom into a stretch',
      near(view.from, O.start[kernel], 2e4) && near(view.to, O.end[kernel], 2e4), [view.from, view.to]);
    key('0');

    // Tooltip and selection.
    send('pointermove', middleX(kernel), middleY(row));
    const tip = byId('tip');
    check('a tooltip', getComputedStyle(tip).display === 'block');
    for (const part of ['scale', 'program.c:20', 'frame 7', 'grid 4 × 1 × 1 blocks of 256', 'waited for', 'second'])
      check('the tooltip has ' + part, tip.textContent.includes(part), tip.textContent);
    send('pointermove', 30, middleY(row));
    check('no tooltip beside the plot', getComputedStyle(tip).display === 'none');
    send('pointerdown', middleX(kernel), middleY(row));
    send('pointerup', middleX(kernel), middleY(row));
    check('a click selects', selected === kernel, selected);
    check('and shows details', byId('details').textContent.includes('program.c:20'), byId('details').textContent);
    key('f');
    check('F zooms to it', view.from < O.start[kernel] && view.to > O.end[kernel] &&
      view.to - view.from < 3 * (O.end[kernel] - O.start[kernel]));
    key('Escape');
    check('escape lets go', selected === -1);
    key('0');

    // A start that is a bound only is said to be one.
    const late = O.flags.findIndex(f => f & FLAG_EARLIEST);
    send('pointermove', middleX(late), middleY(rowNamed('kernels')));
    check('a bound is said to be one', tip.textContent.includes('at most'), tip.textContent);

    // The finding is listed as text, and marks the operations of its lines and no others.
    const found = byId('report').textContent;
    check('the finding', found.includes("read-after-write, 3 timesthe launch of '<b>scale' reads what a copy writes") &&
      found.includes('to do: record, and wait'), found);
    check('its operations', O.queue.every((_, i) => findingsOf(i).length === (O.line[i] === 30 ? 0 : 1)));
    check('the details of one', describe(row, kernel).some(line => line.startsWith('read-after-write: the launch')));
    const first = document.querySelector('#report td.finding').closest('tr');
    check('a click on it goes to its second line', +first.dataset.from === O.start[kernel]);

    // The report has the numbers of the report, and names are text, not markup.
    const report = byId('report').textContent, head = byId('head').textContent;
    check('the span', head.includes(time(R.span_ns)), head);
    check('busy shares', report.includes(percent(R.engines[0].utilisation)), report);
    check('names are text', document.querySelector('#report b, #timeline b') === null &&
      report.includes('<\/script><b>second'), report);
    check('pauses', report.includes('Pauses'));
    const line = document.querySelector('#report tr.go');
    line.click();
    check('a click on a pause goes there', view.from <= +line.dataset.from && view.to >= +line.dataset.to &&
      view.to - view.from < ALL.to - ALL.from);
    key('0');
    const search = byId('search');
    search.value = 'scale';
    search.dispatchEvent(new Event('input'));
    check('search finds', matches(row, kernel) && !matches(row, row.items.find(i => i !== kernel)));
    paint();
  }

  // Work for a frame is bounded by pixels, whatever the number of operations.
  function large() {
    check('there are no findings', !findings.length && findingsOf(5).length === 0);
    check('all operations are there', O.queue.length >= 100000, O.queue.length);
    let drawn = 0;
    const fill = CanvasRenderingContext2D.prototype.fillRect;
    draw2d.fillRect = function (...where) { drawn++; return fill.apply(draw2d, where); };
    const spent = [];
    for (const share of [1, .3, .01, .0001]) {
      zoomTo(ALL.from + (ALL.to - ALL.from) * .4, ALL.from + (ALL.to - ALL.from) * (.4 + share * .6));
      drawn = 0;
      const start = performance.now();
      paint();
      spent.push((performance.now() - start).toFixed(1));
      const lanesInSight = rows.reduce((sum, r) => sum + (r.depth || 0), 0);
      check('a frame draws no more than its pixels', drawn <= 3 * lanesInSight * (plotWidth() + 2) + 100, drawn);
    }
    zoomTo(ALL.from, ALL.to);
    const row = rowNamed('kernels'), item = row.items[50000 % row.items.length];
    around(O.start[item], O.end[item]);
    paint();
    send('pointermove', middleX(item), middleY(row) + row.lane[row.items.indexOf(item)] * row.height / row.depth);
    check('the tooltip finds one of them', byId('tip').textContent.includes(time(O.start[item] - ZERO)),
      byId('tip').textContent);
    check('(' + spent.join(', ') + ' ms a frame)', true);
    byId('details').dataset.frames = spent.join(', ') + ' ms a frame';
  }

  try {
    if (O.queue.length > 1000) large(); else small();
  } catch (error) {
    failures.push(String(error.stack || error));
  }
  const outcome = document.createElement('pre');
  outcome.id = 'outcome';
  outcome.textContent = (failures.length ? 'FAILED: ' + failures.join('\nFAILED: ') : 'passed') + '\n' + checks +
    ' checks; ' + (byId('details').dataset.frames || '') + '\nend of the outcome';
  document.body.append(outcome);
})();
