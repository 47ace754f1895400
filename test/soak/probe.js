/*
 * Loaded into the service before its own code (`node --expose-gc --import`). Answers each message of the soak with what
 * the process holds at that moment, after a full garbage collection. The service itself knows nothing of it.
 */
import { readdirSync } from 'node:fs';
import { setImmediate } from 'node:timers';

process.on('message', () => {
  globalThis.gc();
  // What the first collection has set free to be finalised, the second one takes.
  setImmediate(() => {
    globalThis.gc();
    const { heapUsed, external, rss } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    process.send({
      heapUsed,
      external,
      rss,
      cpuUs: user + system,
      // One of them is open only to list them.
      descriptors: readdirSync('/dev/fd').length - 1,
      resources: process.getActiveResourcesInfo(),
    });
  });
});
// Whoever asks has gone, so nobody would stop this process.
process.on('disconnect', () => process.exit(1));
// The channel alone must not keep the process running.
process.channel.unref();
