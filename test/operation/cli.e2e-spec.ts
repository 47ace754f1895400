import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '#postgres';
import { MIGRATIONS, readConfig } from '../support/config.js';
import {
  createEmptyTestDatabase,
  createTestDatabase,
  engine,
  testOnce,
  type TestDatabase,
} from '../support/database.js';
import { ServiceProcess } from '../support/service-process.js';
import { type Outcome, petstoreCommand } from './support/petstore-command.js';

/*
 * The petstore command as a process. Tests check several commands each, because every command is a slow start.
 */

// Each test starts several processes. Each start takes a second, or many on a busy machine.
import.meta.jest.setTimeout(120_000);

/** How a process that npm has not started says that commands are run. */
const CLI = `node ${join(import.meta.dirname, '../../dist/src/cli.js')}`;

let database: TestDatabase;
/** Working directory of the processes; it has no `.env`. */
const home = mkdtempSync(join(tmpdir(), 'petstore-cli-'));
beforeAll(async () => (database = await createTestDatabase()));
afterAll(async () => {
  await database.drop();
  await rm(home, { recursive: true });
});

const petstoreOn = (settings: Readonly<Record<string, string>>, ...args: string[]): Promise<Outcome> =>
  petstoreCommand(home, settings, ...args);

const petstore = (...args: string[]): Promise<Outcome> => petstoreOn(database.settings, ...args);

/** Operators run commands that change the schema as its owner, and all others with the service's role. */
const settingsFor = ({ ownerSettings, settings }: TestDatabase, command = ''): Readonly<Record<string, string>> =>
  ['migrate', 'migrate:revert'].includes(command) ? ownerSettings : settings;

test('migrate, migrate:status and migrate:revert change the schema and report its state', async () => {
  const empty = await createEmptyTestDatabase();
  const run = (...args: string[]): Promise<Outcome> => petstoreOn(settingsFor(empty, args[0]), ...args);

  const before = await run('migrate:status', '--json');
  const names = (JSON.parse(before.stdout) as { name: string }[]).map(({ name }) => name);
  expect([before.code, before.stderr, names.length > 0]).toEqual([
    1,
    expect.stringMatching(`^petstore: The database schema is empty\\. Run '${CLI} migrate'\\. .+\n$`),
    true,
  ]);
  const planned = await run('migrate', '--dry-run');
  expect(planned.code).toBe(0);
  const migrated = await run('migrate');
  expect(migrated.code).toBe(0);
  // The embedded engine migrates when it is opened.
  if (engine === 'postgresql') {
    for (const name of names) expect(planned.stdout).toMatch(new RegExp(`^pending, compatible +- +${name}$`, 'm'));
    expect(migrated.stdout).toBe(`Applied migrations: ${names.length}.\n`);
    expect(migrated.stderr).toBe(names.map((name, index) => `${index + 1}/${names.length} ${name}\n`).join(''));
  }
  for (const command of [['migrate'], ['migrate', '--dry-run']]) {
    expect(await run(...command)).toEqual({ code: 0, stdout: 'The schema is current.\n', stderr: '' });
  }
  const after = await run('migrate:status');
  expect(after.code).toBe(0);
  for (const name of names) expect(after.stdout).toMatch(new RegExp(`^applied +\\d{4}-\\S+Z +${name}$`, 'm'));

  expect((await run('migrate:revert')).stdout).toBe(`Reverted ${names.at(-1)}.\n`);
  const pending = await run('migrate:status');
  expect([pending.code, pending.stdout.match(/^pending, compatible +- /gm)]).toEqual([1, [expect.any(String)]]);
  await empty.drop();
}, 90_000);

test('seed adds as many pets as --count says', async () => {
  expect(await petstore('seed', '--count', '25000')).toEqual({ code: 0, stdout: 'Added 25000 pets.\n', stderr: '' });
  const dataSource = await openDatabase(readConfig(database.ownerSettings), MIGRATIONS);
  expect(await dataSource.query('SELECT count(*)::int FROM pet')).toEqual([{ count: 25_000 }]);
  await dataSource.destroy();
});

