/** Prints the figures of a test to standard error, on one line. */
export function report(name: string, figures: Readonly<Record<string, string | number>>): void {
  const text = Object.entries(figures).map(([figure, value]) => `${figure} ${value}`);
  process.stderr.write(`FIGURES ${name}: ${text.join(', ')}\n`);
}
