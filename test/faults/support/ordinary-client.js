/*
 * An ordinary client in a process of its own. Reads its orders from standard input, as JSON: `origin`, `apiKey`, `perSecond`,
 * `seconds`, and `paths`, which it requests in turn. It sends each request at its time, whether or not the earlier ones have
 * responses, and measures from that time, so that a service which hangs is not asked less often. Prints JSON: the durations of
 * all responses in ms, ascending, and the number of responses by status or error code.
 */
import { Agent, get } from 'node:http';
import { text } from 'node:stream/consumers';

const { origin, apiKey, perSecond, seconds, paths } = JSON.parse(await text(process.stdin));
const agent = new Agent({ keepAlive: true, maxSockets: 32 });
const headers = { authorization: `Bearer ${apiKey}` };
const durations = [];
const counts = {};

function call(path, due) {
  return new Promise((resolve) => {
    const done = (outcome) => {
      durations.push(performance.now() - due);
      counts[outcome] = (counts[outcome] ?? 0) + 1;
      resolve();
    };
    const request = get(origin + path, { agent, headers }, (response) => {
      response.on('error', ({ code }) => done(code));
      response.on('end', () => done(response.statusCode)).resume();
    });
    request.on('error', ({ code }) => done(code));
  });
}

// The first requests of a process and of its connections take longer.
for (let index = 0; index < 50; index++) await call(paths[index % paths.length], 0);
for (const code of Object.keys(counts)) delete counts[code];
durations.length = 0;

const startedAt = performance.now();
const calls = [];
while (calls.length < perSecond * seconds) {
  const due = startedAt + (calls.length / perSecond) * 1_000;
  await new Promise((resolve) => setTimeout(resolve, due - performance.now()));
  // A late timer of this process is not the service's delay.
  calls.push(call(paths[calls.length % paths.length], Math.max(due, performance.now())));
}
await Promise.all(calls);
process.stdout.write(JSON.stringify({ durations: durations.sort((a, b) => a - b), counts }), () => process.exit(0));
