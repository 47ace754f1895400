import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { createTestApp, type TestApp } from '../../../test/support/app.js';
import { blocksOf, Workshop } from './samples.js';

/*
 * The packed package in Chromium: a page of another origin imports it without a bundler, as the README shows.
 */

let app: TestApp;
let workshop: Workshop;
let pages: Server;
let pagesOrigin: string;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  const [html = ''] = await blocksOf('clients/typescript/README.md', 'html');
  pages = createServer((request, response) => void serve(request.url ?? '/', html, response));
  pages.listen(0, '127.0.0.1');
  await once(pages, 'listening');
  pagesOrigin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  const port = await freePort();
  app = await createTestApp({
    settings: { PORT: port, PUBLIC_BASE_URL: `http://127.0.0.1:${port}/v1`, CORS_ORIGINS: pagesOrigin },
  });
  workshop = await Workshop.open(app.port, app.apiKey);
  await workshop.installClient();
  await app.sql(`
    INSERT INTO pet (id, name, category_id) OVERRIDING SYSTEM VALUE VALUES
    (-9223372036854775808, 'First', -9223372036854775808), (9007199254740993, 'Middle', 9007199254740993),
    (9223372036854775807, 'Last', 9223372036854775807)`);
  browser = await chromium.launch({
    executablePath: process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  });
  page = await browser.newPage();
  await page.goto(pagesOrigin);
}, 120_000);

afterAll(async () => {
  await browser?.close();
  pages?.close();
  await app?.close();
  await workshop?.close();
});

/** Serves the page, the packages at the paths of its import map, and a redirect. */
async function serve(path: string, html: string, response: ServerResponse): Promise<void> {
  if (path === '/') {
    response.setHeader('content-type', 'text/html').end(`<!doctype html><title>Pets</title>${html}`);
    return;
  }
  if (path === '/redirected/pets') {
    response.writeHead(302, { location: `${app.origin}/v1/pets` }).end();
    return;
  }
  const file = await readFile(join(workshop.directory, 'node_modules', path)).catch(() => undefined);
  response.writeHead(file ? 200 : 404, { 'content-type': 'text/javascript' }).end(file);
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return String(port);
}

/** Runs code in the page, with the package and a client. The code must return JSON. */
function inPage<T>(code: string, options = ''): Promise<T> {
  return page.evaluate<T>(`(async () => {
    const { PetStoreClient } = await import('@petstore-service/client');
    const notices = [];
    const client = new PetStoreClient({ baseUrl: '${app.origin}/v1', apiKey: '${app.apiKey}', ${options} });
    ${code}
  })()`);
}

test('listPets keeps every digit of identifiers, over all pages', async () => {
  const ids = await inPage(`
    const ids = [];
    for await (const { id, categoryId } of client.listPets({ limit: 1 })) ids.push(id + ' ' + categoryId);
    return ids;`);
  expect(ids).toEqual([
    '-9223372036854775808 -9223372036854775808',
    '9007199254740993 9007199254740993',
    '9223372036854775807 9223372036854775807',
  ]);
});

test('createPet keeps every digit, and is safe to repeat', async () => {
  const pet = { name: 'Rex', categoryId: '9223372036854775806' };
  const ids = await inPage<string[]>(`
    const pet = { name: '${pet.name}', categoryId: ${pet.categoryId}n, status: 'sold' };
    const [one, two] = [await client.createPet(pet, { idempotencyKey: 'k' }), await client.createPet(pet, { idempotencyKey: 'k' })];
    return [String(one.id), String(two.id), String(two.categoryId)];`);
  expect(ids).toEqual([ids[0], ids[0], pet.categoryId]);
});

test('a conditional GET returns NotModified after a 304', async () => {
  const answers = await inPage(`
    const { etag } = await client.listPetsPage();
    return [etag.slice(0, 3), (await client.listPetsPage({ ifNoneMatch: etag })).notModified];`);
  expect(answers).toEqual(['W/"', true]);
});

test('errors have the code and request id of the service', async () => {
  const [code, status, requestId] = await inPage<[string, number, string]>(`
    const error = await client.createPet({ name: '', categoryId: 7n }).catch((error) => error);
    return [error.code, error.status, error.requestId];`);
  expect([code, status]).toEqual(['validation_failed', 400]);
  expect(app.log.requests.map((line) => line['requestId'])).toContain(requestId);
});

