import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestDatabase, engine, testOnce, type TestDatabase } from '../support/database.js';
import { HttpClient } from '../support/http-client.js';
import { until } from '../support/until.js';
import { Services } from './support/services.js';

/*
 * The service as a process: its output at the start, and its end.
 */

// Each start takes a second, or many on a busy machine.
import.meta.jest.setTimeout(120_000);

const BOOTSTRAP_API_KEY = 'bootstrap-key-of-the-tests';

let database: TestDatabase;
/** Working directory of the processes; it has no `.env` unless a test writes one. */
let home: string;
let services: Services;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'petstore-start-'));
  services = new Services(home);
  database = await createTestDatabase();
});
afterEach(async () => {
  await services.kill();
  await database.drop();
  await rm(home, { recursive: true, force: true });
});

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('runs until %s, and ends with exit code 0', async (signal) => {
  const service = services.start({ ...database.settings, BOOTSTRAP_API_KEY });
  const client = new HttpClient(await service.origin(), BOOTSTRAP_API_KEY);
  expect((await client.post('/v1/pets', { name: 'Rex', categoryId: 7 })).status).toBe(201);
  expect(await service.stop(signal)).toBe(0);
  expect(service.stderr).toMatch(
    /^The Pet Store Service listens on \S+\nTo make an API key: .+\nDocumentation: \S+\n$/,
  );
  const lines = service.stdout.trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toContain('request');
  expect(service.stdout).not.toContain(BOOTSTRAP_API_KEY);
});

/** Files that a start on PostgreSQL loads at most. Stock Nest with the same libraries loads 2,344. */
const MOST_FILES = 1_900;
/** Packages that a start does not need, and those that the bundle contains. */
const NOT_LOADED = [
  'yaml',
  'pino-pretty',
  'marked',
  '@electric-sql/pglite',
  'ioredis',
  '@opentelemetry/sdk-node',
].concat(...['@nestjs/swagger', 'es-toolkit', 'prom-client']);

testOnce('the bundle that production starts serves what the modules do, and a start loads few files', async () => {
  // Node writes which files it has loaded.
  const coverage = join(home, 'coverage');
  const starts = services.start({ ...database.settings, NODE_V8_COVERAGE: coverage });
  await starts.origin();
  expect(await starts.stop('SIGTERM')).toBe(0);
  const [report = ''] = await readdir(coverage);
  const { result } = JSON.parse(await readFile(join(coverage, report), 'utf8')) as { result: { url: string }[] };
  const files = result.map(({ url }) => url).filter((url) => url.startsWith('file:'));
  const packages = new Set(files.map((url) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]));
  expect(files.filter((url) => url.includes('/dist/src/') || url.includes('/dist/libs/edge/'))).toEqual([]);
  expect(packages).toContain('@nestjs/core');
  expect(NOT_LOADED.filter((name) => packages.has(name))).toEqual([]);
  expect(files.length).toBeLessThan(MOST_FILES);

  const client = new HttpClient(await services.start(database.settings).origin());
  const published = await readFile(join(import.meta.dirname, '../../openapi.json'), 'utf8');
  expect((await client.get('/openapi.json', { apiKey: null })).text).toBe(published);
  for (const path of ['/openapi.yaml', '/docs', '/docs/guide', '/docs/assets/swagger-ui.css']) {
    expect([path, (await client.get(path, { apiKey: null })).status]).toEqual([path, 200]);
  }
});

testOnce('settings come from .env in the working directory, and the environment overrides them', async () => {
  await writeFile(join(home, '.env'), `# settings\nBOOTSTRAP_API_KEY=${BOOTSTRAP_API_KEY}\nLOG_LEVEL=wrong\n`);
  const service = services.start({ ...database.settings, LOG_LEVEL: 'silent' });
  const client = new HttpClient(await service.origin(), BOOTSTRAP_API_KEY);
  expect((await client.get('/v1/pets')).status).toBe(200);
  expect(service.stdout).toBe('');
});

if (engine === 'embedded') {
  test('the first start prints an API key with a command that works unchanged; the second start keeps key and pets', async () => {
    // Only host and port are set, as after a plain `npm start`.
    const first = services.start({});
    const origin = await first.origin();
    const key = /^ {2}export API_KEY=(pets_\w{49})$/m.exec(first.stderr)?.[1] ?? '';
    expect(first.stderr).toMatch(/^The Pet[^]+\n\nYour API key[^]+\n\nAdd a pet:\n[^]+\n\nDocumentation: \S+\n$/);
    const lines = first.stderr.split('\n').filter((line) => line.startsWith('  '));
    const { stdout } = await promisify(execFile)('bash', ['-c', lines.join('\n')]);
    const pet = '{"id":1,"name":"Rex","categoryId":7,"status":"available"}';
    expect(stdout).toBe(pet);
    expect(first.stdout).not.toContain(key);
    expect(await first.stop('SIGTERM')).toBe(0);
    expect(existsSync(join(home, '.data', 'postgres'))).toBe(true);

    const second = services.start({ PORT: new URL(origin).port });
    expect(await second.origin()).toBe(origin);
    expect(second.stderr).not.toMatch(/API_KEY|pets_/);
    const answer = await new HttpClient(origin, key).get('/v1/pets?limit=1');
    expect([answer.status, answer.text]).toEqual([200, `[${pet}]`]);
  });
}

testOnce('log lines, those of Nest included, are written while it runs, and no API key with DATABASE_URL', async () => {
  const service = services.start({ ...database.settings, LOG_LEVEL: 'debug' });
  await fetch(`${await service.origin()}/health/live`);
  await until(() => service.stdout.includes('"operation":"checkLiveness"'));
  expect(service.stdout).toContain('Nest application successfully started');
  expect(service.stderr).not.toMatch(/API_KEY|pets_/);
});
