import cluster from 'node:cluster';

/**
 * Time in ms within which a repeated signal is ignored. Ctrl+C reaches every process of the terminal, and npm forwards it to
 * the service once more.
 */
const REPEATED_WITHIN_MS = 1_000;

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Calls `stop` at the first SIGTERM or SIGINT, and `force` at each one more than a second later. On a terminal the first one
 * is confirmed on standard error, because a drain may take many seconds.
 *
 * @returns a function that removes the handlers
 */
export function onStopSignal(stop: (signal: NodeJS.Signals) => void, force: () => void): () => void {
  let firstAt: number | undefined;
  const handle = (signal: NodeJS.Signals): void => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      // Begins with a line feed, because the terminal has shown ^C.
      if (cluster.isPrimary && process.stderr.isTTY) process.stderr.write('\nStopping…\n');
      stop(signal);
    } else if (performance.now() - firstAt > REPEATED_WITHIN_MS) {
      force();
    }
  };
  SIGNALS.forEach((signal) => process.on(signal, handle));
  return () => SIGNALS.forEach((signal) => process.off(signal, handle));
}
