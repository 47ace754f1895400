import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const CHECK = join(ROOT, 'scripts/check-system.cjs');
const { engines, scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  engines: { node: string };
  scripts: Record<string, string>;
};

const folder = mkdtempSync(join(tmpdir(), 'petstore-check-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ...['0.10.48', '18.20.8', '20.18.3', '21.7.3', '22.12.0', '24.10.0'].map((version) => [version, 'old'] as const),
  ...['20.19.0', '20.20.2', '22.13.0', '24.11.0', '25.0.0', '26.1.0-nightly'].map((version) => [version, ''] as const),
])('Node.js %s is refused with one line if it is too old: %s', (version, old) => {
  const pretend =
    `Object.defineProperty(process, 'version', { value: 'v${version}' });` +
    `Object.defineProperty(process.versions, 'node', { value: '${version}' });`;
  const script = `${pretend} require(${JSON.stringify(CHECK)});`;
  const { status, stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', env: {} });
  const advice = `Install Node.js ${engines.node} (https://nodejs.org).`;
  const line = `petstore: Node.js v${version} does not run this service. ${advice}\n`;
  expect([status, stderr]).toEqual(old ? [1, line] : [0, '']);
});

test.each([
  [200, [1, 'petstore: The limit of open files is 200, too small to load the service. Raise it (ulimit -n 20000).\n']],
  [512, [0, '']],
])('a limit of %d open files is refused if it is too small to load the service', (limit, expected) => {
  const args = ['-c', `ulimit -n ${limit} && exec "$0" "$1"`, process.execPath, CHECK];
  const { status, stderr } = spawnSync('sh', args, { encoding: 'utf8' });
  expect([status, stderr]).toEqual(expected);
});

test.each(['bundle/main', 'src/main', 'src/cli'])('%s.js runs the check before it loads the service', (name) => {
  const pretend = "data:text/javascript,Object.defineProperty(process.versions, 'node', { value: '18.20.8' });";
  const program = join(ROOT, `dist/${name}.js`);
  const { stderr } = spawnSync(process.execPath, ['--import', pretend, program], { encoding: 'utf8', env: {} });
  expect(stderr).toMatch(/^petstore: Node\.js .+ does not run this service\. .+\n$/);
  expect(readFileSync(program, 'utf8')).not.toMatch(/^import .*['"]\.\.?\//m);
});

test('npm start and npm run petstore run the check first, and npm ci refuses an old Node.js', () => {
  for (const name of ['start', 'petstore']) {
    expect([name, scripts[name]]).toEqual([name, expect.stringMatching(/^node scripts\/check-system\.cjs && /)]);
  }
  expect(readFileSync(join(ROOT, '.npmrc'), 'utf8')).toContain('engine-strict=true');
});

test('without the packages for development, as before npm ci, a script that needs them fails with the command that installs them', () => {
  for (const name of ['build', 'lint', 'format', 'check:types', 'generate:feature']) {
    expect([name, scripts[name]]).toEqual([name, expect.stringMatching(/^node scripts\/check-compiler\.js && /)]);
  }
  const program = join(folder, 'check-compiler.mjs');
  copyFileSync(join(ROOT, 'scripts/check-compiler.js'), program);
  const { status, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/^petstore: .+ Run 'npm ci --include=dev && npm run build'\.\n$/),
  ]);
});

test('--help loads no framework', () => {
  // Node writes which files it has loaded.
  const directory = join(folder, 'loaded');
  const env = { NODE_V8_COVERAGE: directory };
  const { stdout } = spawnSync(process.execPath, [join(ROOT, 'dist/src/cli.js'), '--help'], {
    cwd: ROOT,
    encoding: 'utf8',
    env,
  });
  expect(stdout).toMatch(/^Usage: node dist\/src\/cli\.js /);
  const loaded = readdirSync(directory).flatMap((file) => [
    ...readFileSync(join(directory, file), 'utf8').matchAll(/"url":"file:[^"]*\/(dist|node_modules)\/([^"]*)"/g),
  ]);
  const files = loaded.map(([, folder = '', path = '']) => `${folder}/${path}`);
  expect(files).toContain('dist/src/app.description.js');
  expect(files.filter((path) => /@nestjs\/common\/index|@nestjs\/core|typeorm|rxjs|class-|express/.test(path))).toEqual(
    [],
  );
});
