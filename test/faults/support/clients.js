/*
 * A load generator in a separate process with its own event loop:
 *   node clients.js <origin> <api key> <clients> <seconds>
 * Each client has a kept-alive connection, and sends its next request as soon as it has a response. It uses raw
 * sockets, because an HTTP client would cost more than the measured server. Prints an empty line at the first response,
 * and one JSON object at the end; SIGTERM ends it earlier. `servedAt` has the time of each response 200, in ms since
 * 1970.
 */
import { connect } from 'node:net';

const [origin, apiKey, clients, seconds] = process.argv.slice(2);
const { hostname, port } = new URL(origin);
const request = `GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\n\r\n`;
const counts = {};
const durations = { 200: [], 503: [] };
const servedAt = [];
const wrong = [];
let stopped = false;
let open = 0;

function count(name) {
  counts[name] = (counts[name] ?? 0) + 1;
}

function client() {
  let text = '';
  let startedAt = 0;
  let hasAnswer = false;
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  open++;
  socket.setEncoding('latin1');
  const call = () => {
    startedAt = performance.now();
    text = '';
    socket.write(request);
  };
  socket.on('connect', call);
  socket.on('data', (chunk) => {
    text += chunk;
    const head = text.indexOf('\r\n\r\n');
    if (head < 0) return;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1]);
    if (text.length < head + 4 + length) return;
    hasAnswer = true;
    const status = text.slice(9, 12);
    if (Object.keys(counts).length === 0) process.stdout.write('\n');
    count(status);
    if (status === '200') servedAt.push(Date.now());
    durations[status]?.push(performance.now() - startedAt);
    if (status === '503' && !(/\r\nretry-after: 1\r\n/i.test(text) && text.includes('"code":"unavailable"'))) {
      wrong.push(text);
    }
    if (stopped) socket.destroy();
    else if (!/\r\nconnection: close\r\n/i.test(text.slice(0, head + 2))) call();
  });
  // Connections that close without a response were dropped by the server.
  socket.on('error', ({ code }) => count(code === 'ECONNRESET' && !hasAnswer ? 'dropped' : code));
  socket.on('end', () => !hasAnswer && count('dropped'));
  socket.on('close', () => {
    open--;
    if (!stopped) setTimeout(client, 10);
    else if (open === 0) print();
  });
}

function print() {
  const sorted = (list) => list.sort((a, b) => a - b);
  process.stdout.write(
    JSON.stringify({
      counts,
      served: sorted(durations[200]),
      servedAt,
      refused: sorted(durations[503]),
      wrong: wrong.slice(0, 3),
    }),
    () => process.exit(0),
  );
}

for (let index = 0; index < Number(clients); index++) client();
function stop() {
  stopped = true;
  // Give requests in flight 1.5 s to finish.
  setTimeout(print, 1_500);
}
setTimeout(stop, Number(seconds) * 1_000);
process.once('SIGTERM', stop);
