/*
 * `node --expose-gc --import` loads this file into the service before the service's own code. It answers each message of
 * the soak with figures of the process after a full garbage collection. The service does not know it.
 */
import { readdirSync } from 'node:fs';
import { setImmediate } from 'node:timers';

process.on('message', () => {
  globalThis.gc();
  // The first collection runs finalizers; the second frees what they release.
  setImmediate(() => {
    globalThis.gc();
    const { heapUsed, external, rss } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    process.send({
      heapUsed,
      external,
      rss,
      cpuUs: user + system,
      // Minus the descriptor that lists the directory.
      descriptors: readdirSync('/dev/fd').length - 1,
      resources: process.getActiveResourcesInfo(),
    });
  });
});
// The soak has ended, and nothing else would stop this process.
process.on('disconnect', () => process.exit(1));
// The channel alone must not keep the process running.
process.channel.unref();
