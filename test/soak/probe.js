/*
 * `node --expose-gc --import` loads this file into the service before the service's own code. At each SIGUSR2 it writes
 * the figures of the process after a full garbage collection to standard error. The service does not know it.
 */
import { readdirSync } from 'node:fs';
import { setImmediate } from 'node:timers';

process.on('SIGUSR2', () => {
  globalThis.gc();
  // The first collection runs finalizers; the second frees what they release.
  setImmediate(() => {
    globalThis.gc();
    const { heapUsed, external, rss } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    // Minus the descriptor that lists the directory.
    const descriptors = readdirSync('/dev/fd').length - 1;
    const handles = process.getActiveResourcesInfo().length;
    process.stderr.write(
      `PROBE ${JSON.stringify({ heapUsed, external, rss, cpuUs: user + system, descriptors, handles })}\n`,
    );
  });
});
