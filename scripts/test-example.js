/**
 * Tests `examples/orders` as a separate project, made by the commands of docs/extending.md in a temporary folder: packs the
 * service, installs the package, and builds, lints, tests, starts and migrates the project and its image, without access to the
 * repository.
 * Needs the registry of npm or its cache.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import '../test/support/register-typescript.js';

const { assemble, commandOf } = await import('../test/ship/support/dockerfile.ts');

const ROOT = join(import.meta.dirname, '..');
const START_TIMEOUT_MS = 180_000;

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
  const project = join(workshop, 'orders');
  await testProject(project);
  await testImage(project);
  await testOwnFeature(project);
  testScope(project);
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
  expectRefused(directory, 'petstore-service/parts/postgres');
  step('test');
  run(directory, 'npm', 'test', '--silent');
  step(start);
  await expectStart(directory, start, '/orders');
  step('the commands');
  const orders = (...words) => run(directory, 'npm', 'run', '--silent', 'orders', '--', ...words);
  orders('migrate:status', { status: 1 });
  orders('migrate');
  orders('migrate:status');
  orders('keys', 'create', '--client', 'shop', '--scopes', 'orders:read', '--quiet');
  // The exit code of a refused command passes through npm.
  orders('keys', 'create', '--client', 'shop', '--scopes', 'orders:read,', { status: 1 });
  run(directory, 'npx', '--no', 'petstore', '--help');
  step('another feature');
  run(directory, 'npm', 'run', '--silent', 'generate:feature', '--', 'returned-parcels');
  run(directory, join(ROOT, 'node_modules/.bin/eslint'), '--config', join(ROOT, 'eslint.config.js'), 'src', 'test');
  run(directory, 'npm', 'run', '--silent', 'build');
  run(directory, process.execPath, '--test', 'dist/test/returned-parcels.test.js');
  step('types of Express, as the samples of docs/extending.md need them');
  const probe = `import type { Request } from 'express';\nexport const pathOf = ({ path }: Request): string => path;\n`;
  writeFileSync(join(directory, 'src/probe.ts'), probe);
  run(directory, 'npx', 'tsc', '--noEmit');
  rmSync(join(directory, 'src/probe.ts'));
}

/** Executes the Dockerfile of the project in folders, and starts what it makes. */
async function testImage(directory) {
  step('the image');
  const app = join(assemble(join(workshop, 'image'), directory), 'app');
  for (const name of ['typescript', 'rolldown', '@nestjs/testing']) {
    if (existsSync(join(app, 'node_modules', name))) throw new Error(`The image has ${name}.`);
  }
  const command = ['ENTRYPOINT', 'CMD'].flatMap((name) => commandOf(name, directory)).join(' ');
  await expectStart(app, command, '/orders', '/returned-parcels');
}

/** The first step of "Make it yours" in docs/extending.md; another version of one of the platform's packages beside it. */
async function testOwnFeature(directory) {
  step('make it yours');
  const [, sentence, name] = /1\. Delete (.*?),? and `(\w+)` in `src\/app\.module\.ts`\./.exec(
    read(ROOT, 'docs/extending.md'),
  );
  const paths = [...sentence.matchAll(/`([^`]+)`/g)].map(([, path]) => path);
  for (const path of [...paths, 'src/returned-parcels'])
    rmSync(join(directory, path), { recursive: true, force: true });
  for (const module of [name, 'ReturnedParcelsModule']) {
    const without = new RegExp(`^import .*\\b${module}\\b.*\\n|, ${module}\\b`, 'gm');
    change(directory, 'src/app.module.ts', (text) => text.replaceAll(without, ''));
  }
  run(directory, 'npm', 'run', '--silent', 'generate:feature', '--', 'kennels');
  const modules = join(directory, 'node_modules');
  mkdirSync(join(modules, 'petstore-service/node_modules'), { recursive: true });
  renameSync(join(modules, 'dotenv'), join(modules, 'petstore-service/node_modules/dotenv'));
  mkdirSync(join(modules, 'dotenv'));
  writeFileSync(join(modules, 'dotenv/index.js'), `throw new Error('another version');\n`);
  run(directory, 'npm', 'run', '--silent', 'build');
  run(directory, 'npm', 'test', '--silent');
  await expectStart(directory, 'npm start', '/kennels');
}

/** The same package under the name that a fork gives it. */
function testScope(directory) {
  step('a scope');
  const modules = join(directory, 'node_modules');
  mkdirSync(join(modules, '@acme'));
  renameSync(join(modules, 'petstore-service'), join(modules, '@acme/petstore-service'));
  const rename = (text) => text.replaceAll(/(['" ])petstore-service(?!-)/g, '$1@acme/petstore-service');
  change(directory, 'node_modules/@acme/petstore-service/package.json', rename);
  change(directory, 'package.json', (text) =>
    rename(text).replace('bundle-service', 'node node_modules/@acme/petstore-service/scripts/bundle.js'),
  );
  for (const path of ['src', 'test'].flatMap((folder) =>
    readdirSync(join(directory, folder), { recursive: true }).map((name) => join(folder, name)),
  )) {
    if (path.endsWith('.ts')) change(directory, path, rename);
  }
  run(directory, 'npm', 'run', '--silent', 'generate:feature', '--', 'gift-boxes');
  run(directory, 'npm', 'run', '--silent', 'build');
  run(directory, process.execPath, '--test', 'dist/test/gift-boxes.test.js');
}

function read(directory, path) {
  return readFileSync(join(directory, path), 'utf8');
}

function change(directory, path, edit) {
  writeFileSync(join(directory, path), edit(read(directory, path)));
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

function expectRefused(cwd, path) {
  const refused = "code === 'ERR_PACKAGE_PATH_NOT_EXPORTED'";
  const code = `import('${path}').then(() => process.exit(0), ({ code }) => process.exit(${refused} ? 42 : 1))`;
  run(cwd, process.execPath, '--input-type=module', '--eval', code, { status: 42 });
}

/** Starts the service, on an empty database, asks it whether it is ready, and stops it. */
async function expectStart(cwd, command, ...expected) {
  const data = mkdtempSync(join(workshop, 'data-'));
  const env = { PATH: process.env.PATH, PORT: '0', HOST: '127.0.0.1', DATA_DIR: join(data, 'service') };
  const service = spawn('bash', ['-c', `exec ${command}`], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((resolve) => service.once('close', resolve));
  try {
    const origin = await addressOf(service);
    const { paths } = await (await fetch(`${origin}/openapi.json`)).json();
    const documented = Object.keys(paths).filter((path) => !path.includes('{'));
    if (documented.join() !== expected.join()) throw new Error(`The paths are ${documented.join()}.`);
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
