import { BadGatewayException, Controller, Get, InternalServerErrorException, Module, Param } from '@nestjs/common';
import { readFile } from 'node:fs/promises';
import { inspect } from 'node:util';
import { DataSource } from 'typeorm';
import { ApiKeysService, ApiKeyVerifier, Public } from '#api-keys';
import { Database } from '#postgres';
import { createApiKey } from '../../libs/api-keys/src/api-key-format.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { rawRequest } from '../support/raw-request.js';

/*
 * Promises that hold for every answer to every client: its header fields, and that it reveals nothing about the inside.
 */

/** Everything that can fail inside, each with words that must not appear in the answer. */
const FAULTS: Record<string, (database: Database, dataSource: DataSource) => unknown> = {
  'unknown-column': (database) => database.write({ name: '', text: 'SELECT hidden_column FROM pet' }, []),
  constraint: (database) =>
    database.write({ name: '', text: `INSERT INTO pet (name, category_id) VALUES ('secret_row', NULL)` }, []),
  cancelled: (database) =>
    database.write({ name: '', text: `DO $$ BEGIN RAISE 'hidden_column' USING ERRCODE = '53100'; END $$` }, []),
  orm: (_, dataSource) => dataSource.query('SELEC $1', ['secret_row']),
  bug: () => (undefined as unknown as { hidden_column: () => void }).hidden_column(),
  file: () => readFile('/hidden_column/file'),
  connection: () => fetch('http://127.0.0.1:1/hidden_column'),
  text: () => thrown('hidden_column'),
  object: () => thrown({ status: 418, message: 'hidden_column', stack: 'hidden_column', expose: true }),
  nest: () => thrown(new InternalServerErrorException('hidden_column')),
  gateway: () => thrown(new BadGatewayException('hidden_column')),
  circle: () => {
    const circle: Record<string, unknown> = {};
    return (circle['hidden_column'] = circle);
  },
};

function thrown(value: unknown): never {
  throw value;
}

@Public()
@Controller('test-inside')
class TestInsideController {
  constructor(
    private readonly database: Database,
    private readonly dataSource: DataSource,
  ) {}

  @Get(':fault')
  fail(@Param('fault') fault: string): unknown {
    return FAULTS[fault]?.(this.database, this.dataSource);
  }
}

@Module({ controllers: [TestInsideController] })
class InsideModule {}

/** One answer, received by any client or as raw bytes. */
interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

let app: TestApp;
const seen = new Map<string, Seen>();

