/*
 * Connections that send one request after the other as fast as they get responses, from a process of its own. Reads its orders
 * from standard input, as JSON: `port`, `connections`, `heads` and `bodies`, of which each connection sends the next head and the
 * next body in turn, and `awaited`, the status of the response at whose arrival it prints an empty line. With `skipLimited` a key
 * that got 429 is not sent again, and the next one is. SIGTERM ends it; then it prints the number of responses by status, and of errors by code.
 */
import { Buffer } from 'node:buffer';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

const { port, connections, heads, bodies, awaited, skipLimited } = JSON.parse(await text(process.stdin));
const counts = {};
let isAwaited = true;
let sent = 0;

function count(outcome) {
  counts[outcome] = (counts[outcome] ?? 0) + 1;
  if (isAwaited && outcome === awaited) {
    isAwaited = false;
    process.stdout.write('\n');
  }
}

/** The requests of each key, as bytes that are made once. Those of the first key are sent until it is limited. */
const requests = new Map();
for (const [index, head] of heads.entries()) {
  const body = bodies[index % bodies.length];
  const length = body === undefined ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  const key = skipLimited ? /Bearer (\S+)/.exec(head)?.[1] : undefined;
  if (!requests.has(key)) requests.set(key, []);
  requests.get(key).push(Buffer.from(`${head}${length}\r\n${body ?? ''}`));
}

function client() {
  let rest = -1;
  let head = '';
  let key;
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  const call = () => {
    [key] = requests.keys();
    const ofKey = requests.get(key);
    head = '';
    rest = -1;
    socket.write(ofKey[sent++ % ofKey.length]);
  };
  socket.on('connect', call);
  socket.on('data', (chunk) => {
    if (rest < 0) {
      head += chunk.toString('latin1');
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      rest = Number(/\r\ncontent-length: (\d+)/i.exec(head.slice(0, end + 2))?.[1] ?? 0) - (head.length - end - 4);
    } else {
      rest -= chunk.length;
    }
    if (rest > 0) return;
    const status = head.slice(9, 12);
    count(status);
    if (status === '429' && skipLimited && requests.size > 1) requests.delete(key);
    if (!/\r\nconnection: close\r\n/i.test(head)) call();
    else socket.destroy();
  });
  // A response that came before the whole body was sent has been counted.
  socket.on('error', ({ code }) => rest < 0 && count(code));
  socket.on('end', () => socket.destroy());
  socket.on('close', () => setTimeout(client, 5));
}

for (let index = 0; index < connections; index++) client();
process.once('SIGTERM', () => process.stdout.write(JSON.stringify(counts), () => process.exit(0)));
