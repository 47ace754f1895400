// An expression for a browser: the faults in the layout of what the page shows, as texts.
/* global document, getComputedStyle, innerWidth, NodeFilter */

(() => {
  const faults = new Set();
  const isVisible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const nameOf = (element) => `${element.tagName} "${element.ariaLabel ?? element.textContent.trim().slice(0, 30)}"`;
  /** The lines of an element or text, without their line spacing. */
  const linesOf = (node) => [...node.getClientRects()].filter(({ width, height }) => width > 1 && height > 1);
  const areOver = (one, other) =>
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2 &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 3;
  const isOutside = (line, { left, right }) => line.left < left - 1 || line.right > right + 1;

  /** Elements above the rest of the page, or the whole page. */
  const root = document.querySelector('.modal-ux') ?? document.body;
  const controls = [...root.querySelectorAll('a, button, input, select, textarea')].filter(isVisible);
  const boxes = controls.map((control) => ({ control, lines: linesOf(control) }));
  for (const { control, lines } of boxes) {
    const box = control.getBoundingClientRect();
    const isInText =
      control.matches('a') && getComputedStyle(control).display === 'inline' && control.closest('p, li, dd');
    const targets = [control, ...(control.labels ?? [])].map((target) => target.getBoundingClientRect());
    // Shown when the mouse is over its line, or when it has the focus.
    if (control.closest('.view-line-link')) continue;
    const isLarge = targets.some(({ width, height }) => width >= 24 && height >= 24);
    if (!isInText && !isLarge) faults.add(`${nameOf(control)} is ${box.width} x ${box.height} px`);
    const card = control.closest('pre, .opblock, .modal-ux, main') ?? document.documentElement;
    if (isOutside(box, card.getBoundingClientRect())) faults.add(`${nameOf(control)} leaves its card`);
    for (const other of boxes) {
      if (control.contains(other.control) || other.control.contains(control)) continue;
      if (lines.some((own) => other.lines.some((line) => areOver(own, line)))) {
        faults.add(`${nameOf(control)} is over ${nameOf(other.control)}`);
      }
    }
    if (control.matches('select')) {
      const context = document.createElement('canvas').getContext('2d');
      const { font, paddingLeft, paddingRight } = getComputedStyle(control);
      const room = control.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
      const text = control.selectedOptions[0]?.text ?? '';
      if (Object.assign(context, { font }).measureText(text).width > room + 1) faults.add(`SELECT cuts "${text}"`);
    }
  }

  const fonts = new Set();
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { currentNode: text } = texts;
    const { parentElement: parent } = text;
    if (!text.data.trim() || parent.closest('script, noscript, option') || !isVisible(parent)) continue;
    fonts.add(getComputedStyle(parent).fontFamily);
    const range = document.createRange();
    range.selectNodeContents(text);
    const say = `"${text.data.trim().slice(0, 30)}"`;
    for (const line of linesOf(range)) {
      // Code of more than 25 rem scrolls.
      const middle = (line.top + line.bottom) / 2;
      const shown = parent.closest('pre')?.getBoundingClientRect() ?? { top: -Infinity, bottom: Infinity };
      if (middle < shown.top || middle > shown.bottom) continue;
      for (const { control, lines } of boxes) {
        if (lines.some((own) => areOver(own, line)) && !control.contains(text)) {
          faults.add(`${nameOf(control)} is over ${say}`);
        }
      }
      // A response that is not open ends with an ellipsis.
      if (parent.closest('.response-open')) continue;
      if (isOutside(line, { left: 0, right: innerWidth })) faults.add(`${say} leaves the page`);
      for (let box = parent; box !== root; box = box.parentElement) {
        const cuts = getComputedStyle(box).overflowX !== 'visible';
        if (cuts && isOutside(line, box.getBoundingClientRect())) faults.add(`${say} is cut`);
      }
    }
  }
  const known = ['sans-serif', 'monospace'];
  for (const font of fonts) if (!known.includes(font)) faults.add(`The font ${font} is used`);
  return [...faults];
})();