test('network_error when nothing listens on the port', async () => {
  const port = await freePort();
  const [code, status] = await inPage<[string, number | null]>(
    `
    const { code, status = null } = await client.listPetsPage().catch((error) => error);
    return [code, status];`,
    `baseUrl: 'http://127.0.0.1:${port}/v1', maxAttempts: 2`,
  );
  expect([code, status]).toEqual(['network_error', null]);
});

describe('from an origin that CORS_ORIGINS does not name', () => {
  /** The same page by another name. */
  const foreign = (): string => pagesOrigin.replace('127.0.0.1', 'localhost');
  beforeEach(async () => {
    await page.goto(foreign());
  });
  afterEach(async () => {
    await page.goto(pagesOrigin);
  });

  test.each([1, 6])(
    'origin_not_allowed says what to set, after two attempts at most (maxAttempts: %i)',
    async (most) => {
      const sent: string[] = [];
      page.on('request', (request) => void sent.push(`${request.method()} ${new URL(request.url()).pathname}`));
      const [code, message] = await inPage<string[]>(
        `
      const { code, message } = await client.createPet({ name: 'Rex', categoryId: 7n }).catch((error) => error);
      return [code, message];`,
        `maxAttempts: ${most}`,
      );
      page.removeAllListeners('request');
      expect([code, message]).toEqual([
        'origin_not_allowed',
        `${app.origin} answers, but the browser does not let pages of ${foreign()} read its responses (CORS). ` +
          `If baseUrl is right, the service must name ${foreign()} in its setting CORS_ORIGINS, or a proxy in between fails without CORS.`,
      ]);
      const attempts = sent.filter((request) => request === 'POST /v1/pets');
      expect([attempts.length, sent.at(-1)]).toEqual([Math.min(most, 2), 'GET /v1/']);
    },
  );

  test('network_error when nothing listens on the port', async () => {
    const port = await freePort();
    const code = await inPage(
      'return (await client.listPetsPage().catch((error) => error)).code;',
      `baseUrl: 'http://127.0.0.1:${port}/v1', maxAttempts: 2`,
    );
    expect(code).toBe('network_error');
  });
});

test('a connection that breaks once is no matter of CORS', async () => {
  let left = 1;
  await page.route('**/v1/pets', (route) => (left-- > 0 ? route.abort('connectionreset') : route.fallback()));
  expect(await inPage('return (await client.listPetsPage()).pets.length;')).toBeGreaterThan(0);
  await page.unrouteAll();
});

test('connections that break after a response are no matter of CORS', async () => {
  let whole = 1;
  await page.route('**/v1/pets', (route) => (whole-- > 0 ? route.fallback() : route.abort('connectionreset')));
  const code = await inPage(
    `
    await client.listPetsPage();
    return (await client.listPetsPage().catch((error) => error)).code;`,
    'maxAttempts: 2',
  );
  await page.unrouteAll();
  expect(code).toBe('network_error');
});

test('an AbortSignal ends a call with the code aborted', async () => {
  const before = app.log.requests.length;
  const code = await inPage(`
    const signal = AbortSignal.abort();
    return (await client.listPetsPage({ signal }).catch((error) => error)).code;`);
  expect([code, app.log.requests.length]).toEqual(['aborted', before]);
});

test('onDeprecation is called for getPet', async () => {
  const notices = await inPage(
    `
    await client.getPet(9223372036854775807n);
    return notices;`,
    'onDeprecation: ({ operation, sunset }) => notices.push([operation, sunset.toISOString()])',
  );
  expect(notices).toEqual([['getPet', '2030-12-05T00:00:00.000Z']]);
});

test('unexpected_response for a redirect, which is not followed', async () => {
  const before = app.log.requests.length;
  const code = await inPage(
    'return (await client.listPetsPage().catch((error) => error)).code;',
    `baseUrl: '${pagesOrigin}/redirected'`,
  );
  expect(code).toBe('unexpected_response');
  expect(app.log.requests).toHaveLength(before);
});
