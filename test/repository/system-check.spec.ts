import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const CHECK = join(ROOT, 'scripts/check-system.cjs');

interface Package {
  engines?: { node?: string };
  scripts: Record<string, string>;
}
const { engines, scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Package;

/** Runs the check in a Node.js that reports this version as its own. */
function check(version: string): [code: number | null, stderr: string] {
  const pretend =
    `Object.defineProperty(process, 'version', { value: 'v${version}' });` +
    `Object.defineProperty(process.versions, 'node', { value: '${version}' });`;
  const script = `${pretend} require(${JSON.stringify(CHECK)});`;
  const { status, stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', env: {} });
  return [status, stderr];
}

test.each(['0.10.48', '12.22.12', '18.20.8', '20.18.3', '21.7.3', '22.12.0', '23.11.1', '24.10.0'])(
  'Node.js %s is too old, and one line says so',
  (version) => {
    expect(check(version)).toEqual([
      1,
      `petstore: Node.js v${version} does not run this service. Install Node.js ${engines?.node} (https://nodejs.org).\n`,
    ]);
  },
);

test.each(['20.19.0', '20.20.2', '22.13.0', '22.20.1', '24.11.0', '25.0.0', '26.1.0-nightly'])(
  'Node.js %s is new enough',
  (version) => {
    expect(check(version)).toEqual([0, '']);
  },
);

test.each([
  [200, [1, 'petstore: The limit of open files is 200, too small to load the service. Raise it (ulimit -n 20000).\n']],
  [512, [0, '']],
])('a limit of %d open files is refused if it is too small to load the service', (limit, expected) => {
  const args = ['-c', `ulimit -n ${limit} && exec "$0" "$1"`, process.execPath, CHECK];
  const { status, stderr } = spawnSync('sh', args, { encoding: 'utf8' });
  expect([status, stderr]).toEqual(expected);
});

test('npm start and npm run petstore run the check first, and npm ci refuses an old Node.js', () => {
  for (const name of ['prestart', 'prepetstore']) {
    expect([name, scripts[name]]).toEqual([name, expect.stringMatching(/^node scripts\/check-system\.cjs && /)]);
  }
  expect(readFileSync(join(ROOT, '.npmrc'), 'utf8').split('\n')).toContain('engine-strict=true');
});
