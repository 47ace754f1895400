/**
 * Takes parts out of a copy of the repository, and shows that the rest works:
 *
 *   npm run demolish -- [part ...]
 *
 * Without names, each part in turn, and then all of them at once. A part goes with its import and its word in the list of
 * src/app.description.ts, its folder, and its rows of the contract.
 * The rest must compile, and the service built from it must keep the contract.
 */
import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync } from 'node:fs';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

/** Longest time in ms that a service needs to start. */
const START_TIMEOUT_MS = 60_000;

/** As many libraries are deleted at the same time, each from a copy of its own. */
const AT_ONCE = 2;

const root = join(import.meta.dirname, '..');
const read = (path) => readFileSync(join(root, path), 'utf8');
/** The rows of the contract that the pages keep. */
const OF_PAGES =
  /^(GET \/ \[Auth.*302|GET \/docs\/‹ ¦ guide|GET ‹\/docs ¦ |(then )?GET ‹\/openapi\.json|GET \/docs\/deprecations|GET \/‹docs\/assets\/reference%2E).*\n/gm;

const DEFINITION = 'src/app.description.ts';
const IMPORT = /^import \{ (\w+) \} from '#([\w-]+)';\n/gm;

/** The parts that the service uses, by their folders. */
const WORDS = new Map(
  [...read(DEFINITION).matchAll(IMPORT)]
    .filter(([, , library]) => existsSync(join(root, 'libs', library, 'src/part.ts')))
    .map(([, word, library]) => [library, word]),
);
const OPTIONAL = [...WORDS.keys()];

/** The definition of the service without some parts. */
function definitionWithout(libraries) {
  const words = libraries.map((library) => WORDS.get(library));
  return read(DEFINITION)
    .replace(IMPORT, (line, word) => (words.includes(word) ? '' : line))
    .replace(/(?<= parts: \[).*?(?=\])/s, (list) =>
      list
        .split(',')
        .filter((word) => !words.includes(word.trim()))
        .join(','),
    );
}

/** Runs a command in a folder. Throws an error with its output if it fails. */
async function run(folder, command, args, env = {}) {
  try {
    const options = { cwd: folder, env: { ...process.env, ...env }, maxBuffer: 10_000_000 };
    return (await promisify(execFile)(command, args, options)).stdout;
  } catch (error) {
    throw new Error(`${args.join(' ')} has failed:\n${error.stdout}${error.stderr}`, { cause: error });
  }
}

/** Compiles the sources of a folder. Compiles only what has changed if it was compiled before. */
async function compile(folder) {
  const options = ['-p', 'tsconfig.build.json', '--incremental', '--tsBuildInfoFile', 'dist/build-info'];
  await run(folder, process.execPath, ['node_modules/typescript/bin/tsc', ...options]);
  for (const assets of ['docs', 'libs/docs-pages/src/browser']) {
    if (existsSync(join(folder, assets)))
      cpSync(join(folder, assets), join(folder, 'dist', assets), { recursive: true });
  }
}

/** The keys that rows of the contract need, by their variables. */
async function createKeys(folder, env) {
  const create = (...args) =>
    run(folder, process.execPath, ['dist/src/cli.js', 'keys', 'create', '--quiet', ...args], env);
  const all = ['--client', 'contract', '--scopes', 'pets:read,pets:write'];
  const keys = {
    key: await create(...all),
    second: await create(...all),
    other: await create('--client', 'other'),
    reader: await create('--client', 'contract', '--scopes', 'pets:read'),
    metrics: await create('--client', 'contract', '--scopes', 'metrics:read'),
    expired: await create('--client', 'contract', '--expires', '1s'),
    revoked: await create('--client', 'contract'),
  };
  const secrets = Object.fromEntries(Object.entries(keys).map(([name, secret]) => [name, secret.trim()]));
  await run(folder, process.execPath, ['dist/src/cli.js', 'keys', 'revoke', secrets.revoked.slice(0, 12)], env);
  return secrets;
}

/** Judges the service of a folder by the rows of the contract that are left there. Returns what the runner prints. */
async function judge(folder, env, { key, ...others }, port) {
  const service = spawn(process.execPath, ['dist/src/main.js'], { cwd: folder, env: { ...process.env, ...env } });
  let output = '';
  for (const stream of [service.stdout, service.stderr]) stream.on('data', (text) => (output += text));
  const ended = new Promise((done) => service.once('close', done));
  try {
    const url = `http://127.0.0.1:${port}`;
    const isUp = () =>
      fetch(`${url}/health/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    for (const deadline = Date.now() + START_TIMEOUT_MS; !(await isUp()); await sleep(100)) {
      if (service.exitCode !== null || Date.now() > deadline) {
        throw new Error(`The service does not start:\n${output}`);
      }
    }
    const keys = Object.entries(others).flatMap(([name, secret]) => ['--let', `${name}=${secret}`]);
    const address = ['--url', url, '--base', `http://localhost:${port}/v1`, '--key', key];
    const loader = ['--import', './test/support/register-typescript.js', 'contract/run.ts'];
    return await run(folder, process.execPath, [...loader, ...address, ...keys]);
  } finally {
    service.kill();
    await ended;
  }
}

/** Deletes libraries from a new copy of a compiled folder, compiles the rest and judges it. Returns what the runner prints. */
async function judgeWithout(libraries, whole, env, keys, port) {
  const copy = `${whole}-${libraries.length > 1 ? 'all' : libraries[0]}`;
  cpSync(whole, copy, { recursive: true, verbatimSymlinks: true });
  for (const library of libraries) {
    for (const folder of ['libs', 'dist/libs']) rmSync(join(copy, folder, library), { recursive: true, force: true });
  }
  writeFileSync(join(copy, DEFINITION), definitionWithout(libraries));
  if (libraries.includes('docs-pages')) {
    const rows = readFileSync(join(copy, 'contract/requests.ts'), 'utf8');
    writeFileSync(join(copy, 'contract/requests.ts'), rows.replace(OF_PAGES, ''));
  }
  await compile(copy);
  const verdict = await judge(copy, { ...env, PORT: String(port) }, keys, port);
  rmSync(copy, { recursive: true });
  return verdict;
}

async function main(names) {
  const unknown = names.filter((name) => !OPTIONAL.includes(name));
  if (unknown.length > 0) throw new Error(`Not optional: ${unknown.join(', ')}. Optional are ${OPTIONAL.join(', ')}.`);
  const { startPostgresqlServer } = await import('../test/support/postgresql-server.ts');
  const { freePort } = await import('../test/support/programs.ts');
  // TypeScript names files by their real path.
  const copies = realpathSync(mkdtempSync(join(tmpdir(), 'petstore-demolish-')));
  process.once('exit', () => rmSync(copies, { recursive: true, force: true }));
  const whole = join(copies, 'whole');
  const leftOut = /\/(\.data|\.git|built|coverage|dist|node_modules)$/;
  cpSync(root, whole, { recursive: true, filter: (path) => path === root || !leftOut.test(path) });
  symlinkSync(join(root, 'node_modules'), join(whole, 'node_modules'));
  const server = await startPostgresqlServer();
  try {
    await compile(whole);
    const env = { DATABASE_URL: server.url, REQUEST_TIMEOUT_MS: '1500', LOG_LEVEL: 'silent' };
    await run(whole, process.execPath, ['dist/src/cli.js', 'migrate'], env);
    const keys = await createKeys(whole, env);
    const waiting = (names.length > 0 ? names : OPTIONAL).map((name) => [name]);
    if (names.length === 0) waiting.push(OPTIONAL);
    const work = async () => {
      for (let libraries = waiting.shift(); libraries !== undefined; libraries = waiting.shift()) {
        const beginning = performance.now();
        const verdict = await judgeWithout(libraries, whole, env, keys, await freePort());
        const seconds = ((performance.now() - beginning) / 1000).toFixed(0);
        const name = libraries.length > 1 ? 'all of them' : libraries[0];
        process.stdout.write(`${name.padEnd(18)}${seconds.padStart(4)} s. ${verdict}`);
      }
    };
    // All of them end before their database does.
    const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
    const failed = ends.find(({ status }) => status === 'rejected');
    if (failed) throw failed.reason;
  } finally {
    await server.stop();
  }
}

if (process.argv[1] === import.meta.filename) await main(process.argv.slice(2));
