/**
 * Tests `examples/orders` as a separate project, made by the commands of docs/extending.md in a temporary folder: packs the
 * service, installs the package, and builds, lints, tests, starts and migrates the project, without access to the repository.
 * Needs the registry of npm or its cache.
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const START_TIMEOUT_MS = 60_000;

const [pack, begin] = commandsOf('### How do I begin?');
if (pack[0] !== 'npm ci && npm run package') throw new Error(`docs/extending.md begins with: ${pack[0]}`);

const workshop = mkdtempSync(join(tmpdir(), 'petstore-example-'));
try {
  const checkout = join(workshop, 'petstore-service');
  cpSync(join(ROOT, 'examples'), join(checkout, 'examples'), {
    recursive: true,
    filter: (path) => !/[/\\](dist|node_modules|package-lock\.json)$/.test(path),
  });
  step('pack');
  run(ROOT, 'npm', 'run', '--silent', 'package', '--', checkout);
  await testProject(join(workshop, 'orders'));
} finally {
  rmSync(workshop, { recursive: true, force: true });
}

/** The commands of each block in a section of docs/extending.md. */
function commandsOf(title) {
  const section = readFileSync(join(ROOT, 'docs/extending.md'), 'utf8').split(`${title}\n`)[1].split('\n##')[0];
  return [...section.matchAll(/```sh\n(.*?)\n```/gs)].map(([, block]) => block.split('\n'));
}

/** Makes a project by the commands of the page, and tries it. */
async function testProject(directory) {
  mkdirSync(directory);
  const start = begin.at(-1);
  for (const command of begin.slice(0, -1)) {
    step(command);
    run(directory, 'bash', '-c', command);
  }
  step('no install script of @scarf/scarf');
  // Runs the script unless package.json forbids it; npm before 11 knows no allowScripts.
  const rebuild = 'out=$(npm rebuild --foreground-scripts @scarf/scarf 2>&1) && ! grep postinstall <<<"$out"';
  run(directory, 'bash', '-c', rebuild);
  step('one copy of each framework');
  const manifest = readFileSync(join(directory, 'node_modules/petstore-service/package.json'), 'utf8');
  const all = readdirSync(join(directory, 'node_modules'), { recursive: true });
  // Generators of code have copies of their own, which the service never loads.
  const installed = all.filter((path) => !/^(@angular-devkit|@nestjs[/\\]schematics)[/\\]/.test(path));
  const { peerDependencies, peerDependenciesMeta } = JSON.parse(manifest);
  for (const framework of Object.keys(peerDependencies)) {
    const copies = installed.filter((path) =>
      `/node_modules/${path}`.endsWith(`/node_modules/${framework}/package.json`),
    );
    const isMissing = copies.length === 0 && peerDependenciesMeta[framework]?.optional;
    if (copies.length !== 1 && !isMissing) throw new Error(`There are these copies of ${framework}: ${copies.join()}`);
  }
  step('lint');
  run(directory, join(ROOT, 'node_modules/.bin/eslint'), '--config', join(ROOT, 'eslint.config.js'), 'src', 'test');
  step('files that are not exported cannot be imported');
  expectRefused(directory, 'petstore-service/dist/src/app.module.js');
  expectRefused(directory, 'petstore-service/src/app.module.js');
  expectRefused(directory, 'petstore-service/parts/postgres', 'ERR_MODULE_NOT_FOUND');
  step('test');
  run(directory, 'npm', 'test', '--silent');
  step(start);
  await expectStart(directory, start);
  step('the commands');
  const orders = (...words) => run(directory, 'npm', 'run', '--silent', 'orders', '--', ...words);
  orders('migrate:status', { status: 1 });
  orders('migrate');
  orders('migrate:status');
  orders('keys', 'create', '--client', 'shop', '--scopes', 'orders:read', '--quiet');
  // The exit code of a refused command passes through npm.
  orders('keys', 'create', '--client', 'shop', '--scopes', 'orders:read,', { status: 1 });
  step('another feature');
  run(directory, 'npm', 'run', '--silent', 'generate:feature', '--', 'returned-parcels');
  run(directory, join(ROOT, 'node_modules/.bin/eslint'), '--config', join(ROOT, 'eslint.config.js'), 'src', 'test');
  run(directory, 'npm', 'run', '--silent', 'build');
  run(directory, process.execPath, '--test', 'dist/test/returned-parcels.test.js');
}

function step(text) {
  process.stdout.write(`--- ${text}\n`);
}

/** Runs a command, whose output is that of this process. Its last argument may be an object with the expected exit code. */
function run(cwd, command, ...args) {
  const { status: expected } = typeof args.at(-1) === 'object' ? args.pop() : { status: 0 };
  // Without npm's variables of this project, as in a separate project.
  const own = Object.entries(process.env).filter(([name]) => !/^npm_(package|lifecycle|command)_?/.test(name));
  const env = { ...Object.fromEntries(own), npm_config_prefer_offline: 'true' };
  const { status, error } = spawnSync(command, args, { cwd, stdio: ['ignore', 1, 2], env });
  if (status !== expected) {
    throw new Error(`${command} ${args.join(' ')} ended with ${status}, not ${expected}.`, { cause: error });
  }
}

function expectRefused(cwd, path, reason = 'ERR_PACKAGE_PATH_NOT_EXPORTED') {
  const code = `import('${path}').then(() => process.exit(0), ({ code }) => process.exit(code === '${reason}' ? 42 : 1))`;
  run(cwd, process.execPath, '--input-type=module', '--eval', code, { status: 42 });
}

/** Starts the service, on an empty database, asks it whether it is ready, and stops it. */
async function expectStart(cwd, command) {
  const env = { PATH: process.env.PATH, PORT: '0', HOST: '127.0.0.1', DATA_DIR: join(workshop, 'data') };
  const service = spawn('bash', ['-c', `exec ${command}`], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((resolve) => service.once('close', resolve));
  try {
    const origin = await addressOf(service);
    const { paths } = await (await fetch(`${origin}/openapi.json`)).json();
    if (Object.keys(paths).join() !== '/orders') throw new Error(`The paths are ${Object.keys(paths).join()}.`);
    const { status } = await fetch(`${origin}/health/ready`);
    if (status !== 200) throw new Error(`/health/ready returned ${status}.`);
    service.kill('SIGTERM');
    const code = await ended;
    if (code !== 0) throw new Error(`The service ended with ${code}.`);
  } finally {
    service.kill('SIGKILL');
  }
}

function addressOf(service) {
  return new Promise((resolve, reject) => {
    let text = '';
    const fail = () => reject(new Error(`The service does not start:\n${text}`));
    setTimeout(fail, START_TIMEOUT_MS).unref();
    service.once('close', fail);
    service.stderr.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
      const port = /listens on http:\/\/localhost:(\d+)\/v1\n/.exec(text)?.[1];
      if (port !== undefined) resolve(`http://127.0.0.1:${port}`);
    });
  });
}
