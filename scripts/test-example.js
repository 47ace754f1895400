/**
 * Tests `examples/` as separate projects: packs the service, installs the package into a copy of each example in a
 * temporary folder, and builds, lints, tests, migrates and starts the example there, without access to the repository.
 * Needs a build, and the registry of npm or its cache.
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const START_TIMEOUT_MS = 60_000;

if (!existsSync(join(ROOT, 'dist/src/package/index.d.ts'))) {
  process.stderr.write('There is no build. Run: npm run build\n');
  process.exit(1);
}

const workshop = mkdtempSync(join(tmpdir(), 'petstore-examples-'));
try {
  run(ROOT, process.execPath, 'scripts/pack.js', workshop);
  const [archive] = readdirSync(workshop);
  for (const name of readdirSync(join(ROOT, 'examples'))) await testExample(name, join(workshop, archive));
} finally {
  rmSync(workshop, { recursive: true, force: true });
}

async function testExample(name, archive) {
  const directory = join(workshop, name);
  cpSync(join(ROOT, 'examples', name), directory, {
    recursive: true,
    filter: (path) => !/[/\\](dist|node_modules|package-lock\.json)$/.test(path),
  });
  step(`${name}: install`);
  run(directory, 'npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', archive);
  step(`${name}: one copy of each framework`);
  const manifest = readFileSync(join(directory, 'node_modules/petstore-service/package.json'), 'utf8');
  const installed = readdirSync(join(directory, 'node_modules'), { recursive: true });
  for (const framework of Object.keys(JSON.parse(manifest).peerDependencies)) {
    const copies = installed.filter((path) =>
      `/node_modules/${path}`.endsWith(`/node_modules/${framework}/package.json`),
    );
    if (copies.length !== 1) throw new Error(`There are these copies of ${framework}: ${copies.join()}`);
  }
  step(`${name}: build`);
  run(directory, 'npm', 'run', '--silent', 'build');
  step(`${name}: lint`);
  run(directory, join(ROOT, 'node_modules/.bin/eslint'), '--config', join(ROOT, 'eslint.config.js'), 'src', 'test');
  step(`${name}: files that are not exported cannot be imported`);
  expectRefused(directory, 'petstore-service/dist/src/app.module.js');
  expectRefused(directory, 'petstore-service/src/app.module.js');
  step(`${name}: test`);
  run(directory, 'npm', 'test', '--silent');
  step(`${name}: migrate, and start`);
  const petstore = (...words) => run(directory, 'npm', 'run', '--silent', 'petstore', '--', ...words);
  petstore('migrate:status', { status: 1 });
  petstore('migrate');
  petstore('migrate:status');
  petstore('keys', 'create', '--client', 'shop', '--scopes', 'orders:read', '--quiet');
  // The exit code of a refused command passes through npm.
  petstore('keys', 'create', '--client', 'shop', '--scopes', 'orders:read,', { status: 1 });
  await expectStart(directory);
}

function step(text) {
  process.stdout.write(`--- ${text}\n`);
}

/** Runs a command, whose output is that of this process. Its last argument may be an object with the expected exit code. */
function run(cwd, command, ...args) {
  const { status: expected } = typeof args.at(-1) === 'object' ? args.pop() : { status: 0 };
  // Without npm's variables of this project, as in a separate project.
  const own = Object.entries(process.env).filter(([name]) => !/^npm_(package|lifecycle|command)_?/.test(name));
  const { status, error } = spawnSync(command, args, { cwd, stdio: ['ignore', 1, 2], env: Object.fromEntries(own) });
  if (status !== expected) {
    throw new Error(`${command} ${args.join(' ')} ended with ${status}, not ${expected}.`, { cause: error });
  }
}

function expectRefused(cwd, path) {
  const code = `import('${path}').then(() => process.exit(0), ({ code }) => process.exit(code === 'ERR_PACKAGE_PATH_NOT_EXPORTED' ? 42 : 1))`;
  run(cwd, process.execPath, '--input-type=module', '--eval', code, { status: 42 });
}

/** Starts the service of an example, asks it whether it is ready, and stops it. */
async function expectStart(cwd) {
  const env = { PATH: process.env.PATH, PORT: '0', HOST: '127.0.0.1' };
  const service = spawn(process.execPath, ['dist/src/main.js'], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((resolve) => service.once('close', resolve));
  try {
    const origin = await addressOf(service);
    const { status } = await fetch(`${origin}/health/ready`);
    if (status !== 200) throw new Error(`/health/ready was answered ${status}.`);
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
