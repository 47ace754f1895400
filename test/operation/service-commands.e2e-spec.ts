import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase, engine, type TestDatabase } from '../support/database.js';
import { giveAway, takeBack } from '../support/foreign-files.js';
import { HttpClient } from '../support/http-client.js';
import { ServiceProcess } from '../support/service-process.js';
import { until } from '../support/until.js';
import { type Outcome, petstoreCommand, petstoreLine } from './support/petstore-command.js';

/*
 * Commands while the service runs. On the embedded engine the service runs them; on PostgreSQL they open their own
 * connections. The operator sees no difference.
 */

// Each test starts several processes. Each start takes a second, or many on a busy machine.
import.meta.jest.setTimeout(120_000);

const API_KEY = 'bootstrap-key-of-the-tests';

let database: TestDatabase;
let service: ServiceProcess;
let client: HttpClient;

beforeAll(async () => {
  database = await createTestDatabase();
  service = new ServiceProcess({ ...database.settings, BOOTSTRAP_API_KEY: API_KEY }, tmpdir());
  client = new HttpClient(await service.origin(), API_KEY);
});
afterAll(async () => {
  await service.kill();
  await database.drop();
});

const petstore = (...args: string[]): Promise<Outcome> => petstoreCommand(tmpdir(), database.settings, ...args);
const bash = (line: string): Promise<Outcome> => petstoreLine(tmpdir(), database.settings, line);

interface KeyJson {
  readonly id: string;
  readonly state: string;
}

/** The keys of a client, oldest first. */
async function keysOf(name: string): Promise<KeyJson[]> {
  return JSON.parse((await petstore('keys', 'list', '--client', name, '--json')).stdout) as KeyJson[];
}

async function newKey(name: string): Promise<string> {
  return (await petstore('keys', 'create', '--client', name, '--quiet')).stdout.trim();
}

test('keys create, list and revoke work while the service runs, and take effect within a second', async () => {
  const { code, stdout, stderr } = await petstore('keys', 'create', '--client', 'shop', '--quiet');
  expect([code, stdout, stderr]).toEqual([0, expect.stringMatching(/^pets_\w{49}\n$/), '']);
  const apiKey = stdout.trim();
  expect((await client.get('/v1/pets', { apiKey })).status).toBe(200);
  const { stdout: list } = await petstore('keys', 'list');
  expect(list).toMatch(/^\d+ +pets_\w{7}… +shop +- +\S+ +pets:read,pets:write$/m);
  expect(list).not.toContain(apiKey.slice(0, 20));
  expect((await petstore('keys', 'revoke', apiKey.slice(0, 12), '--json')).code).toBe(0);
  const refused = await until(async () => {
    const answer = await client.get('/v1/pets', { apiKey });
    return answer.status !== 200 && answer;
  });
  expect(refused.json).toMatchObject({ code: 'revoked_api_key' });
});

test('keys revoke takes the whole leaked key, and repeats it nowhere', async () => {
  const leaked = await newKey('leaked');
  const { code, stdout, stderr } = await petstore('keys', 'revoke', leaked, '--reason', 'leaked');
  expect([code, (stdout + stderr).includes(leaked.slice(0, 20))]).toEqual([0, false]);
  expect((await client.get('/v1/pets', { apiKey: leaked })).json).toMatchObject({ code: 'revoked_api_key' });
  // The whole key of another form.
  expect((await petstore('keys', 'show', API_KEY, '--json')).stdout).toContain('"client": "bootstrap"');
});

test('keys create refuses a scope that no operation needs, names the nearest one, and makes the key with --force', async () => {
  const create = ['keys', 'create', '--client', 'scopes', '--scopes'];
  const { code, stdout, stderr } = await petstore(...create, 'metrics:read,pets:raed');
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(
    /^petstore: No operation needs the scope 'pets:raed'\. Did you mean 'pets:read'\? .+--force.+\n$/,
  );
  expect((await petstore(...create, 'other:thing')).stderr).toMatch(/Known are metrics:read, .*pets:write\.$/m);
  expect(await keysOf('scopes')).toEqual([]);
  expect((await petstore(...create, 'other:thing', '--force', '--json')).stdout).toContain('"other:thing"');
  expect((await petstore('keys', 'rotate', String((await keysOf('scopes'))[0]?.id), '--json')).code).toBe(0);
});

test('a result that cannot be printed is exit code 1, unless its reader needs no more', async () => {
  expect((await bash('petstore keys create --client seen --quiet | cat')).stdout).toMatch(/^pets_\w{49}\n$/);
  expect(await bash('petstore keys list | head -1')).toMatchObject({ code: 0, stderr: '' });
  for (const command of ['keys list', 'keys create --client unseen --json']) {
    expect(await bash(`petstore ${command} >/dev/full`)).toEqual({
      code: 1,
      stdout: '',
      stderr: 'petstore: Standard output cannot be written: ENOSPC.\n',
    });
  }
  // The list shows keys of which nobody has the secret.
  expect([...(await keysOf('seen')), ...(await keysOf('unseen'))]).toMatchObject([
    { state: 'active' },
    { state: 'active' },
  ]);
});

test('deprecations report exits with the code that says whether a removal is safe', async () => {
  const { code, stdout, stderr } = await petstore('deprecations', 'report', 'getPet');
  expect([code, stdout, stderr]).toEqual([2, expect.stringMatching(/^getPet \(GET \/pets\/\{petId\}\), /), '']);
});

