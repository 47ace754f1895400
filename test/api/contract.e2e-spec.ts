import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { judge, type Verdict } from '../../contract/judge.js';
import { PETS } from '../../contract/rows.js';
import { ExpiredKeys } from '../../libs/resources/src/idempotency/idempotency-key.repository.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, testOnce } from '../support/database.js';
import { judgeApp, ROWS } from '../support/judge-app.js';
import { partitionTables } from '../support/partitioned-tables.js';
import { ServiceProcess } from '../support/service-process.js';

const ROOT = join(import.meta.dirname, '../..');

let app: TestApp;
let verdict: Verdict;
beforeAll(async () => {
  app = await createTestApp({ settings: { REQUEST_TIMEOUT_MS: '1500' } });
});
afterAll(() => app.close());

test('every row holds', async () => {
  verdict = await judgeApp(app);
  expect([verdict.failures, verdict.leftOut]).toEqual([[], []]);
});

testOnce('every row holds with tables in partitions, and expired idempotency keys are removed', async () => {
  const database = await createTestDatabase();
  await partitionTables(database);
  const partitioned = await createTestApp({ database, settings: { REQUEST_TIMEOUT_MS: '1500' } });
  const { failures, leftOut } = await judgeApp(partitioned);
  expect([failures, leftOut]).toEqual([[], []]);
  expect(await partitioned.sql('SELECT count(DISTINCT tableoid)::int FROM pet')).toEqual([[5]]);
  await partitioned.sql(`UPDATE idempotency_key SET created_at = now() - interval '2 days'`);
  await partitioned.nest.get(ExpiredKeys).remove();
  expect(await partitioned.sql('SELECT FROM idempotency_key')).toEqual([]);
  await partitioned.close();
  await database.drop();
});

test.each([...new Set(ROWS.flatMap(({ setting }) => setting ?? []))])(
  'every row holds that needs %s',
  async (setting) => {
    const [name = '', value = ''] = setting.split('=');
    const other = await createTestApp({ settings: name === 'CLOCK' ? {} : { [name]: value } });
    if (name === 'CLOCK') other.clock.travelTo(value);
    const { failures } = await judgeApp(other, setting);
    await other.close();
    expect(failures).toEqual([]);
  },
);

const NO_CODE_OF_TEXTS = '--disallow-code-generation-from-strings';

/** Under this flag older releases, such as 20.19.0, 22.13.0 and 24.11.0, import no names of some CommonJS packages. */
function importsUnderFlag(): boolean {
  const imports = ['--input-type=module', '--eval', "import { ValidateBy } from 'class-validator'"];
  return spawnSync(process.execPath, [NO_CODE_OF_TEXTS, ...imports], { cwd: ROOT }).status === 0;
}

testOnce('every row holds in a process that may not make code of texts, if this release of Node.js can', async () => {
  const program = [NO_CODE_OF_TEXTS, join(ROOT, 'dist/bundle/main.js')];
  const settings = { ...app.database.settings, PUBLIC_BASE_URL: app.config.publicBaseUrl, REQUEST_TIMEOUT_MS: '1500' };
  const service = new ServiceProcess(settings, tmpdir(), { program });
  if (!importsUnderFlag()) {
    await expect(service.origin()).rejects.toThrow('CommonJS');
    return;
  }
  try {
    const { failures } = await judgeApp({ ...app, origin: await service.origin() });
    expect(failures).toEqual([]);
  } finally {
    await service.kill();
  }
});

test('the examples of errors in the document are among the bodies that the rows have met', () => {
  const { examples } = JSON.parse(readFileSync(join(ROOT, 'openapi.json'), 'utf8')).components;
  const unlike = [...verdict.errors].filter(([code, bodies]) => !bodies.includes(JSON.stringify(examples[code].value)));
  expect(unlike).toEqual([]);
  expect(verdict.errors.size).toBeGreaterThan(20);
});

testOnce.each(['no HTTP', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]and more'])(
  'no row holds for a server that sends %j',
  async (bytes) => {
    const server = createServer((socket) => socket.end(bytes)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { failures } = await judge({ url, variables: { key: '', base: '' } }, PETS.slice(0, 1));
    server.close();
    expect(failures).toHaveLength(1);
  },
);

/** Runs the program; returns its exit code and everything that it prints. */
function run(...args: string[]): Promise<[code: number, output: string]> {
  const loader = ['--import', './test/support/register-typescript.js', 'contract/run.ts'];
  return new Promise((resolve) =>
    execFile(process.execPath, [...loader, ...args], { cwd: ROOT }, (error, stdout, stderr) =>
      resolve([Number(error?.code ?? 0), stdout + stderr]),
    ),
  );
}

const getPet = (): string[] => ['--url', app.origin, '--key', app.apiKey, '--only', 'getPet'];

testOnce.each([
  [2, /refuses the key \(401\)/, () => ['--url', app.origin, '--key', 'unknown-key-unknown-key']],
  [2, /^No server responds at http:\/\/127.0.0.1:1: /, () => ['--url', 'http://127.0.0.1:1', '--key', 'x']],
  [1, /Give http:\/\/host:port, without a path/, () => ['--url', 'localhost', '--key', 'x']],
  [0, /^\d+ of \d+ rows hold\.\n$/, () => [...getPet(), '--base', app.config.publicBaseUrl]],
  [
    1,
    /^contract\/pets.txt:\d+ {2}GET .*‹.* \| Versioning\n {2}sent: {2}GET .*\n {2}came: {2}\d+ \[Link: /,
    () => [...getPet(), '--base', 'http://x/v1'],
  ],
])('the runner ends with %i and says %s', async (code, output, args) => {
  expect(await run(...args())).toEqual([code, expect.stringMatching(output)]);
});
