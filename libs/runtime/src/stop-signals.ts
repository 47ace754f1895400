/**
 * Time in ms within which a repeated signal is ignored. Ctrl+C reaches every process of the terminal, and npm forwards it to
 * the service once more.
 */
const REPEATED_WITHIN_MS = 1_000;

/** SIGHUP: the terminal was closed. `nohup` has no effect on it, because Node resets ignored signals when it starts. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * Calls `stop` at the first SIGTERM, SIGINT or SIGHUP, which a terminal confirms, and `force` at each SIGTERM or SIGINT more than a second
 * later. Returns a function that removes the handlers.
 */
export function onStopSignal(stop: (signal: NodeJS.Signals) => void, force: () => void): () => void {
  let firstAt: number | undefined;
  const handle = (signal: NodeJS.Signals): void => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      // A terminal that was closed refuses every write, which would otherwise end the process.
      for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
      // Begins with a line feed, because the terminal has shown ^C.
      if (process.stderr.isTTY) process.stderr.write('\nStopping…\n');
      stop(signal);
    } else if (signal !== 'SIGHUP' && performance.now() - firstAt > REPEATED_WITHIN_MS) {
      force();
    }
  };
  STOP_SIGNALS.forEach((signal) => process.on(signal, handle));
  return () => STOP_SIGNALS.forEach((signal) => process.off(signal, handle));
}