/** Sends raw bytes, so that no client corrects them. */
async function raw(bytes: string): Promise<Seen> {
  const answer = await rawRequest(app.port, Buffer.from(bytes, 'latin1'));
  const [head = '', ...rest] = answer.split('\r\n\r\n');
  const [line = '', ...fields] = head.split('\r\n');
  return {
    status: Number(line.split(' ')[1]),
    headers: Object.fromEntries(
      fields.map((field) => [field.slice(0, field.indexOf(':')).toLowerCase(), field.slice(field.indexOf(':') + 2)]),
    ),
    text: rest.join('\r\n\r\n'),
  };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;

beforeAll(async () => {
  app = await createTestApp({
    features: [InsideModule],
    settings: { REQUEST_TIMEOUT_MS: '1000', MAX_BODY_BYTES: '2000' },
  });
  const { client } = app;
  const keys = app.nest.get(ApiKeysService);
  const animal = { name: 'Rex', categoryId: 7 };
  const see = async (name: string, answer: Promise<Seen>): Promise<void> => void seen.set(name, await answer);

  await see('201', client.post('/v1/pets', animal));
  await see('200 of a list', client.get('/v1/pets'));
  await see('200 of an animal', client.get('/v1/pets/1'));
  await see('200 of HEAD', client.send('HEAD', '/v1/pets'));
  const { etag } = (await client.get('/v1/pets')).headers;
  await see('304', client.get('/v1/pets', { headers: { 'if-none-match': etag } }));
  await see('204 of OPTIONS', client.send('OPTIONS', '/v1/pets'));
  await see('302 to the pages', client.get('/', { apiKey: null }));
  const pages = ['/docs', '/docs/guide', '/docs/deprecations'];
  for (const path of [...pages, '/openapi.json', '/openapi.yaml', '/health/live', '/health/ready']) {
    await see(`200 of ${path}`, client.get(path, { apiKey: null }));
  }
  await see('200 of a file of the pages', client.get('/docs/assets/reference.js', { apiKey: null }));
  const { secret: metricsKey } = await keys.create({ client: 'prometheus', scopes: ['metrics:read'] });
  await see('200 of /metrics', client.get('/metrics', { apiKey: metricsKey }));

  for (const body of ['{', '{"name":"a","name":"b"}', '\ufeff{}', '{"name":1}', 'null', '{"a":'.repeat(40)]) {
    await see(`400 of the body ${body.slice(0, 20)}`, client.post('/v1/pets', body));
  }
  await see('400 of bytes that are no UTF-8', client.post('/v1/pets', Buffer.from([0x22, 0xff, 0x22])));
  await see('400 of no body', client.send('POST', '/v1/pets'));
  for (const query of ['limit=0', "status='; DROP TABLE pet; --", 'cursor=AAAA', '__proto__=1', 'limit=1&limit=2']) {
    await see(`400 of ?${query}`, client.get(`/v1/pets?${encodeURI(query)}`));
  }
  await see('401 without a key', client.get('/v1/pets', { apiKey: null }));
  await see('401 of an unknown key', client.get('/v1/pets', { apiKey: createApiKey() }));
  await see('403', client.get('/v1/pets', { apiKey: metricsKey }));
  for (const path of ['/v1/pets/0', "/v1/pets/1'%20OR%201=1", '/v1/toys', '/v1/pets/%ff', '/package.json', '/.env']) {
    await see(`404 of ${path}`, client.get(path));
  }
  await see('405', client.send('DELETE', '/v1/pets'));
  await see('413', client.post('/v1/pets', { ...animal, name: 'x'.repeat(3_000) }));
  await see('414', client.get(`/v1/pets?${'x'.repeat(8_200)}`));
  await see('415', client.post('/v1/pets', animal, { headers: { 'content-type': 'text/plain' } }));
  const { secret: limited } = await keys.create({ client: 'limited' });
  await keys.limit('limited', 1);
  await client.get('/v1/pets', { apiKey: limited });
  await see('429', client.get('/v1/pets', { apiKey: limited }));
  app.clock.travelTo('2031-01-01T00:00:00Z');
  await see('410', client.get('/v1/pets/1'));
  app.clock.travelTo(new Date().toISOString());

  await see('400 of no HTTP', raw('SSH-2.0-OpenSSH_9.2\r\n\r\n'));
  await see(
    '400 of two lengths',
    raw('POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}'),
  );
  await see('400 of no Host', raw('GET /v1/pets HTTP/1.1\r\nConnection: close\r\n\r\n'));
  await see('408', raw('GET /v1/pets HTTP/1.1\r\nHost: x\r\n'));
  await see('417', raw('POST /v1/pets HTTP/1.1\r\nHost: x\r\nExpect: x\r\nConnection: close\r\n\r\n'));
  await see('431', raw(`GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`));

  const statuses: Record<string, string> = { gateway: '502', cancelled: '503' };
  for (const fault of Object.keys(FAULTS)) {
    const answer = client.get(`/v1/test-inside/${fault}`, { apiKey: null });
    await see(`${statuses[fault] ?? '500'} of ${fault}`, answer);
  }
}, 60_000);
afterAll(() => app.close());

/** All answers whose body has the shape of an error. */
const errors = (): [string, Seen][] => [...seen].filter(([, { status }]) => status >= 400);

/** Every header field that any answer may have, in the spelling of Node. */
const KNOWN_FIELDS = [
  'accept allow cache-control connection content-length content-type date deprecation etag keep-alive link location',
  'ratelimit ratelimit-policy retry-after sunset vary www-authenticate x-content-type-options x-request-id',
  'content-security-policy cross-origin-opener-policy referrer-policy',
].flatMap((line) => line.split(' '));

describe('header fields', () => {
  test('each kind of answer was seen with its status', () => {
    expect(seen.size).toBeGreaterThan(50);
    for (const [name, { status }] of seen) expect([name, status]).toEqual([name, Number(name.slice(0, 3))]);
    const statuses = new Set([...seen.values()].map(({ status }) => status));
    expect([...statuses].sort()).toEqual([
      ...[200, 201, 204, 302, 304, 400, 401, 403, 404, 405, 408, 410, 413, 414, 415, 417, 429, 431, 500, 502, 503],
    ]);
  });

  test('every answer has nosniff, its request id, and only known header fields', () => {
    for (const [name, { headers }] of seen) {
      expect([name, headers['x-content-type-options']]).toEqual([name, 'nosniff']);
      expect([name, headers['x-request-id']]).toEqual([name, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
      expect([name, Object.keys(headers).filter((field) => !KNOWN_FIELDS.includes(field))]).toEqual([name, []]);
    }
  });

  test('no cache keeps an error, and no shared cache keeps an answer that needed an API key', () => {
    for (const [name, { headers }] of errors()) expect([name, headers['cache-control']]).toEqual([name, 'no-store']);
    expect(seen.get('201')?.headers['cache-control']).toBe('no-store');
    for (const name of ['200 of a list', '200 of an animal', '304']) {
      expect(seen.get(name)?.headers).toMatchObject({ 'cache-control': 'private, no-cache', vary: 'Authorization' });
    }
    for (const name of ['200 of /health/live', '200 of /health/ready', '200 of /metrics']) {
      expect([name, seen.get(name)?.headers['cache-control']]).toEqual([name, 'no-store']);
    }
    for (const name of ['200 of /docs', '200 of /openapi.json', '200 of a file of the pages']) {
      expect([name, seen.get(name)?.headers['cache-control']]).toEqual([name, 'no-cache']);
    }
  });

  test('every page forbids foreign scripts, styles and frames, and only pages are HTML', () => {
    for (const [name, { headers }] of seen) {
      const isPage = String(headers['content-type']).startsWith('text/html') && name !== '302 to the pages';
      const policy = headers['content-security-policy'];
      expect([name, policy !== undefined]).toEqual([name, isPage]);
      if (typeof policy !== 'string') continue;
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; /);
      expect(policy).toContain("base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|\*|http:\/\/(?!localhost)/);
      expect(headers).toMatchObject({ 'referrer-policy': 'no-referrer', 'cross-origin-opener-policy': 'same-origin' });
    }
  });
});

/** Words of the inside: SQL and its names, libraries, files, addresses, stacks, unformatted values. */
const INSIDE = new RegExp(
  [
    String.raw`hidden_column|\b(select|insert|relation|column|constraint|syntax|statement|query failed)\b`,
    String.raw`\b(category_id|schema_migration|key_usage|pgcode|sqlstate)\b`,
    String.raw`typeorm|nestjs|\bnest\b|express|\bpg\b|pglite|postgres|pino|class-validator|swagger|node_modules|node:|node\.js|llhttp|HPE_`,
    String.raw`\.[cm]?[jt]s\b|/src/|/dist/|/tmp/|/home/|/etc/|\bat \S+ \(|\bstack\b`,
    String.raw`\w(error|exception)\b|\b(enoent|econn\w+)\b|127\.0\.0\.1|fetch failed|\bundefined\b|\[object`,
  ].join('|'),
  'i',
);

describe('errors reveal nothing about the inside', () => {
  test('every error has code, message and status, and its message contains no internal word', () => {
    expect(errors().length).toBeGreaterThan(35);
    for (const [name, { status, text, headers }] of errors()) {
      expect([name, headers['content-type']]).toEqual([name, 'application/json']);
      const body = JSON.parse(text) as { message: string };
      expect([name, Object.keys(body)]).toEqual([name, ['code', 'message', 'status']]);
      // A message may repeat the path that the client has sent.
      const message = body.message.replace(/^No resource has the path .*$/, '');
      expect([name, INSIDE.exec(message)?.[0]]).toEqual([name, undefined]);
      if (status === 500) {
        expect(text).toBe(
          '{"code":"internal_error","message":"The service failed to answer; quote the X-Request-Id when you report it.","status":500}',
        );
      }
    }
  });

  test('the log, for the operator, holds these words, and no value of a row or a statement', () => {
    expect(app.log.text.match(new RegExp(INSIDE, 'gi'))?.length).toBeGreaterThan(20);
    const line = app.log.lines.find(({ msg }) => msg.includes('null value in column'));
    expect(line?.['error']).toMatchObject({
      code: '23502',
      message: expect.stringContaining('relation "pet"'),
      stack: expect.any(String),
    });
    expect(app.log.text).toContain('SELEC');
    expect(app.log.text).not.toContain('secret_row');
  });
});

test('no file but those of the pages can be read: 404 of every other path', async () => {
  expect((await raw(get('/docs/assets/reference.js'))).status).toBe(200);
  const below = [
    '/ /docs.ts /package.json /constructor /__proto__ /reference.js%00.css /reference.js/ /REFERENCE.JS /.',
    '/../reference.js /../../openapi.json /..%2f..%2f..%2fpackage.json /%2e%2e/%2e%2e/.env /..%5c..%5c.env',
    '/....//....//etc/passwd /..%252f..%252fetc%252fpasswd /%2fetc%2fpasswd //etc/passwd',
  ].flatMap((line) => line.split(' '));
  const elsewhere = '/docs/assets /docs/assets/ /docs/../.env /../../etc/passwd /.git/config /dist/src/main.js';
  for (const path of [...below.map((name) => `/docs/assets${name}`), ...elsewhere.split(' ')]) {
    const { status, text } = await raw(get(path));
    expect([path, status, JSON.parse(text)]).toMatchObject([path, 404, { code: 'route_not_found' }]);
  }
});

test('keys are found by their SHA-256: memory holds no token, so that no time depends on the characters of a key', async () => {
  const almost = `${app.apiKey.slice(0, 43)}${createApiKey().slice(43)}`;
  await app.client.get('/v1/pets');
  for (const apiKey of [almost, createApiKey(), 'an-unknown-key-of-another-form']) {
    expect((await app.client.get('/v1/pets', { apiKey })).status).toBe(401);
  }
  const { knownKeys } = app.nest.get<unknown>(ApiKeyVerifier) as Record<string, Map<string, unknown>>;
  const hashes = [...(knownKeys?.keys() ?? [])];
  expect(hashes).not.toEqual([]);
  for (const hash of hashes) expect(Buffer.from(hash, 'base64')).toHaveLength(32);
  const remembered = inspect([...(knownKeys?.values() ?? [])], { depth: null });
  expect(remembered).toContain('test-client');
  expect(remembered).not.toContain(app.apiKey.slice(0, 20));
});

test('an idle connection is closed after KEEP_ALIVE_TIMEOUT_MS', async () => {
  const other = await createTestApp({ settings: { KEEP_ALIVE_TIMEOUT_MS: '300' } });
  const startedAt = performance.now();
  const answer = await rawRequest(other.port, 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n', { timeout: 20_000 });
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(250);
  await other.close();
});
