/** Whether the whole of the fault tests runs, `npm run test:faults`, or the quick pass that is part of `npm test`. */
export const isWholeRun = process.env.FAULTS === 'whole';

/** How often, or how long: one value for the quick pass, one for the whole. */
export function depth(quick: number, whole: number): number {
  return isWholeRun ? whole : quick;
}

/** Shows the figures of a test to whoever runs it. */
export function report(name: string, figures: Readonly<Record<string, string | number>>): void {
  const text = Object.entries(figures).map(([figure, value]) => `${figure} ${value}`);
  process.stderr.write(`FIGURES ${name}: ${text.join(', ')}\n`);
}
