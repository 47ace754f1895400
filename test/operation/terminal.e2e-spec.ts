import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  administerTestDatabase,
  createTestDatabase,
  engine,
  testOnce,
  type TestDatabase,
} from '../support/database.js';
import { HttpClient } from '../support/http-client.js';
import { CTRL_C, TerminalProcess } from '../support/terminal-process.js';

/*
 * The output of the service on a terminal of 80 columns.
 */

// Each start takes seconds, or many on a busy machine.
import.meta.jest.setTimeout(120_000);

const ROOT = join(import.meta.dirname, '../..');
const MAIN = join(ROOT, 'dist/bundle/main.js');
const API_KEY = 'bootstrap-key-of-the-tests';

let database: TestDatabase;
/** Working directory of processes that npm does not start; it has no `.env`. */
let home: string;
const terminals: TerminalProcess[] = [];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'petstore-terminal-'));
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const terminal of terminals.splice(0)) await terminal.close();
  await database.drop();
  await rm(home, { recursive: true, force: true });
});

/** Runs a command on a terminal until the end of the test. */
function open(command: string, settings: Readonly<Record<string, string>>, cwd = home): TerminalProcess {
  const terminal = new TerminalProcess(command, cwd, { HOST: '127.0.0.1', PORT: '0', ...settings });
  terminals.push(terminal);
  return terminal;
}

const npmStart = (settings: Readonly<Record<string, string>> = {}): TerminalProcess =>
  open('npm start', { ...database.settings, BOOTSTRAP_API_KEY: API_KEY, ...settings }, ROOT);

const serve = (settings: Readonly<Record<string, string>> = {}): TerminalProcess =>
  open(`${process.execPath} ${MAIN}`, { ...database.settings, BOOTSTRAP_API_KEY: API_KEY, ...settings });

/** Waits until the service on a terminal listens, and returns a client of it. */
async function clientOf(terminal: TerminalProcess): Promise<HttpClient> {
  const [, origin = ''] = await terminal.shows(/listens on (http:\/\/localhost:\d+)\/v1/);
  return new HttpClient(origin, API_KEY);
}

test('Ctrl+C under npm start ends with code 0, without an error of npm, and closes the database', async () => {
  const ids: unknown[] = [];
  for (let round = 0; round < 3; round++) {
    const terminal = npmStart();
    const client = await clientOf(terminal);
    const { status, json } = await client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
    expect(status).toBe(201);
    ids.push((json as { id: number }).id);
    terminal.type(CTRL_C);
    expect([round, await terminal.ended]).toEqual([round, 0]);
    expect(terminal.shown).toMatch(/\nStopping…\n/);
    expect(terminal.shown).not.toMatch(/npm error|ELIFECYCLE/);
  }
  // PostgreSQL skips up to 32 ids after a start on a database that was not closed.
  expect(ids).toEqual([1, 2, 3]);
  if (engine === 'embedded') {
    expect(await readdir(database.settings.DATA_DIR ?? '')).toEqual(['postgres']);
  }
});

testOnce('a terminal that is closed drains the service: a request in flight gets its 201', async () => {
  await administerTestDatabase(
    database,
    `CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3); RETURN NULL; END'`,
  );
  await administerTestDatabase(
    database,
    'CREATE TRIGGER linger AFTER INSERT ON pet FOR EACH STATEMENT EXECUTE FUNCTION linger()',
  );
  const terminal = serve();
  const client = await clientOf(terminal);
  const sent = client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
  await sleep(500);
  terminal.hangUp();
  expect((await sent).status).toBe(201);
});

testOnce('the log on a terminal has a line for each request, with the path and without the query', async () => {
  const terminal = serve();
  const client = await clientOf(terminal);
  await client.get('/v1/pets?limit=2');
  await client.get('/v1/nope?name=secret');
  await terminal.shows(/^\[\d\d:\d\d:\d\d\] INFO: GET \/v1\/pets 200 [\d.]+ ms$/m);
  await terminal.shows(/^\[\d\d:\d\d:\d\d\] INFO: GET \/v1\/nope 404 route_not_found [\d.]+ ms$/m);
  expect(terminal.text).toContain('\x1b[32mINFO\x1b[39m');
  expect(terminal.text).not.toContain('secret');
});

testOnce('the log shows control characters of a message as escapes, on a terminal and in JSON', async () => {
  const script = join(home, 'log.mjs');
  const library = join(ROOT, 'dist/libs/ops/index.js');
  const message = 'a\u001b[2J\u009b2J\rb\u202e\\u0007c';
  await writeFile(
    script,
    `import { createLogger } from ${JSON.stringify(library)};
    createLogger({ logLevel: 'info' }).warn({ error: { stack: 'one\\n\u009b' } }, ${JSON.stringify(message)});`,
  );
  const terminal = open(`${process.execPath} ${script}`, {});
  await terminal.ended;
  expect(terminal.text).toContain(String.raw`a\u001b[2J\u009b2J\rb\u202e\u0007c`);
  const piped = open(`${process.execPath} ${script} | cat`, {});
  await piped.ended;
  expect(JSON.parse(piped.text)).toMatchObject({ msg: message, error: { stack: 'one\n\u009b' } });
  // eslint-disable-next-line no-control-regex -- the colours of the terminal
  for (const text of [terminal.text.replace(/\x1b\[\d+m/g, ''), piped.text]) {
    expect(text.replaceAll('\r\n', '')).not.toMatch(/[\p{Cc}\p{Cf}](?<!\n)/u);
  }
});

describe('a command on a terminal', () => {
  const petstore = (line: string): TerminalProcess =>
    open(`${process.execPath} ${join(ROOT, 'dist/src/cli.js')} ${line}`, database.settings);

  testOnce('after Ctrl+C, seed says how many pets it has added', async () => {
    const seed = petstore('seed --count 1000000000');
    await seed.shows(/Added 20000 of 1000000000 pets/);
    seed.type(CTRL_C);
    await seed.ended;
    expect(seed.shown).toMatch(/Added \d+ of 1000000000 pets; they stay after Ctrl\+C\.\^C$/);
    const finished = petstore('seed --count 25');
    expect([await finished.ended, finished.text.split('\x1b[K').at(-1)]).toEqual([0, 'Added 25 pets.\r\n']);
  });

  testOnce('a table of keys fits 80 columns, and a pipe whose reader has gone gets no stack trace', async () => {
    const keys = petstore('keys create --client mobile-app --expires 90d');
    expect([await keys.ended, keys.longLines]).toEqual([0, []]);
    const piped = petstore('keys list | true');
    expect([await piped.ended, piped.shown]).toEqual([0, '']);
  });
});

if (engine === 'embedded') {
  test('the first start says that it prepares the database, in at most 80 columns', async () => {
    const terminal = open(`${process.execPath} ${MAIN}`, { HOST: '' });
    await terminal.shows(/^Preparing the database…\n/);
    await terminal.shows(/v1 \(all interfaces\)\n\n[^]+export API_KEY=pets_\w{49}\n[^]+v1\/pets\n\nDoc.+\n/);
    expect(terminal.longLines).toEqual([]);
    terminal.type(CTRL_C);
    expect(await terminal.ended).toBe(0);
  });
}