test('a command line may be longer than the header section of a usual request', async () => {
  const long = '"'.repeat(100_000);
  const { code, stderr } = await petstore('keys', 'revoke', '1', '--reason', long);
  expect([code, stderr]).toEqual([1, 'petstore: A reason has at most 500 characters.\n']);
  const repeated = await petstore('seed', '--count', long);
  expect([repeated.code, repeated.stderr]).toEqual([1, expect.stringContaining(`argument '${long}' is invalid`)]);
});

if (engine === 'embedded') {
  const socketPath = async (): Promise<string> => {
    const directory = database.settings.DATA_DIR ?? '';
    return join(directory, (await readdir(directory)).find((name) => name.endsWith('.lock')) ?? '');
  };

  /** Connects to the socket for commands, and sends a command as the program does. */
  async function send(...words: string[]): Promise<Socket> {
    const socket = connect(await socketPath());
    socket.write(`GET /${encodeURIComponent(JSON.stringify({ words }))} HTTP/1.1\r\nHost: service\r\n\r\n`);
    await once(socket, 'data');
    return socket;
  }

  test('move is refused while the service uses the database, and says how to stop it', async () => {
    const { code, stdout, stderr } = await petstore('move', '--to', 'postgresql://shop@127.0.0.1:1/shop');
    const process = /is in use by process (\d+)/.exec(stderr)?.[1];
    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      expect.stringMatching(
        new RegExp(
          `^petstore: DATA_DIR .+ is in use by process \\d+\\. Stop it, by Ctrl\\+C, 'kill ${process}' or its supervisor, or set another`,
        ),
      ),
    ]);
    expect((await client.get('/v1/pets')).status).toBe(200);
  });

  test('no other user may connect to the socket, and a socket of another user is refused', async () => {
    const path = await socketPath();
    expect(((await stat(path)).mode & 0o777).toString(8)).toBe('600');
    await giveAway(path);
    const { code, stderr } = await petstore('keys', 'list');
    await takeBack(path);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/belongs to another user\. Run the command as that user\.\n$/),
    ]);
  });

  test.each<[string, (response: ServerResponse) => void, Outcome]>([
    [
      'a terminal obeys nothing that the socket sends',
      (response) => {
        response.setHeader('Trailer', 'petstore-end');
        const end = { exitCode: 0, messages: '\x1b]0;a\x07b\n' };
        response.addTrailers({ 'petstore-end': encodeURIComponent(JSON.stringify(end)) });
        response.end('\x1b[31m\u{1f40e}\u009bA\r1\n');
      },
      { code: 0, stdout: '\\u001b[31m\u{1f40e}\\u009bA\\u000d1\n', stderr: '\\u001b]0;a\\u0007b\n' },
    ],
    [
      'nothing is printed of an answer that breaks off, and the exit code is 1',
      (response) => void response.write('pets_part', () => response.destroy()),
      { code: 1, stdout: '', stderr: 'petstore: The service ended before the command.\n' },
    ],
  ])('%s', async (_, respond, outcome) => {
    const directory = await mkdtemp(join(tmpdir(), 'petstore-foreign-'));
    const foreign = createServer((_request, response) => respond(response)).listen(join(directory, '1-a.lock'));
    await once(foreign, 'listening');
    expect(await petstoreCommand(tmpdir(), { DATA_DIR: directory }, 'keys', 'list')).toEqual(outcome);
    foreign.close();
    await rm(directory, { recursive: true, force: true });
  });

  test('a peer that sends no command does no harm', async () => {
    for (const line of ['hello', 'GET /%7b HTTP/1.1\r\nHost: service']) {
      const socket = connect(await socketPath()).on('error', () => undefined);
      socket.end(`${line}\r\n\r\n`).resume();
      await once(socket, 'close');
    }
    expect((await client.get('/v1/pets')).status).toBe(200);
  });

  test('requests are served while seed runs, and seed stops when its client disconnects', async () => {
    const socket = await send('seed', '--count', '1000000');
    for (let count = 0; count < 5; count++) expect((await client.get('/v1/pets')).status).toBe(200);
    socket.destroy();
    expect((await petstore('seed', '--count', '1')).stdout).toBe('Added 1 pets.\n');
    const { headers } = await client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
    expect(Number(/\d+$/.exec(headers.location ?? '')?.[0])).toBeLessThan(900_000);
  });

  test('a command that the service runs loads neither a framework nor the engine', async () => {
    // Node writes there which files it has loaded.
    const loaded = await mkdtemp(join(tmpdir(), 'petstore-loaded-'));
    const settings = { ...database.settings, NODE_V8_COVERAGE: loaded };
    expect((await petstoreCommand(tmpdir(), settings, 'keys', 'list')).code).toBe(0);
    const texts = await Promise.all((await readdir(loaded)).map((file) => readFile(join(loaded, file), 'utf8')));
    const urls = texts.flatMap((text) => [...text.matchAll(/"url":"file:[^"]*?\/((?:dist|node_modules)\/[^"]*)"/g)]);
    const files = urls.map(([, path = '']) => path);
    expect(files).toContain('dist/libs/commands/src/service-client.js');
    expect(files.filter((path) => /@nestjs\/common\/index|typeorm|\/pg\/|pglite\/|express|pino/.test(path))).toEqual(
      [],
    );
    await rm(loaded, { recursive: true });
  });

  test('a client that does not read the end of its command does not delay the stop of the service', async () => {
    // The command fails with its argument in the message, which fills the kernel's buffers.
    const socket = await send('seed', '--count', '"'.repeat(1_000_000));
    socket.pause();
    expect(await service.stop('SIGTERM')).toBe(0);
    socket.destroy();
  });
}