testOnce.each([
  ['openapi', 'openapi.json'],
  ['settings', '.env.example'],
])('%s prints %s as it is checked in, without a database', async (command, file) => {
  const settings = { DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none' };
  const { code, stdout, stderr } = await petstoreOn(settings, command);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toBe(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'));
});

const INTEGER = 'It must be an integer between 1 and';
const DURATION = 'It must be a duration such as 30s, 15m, 24h or 90d, at most 36500d.';

// The following tests do not depend on the engine.
if (engine === 'postgresql') {
  test.each([
    [['seed', '--count', '0'], `option '--count <n>' argument '0' is invalid. ${INTEGER} 1000000000.`],
    [
      ['keys', 'create', '--client', 'x', '--expires', '36501d'],
      `option '--expires <duration>' argument '36501d' is invalid. ${DURATION}`,
    ],
    [['migrat\x1b]0;a\x07\u202e'], `unknown command 'migrat\\u001b]0;a\\u0007\\u202e'`],
    [['pets_'.padEnd(54, 'x')], `unknown command 'pets_xxxxxxx…'`],
    [['move'], `required option '--to <URL>' not specified`],
    [['keys', 'create', '--client', 'x', '--scopes', 'pets:read,'], /^'' is no scope; /],
    [
      ['deprecations', 'report', 'getPet', '--days', '1e3'],
      `option '--days <n>' argument '1e3' is invalid. ${INTEGER} 400.`,
    ],
    [
      ['keys', 'rotate', '1', '--overlap', '-1h'],
      `option '--overlap <duration>' argument '-1h' is invalid. ${DURATION}`,
    ],
    [['migrat'], `unknown command 'migrat' (Did you mean migrate?)`],
    [['keys', 'revoke', '1', '2'], "too many arguments for 'revoke'. Expected 1 argument but got 2."],
    [['deprecations', 'report', 'none'], /^'none' is no deprecated operation; deprecated are: .+\.$/],
  ])('%j fails with one line, which says what is wrong', async (args, expected) => {
    const { code, stdout, stderr } = await petstore(...args);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/^petstore: .+\n$/)]);
    const message = stderr.slice('petstore: '.length, -1);
    if (typeof expected === 'string') expect(message).toBe(expected);
    else expect(message).toMatch(expected);
  });

  test('help prints commands as they are typed here: by npm, or by the file that runs', async () => {
    const [none, nested, byNpm] = [
      await petstore(),
      await petstore('keys', 'help', 'create'),
      await petstoreOn({ npm_lifecycle_event: 'petstore' }, 'keys', 'list', '--help'),
    ];
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining(`Usage: ${CLI} [options] [command]\n`)]);
    expect([nested.code, nested.stdout]).toEqual([0, expect.stringContaining(`Usage: ${CLI} keys create [options]\n`)]);
    expect(byNpm.stdout).toContain('Usage: npm run petstore -- keys list [options]\n');
  });

  test('npx finds the command in the repository, and help says so', () => {
    const { stdout } = spawnSync('npx', ['--no', 'petstore', 'keys', '--help'], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
    });
    expect(stdout).toContain('Usage: npx --no petstore keys [options] [command]\n');
  });
}

if (engine === 'embedded') {
  test('no command makes a database in another directory unless it is told to', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'petstore-elsewhere-'));
    const run = (...args: string[]): Promise<Outcome> => petstoreCommand(elsewhere, {}, ...args);
    for (const [command, advice] of [
      ['keys create --client x', '--new-database makes a new one.'],
      ['seed --count 1', '--new-database makes a new one.'],
      ['keys list', `'${CLI} migrate' makes a new one.`],
      ['deprecations report getPet', `'${CLI} migrate' makes a new one.`],
      ['migrate --dry-run', `'${CLI} migrate' makes a new one.`],
      ['migrate:status', `'${CLI} migrate' makes a new one.`],
      ['migrate:revert', `'${CLI} migrate' makes a new one.`],
    ] as const) {
      const { code, stdout, stderr } = await run(...command.split(' '));
      expect([command, code, stdout]).toEqual([command, 1, '']);
      expect(stderr).toMatch(/^petstore: DATA_DIR '.+\/\.data' has no database, and none was made\. .+\n$/);
      expect(stderr).toContain(advice);
      expect(await readdir(elsewhere)).toEqual([]);
    }
    const { code, stdout, stderr } = await run('keys', 'create', '--client', 'x', '--quiet', '--new-database');
    expect([code, stdout, stderr]).toEqual([
      0,
      expect.stringMatching(/^pets_\w{49}\n$/),
      expect.stringMatching(/^Making a new database in DATA_DIR '.+\/\.data'\.\n$/),
    ]);
    await rm(elsewhere, { recursive: true });
  });

  test('commands that meet on a database wait for each other, and so does a start of the service', async () => {
    const service = new ServiceProcess({ ...database.settings, BOOTSTRAP_API_KEY: 'bootstrap-key-of-the-tests' }, home);
    const commands = ['a', 'b', 'c'].map((client) => petstore('keys', 'create', '--client', client, '--quiet'));
    const outcomes = await Promise.all(commands);
    await service.origin();
    await service.stop('SIGTERM');
    for (const { code, stdout, stderr } of outcomes) {
      expect([code, stdout, stderr]).toEqual([0, expect.stringMatching(/^pets_\w{49}\n$/), '']);
    }
  });
}
