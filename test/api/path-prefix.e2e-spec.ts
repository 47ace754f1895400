import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createTestApp, type TestApp } from '../support/app.js';

/** The service behind a proxy that serves it below /store and removes that part of the path, as nginx and ingresses do. */
const PREFIX = '/store';

let app: TestApp;
let proxy: Server;
let origin: string;
beforeAll(async () => {
  proxy = createServer((incoming, outgoing) => {
    const { method, headers, url = '' } = incoming;
    if (!url.startsWith(`${PREFIX}/`)) return outgoing.writeHead(404).end('outside');
    const options = { port: app.port, host: '127.0.0.1', path: url.slice(PREFIX.length), method, headers };
    const forwarded = request(options, (answer) => {
      outgoing.writeHead(answer.statusCode as number, answer.headers);
      answer.pipe(outgoing);
    });
    return incoming.pipe(forwarded);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  origin = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  app = await createTestApp({ settings: { PUBLIC_BASE_URL: `${origin}${PREFIX}/v1` } });
});
afterAll(async () => {
  proxy.close();
  proxy.closeAllConnections();
  await app.close();
});

test('every link of the pages, every file that they load and every redirect is found', async () => {
  const seen = new Set<string>();
  const waiting = ['', 'docs', 'docs/', 'docs/guide/', 'docs/deprecations/'].map(
    (path) => `${origin}${PREFIX}/${path}`,
  );
  for (let url = waiting.shift(); url !== undefined; url = waiting.shift()) {
    if (seen.has(url)) continue;
    seen.add(url);
    const answer = await fetch(url);
    const text = await answer.text();
    expect([url, answer.status, new URL(answer.url).pathname.startsWith(`${PREFIX}/`)]).toEqual([url, 200, true]);
    if (!answer.headers.get('content-type')?.startsWith('text/html')) continue;
    const links = [...text.matchAll(/(?:href|src)="([^"#]+)/g)].map(([, link = '']) => new URL(link, answer.url).href);
    waiting.push(...links.filter((link) => link.startsWith(origin)));
  }
  expect(seen.size).toBeGreaterThan(12);
});

test('the guide calls the service where its clients reach it', async () => {
  const guide = await (await fetch(`${origin}${PREFIX}/docs/guide`)).text();
  expect(guide).toContain(`${origin}${PREFIX}/v1/pets`);
  expect(guide).not.toContain('localhost:3000');
});
