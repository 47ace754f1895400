import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import.meta.jest.setTimeout(120_000);

const ROOT = join(import.meta.dirname, '../..');

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/* The package that separate projects install. `node scripts/test-example.js` tests it in such a project. */

describe('the entry points', () => {
  test.each([
    'petstore-service/src/app.module.js',
    'petstore-service/dist/libs/runtime/src/clock.js',
    'petstore-service/test',
  ])('Node refuses to import %s', (path) => {
    // The same rules apply when the package imports itself by its name.
    const code = `import('${path}').catch(({ code }) => process.stdout.write(code))`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    expect(stdout).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });

  test('offer in petstore-service/platform all decorators of the platform that docs/extending.md names', () => {
    const files = readdirSync(join(ROOT, 'libs'), { recursive: true, encoding: 'utf8' });
    const code = files.flatMap((file) => (file.endsWith('.ts') ? read(`libs/${file}`) : [])).join('\n');
    const named = [...read('docs/extending.md').matchAll(/`@(\w+)/g)].map(([, name = '']) => name);
    const needed = named.filter((name) => new RegExp(`^export (?:const|function) ${name}\\b`, 'm').test(code));
    expect(needed.length).toBeGreaterThan(15);
    const offered = read('libs/service/platform.ts');
    expect(needed.filter((name) => !new RegExp(`\\b${name}\\b`).test(offered))).toEqual([]);
  });
});

test('every exported function, decorators included, has an example in its comment', () => {
  const code = ['libs', 'src', 'test/kit'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).flatMap((file) =>
      file.endsWith('.ts') ? read(`${folder}/${file}`) : [],
    ),
  );
  const offered =
    read('api-report/platform.md') + read('api-report/petstore-service.md') + read('api-report/testing.md');
  const names = [...offered.matchAll(/^(?:export )?(?:declare )?(?:function (\w+)|const (\w+): \()/gm)];
  const without = names
    .map(([, name = '', arrow]) => arrow ?? name)
    .filter((name) => {
      const commented = new RegExp(`@example (?:(?!\\*/)[^])+\\*/\\nexport (?:async )?(?:function|const) ${name}\\b`);
      return !code.some((text) => commented.test(text));
    });
  expect(names.length).toBeGreaterThan(25);
  expect(without).toEqual([]);
});

test('npm run package makes peer dependencies of the frameworks, which this repository installs', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'petstore-package-'));
  const sh = (line: string): string => spawnSync('sh', ['-c', line], { cwd: ROOT, encoding: 'utf8' }).stdout;
  const stdout = sh(`node scripts/pack.js ${directory} && tar -xzOf ${directory}/*.tgz package/package.json`);
  const packed = JSON.parse(stdout.slice(stdout.indexOf('{'))) as Record<string, Record<string, string>>;
  const { dependencies, peerDependencies } = JSON.parse(read('package.json')) as typeof packed;
  expect({ ...packed['dependencies'], ...packed['peerDependencies'] }).toEqual({
    ...dependencies,
    ...peerDependencies,
  });
  expect(Object.keys(packed['dependencies'] ?? {}).filter((name) => /nest|typeorm|rxjs|class-/.test(name))).toEqual([]);
  // It holds no source maps, so no file may name one.
  expect(sh(`tar -xzOf ${directory}/*.tgz | grep -c '^//# sourceMappingURL'`)).toBe('0\n');
  const files = sh(`tar -tzf ${directory}/*.tgz`).split('\n');
  expect(files).toContain('package/dist/client.tgz');
  const links = [...read('docs/extending.md').matchAll(/\]\(((?!https?:)[^)#]+)/g)].map(([, path = '']) =>
    join('package/docs', path),
  );
  expect(links.length).toBeGreaterThan(10);
  expect(links.filter((path) => !files.includes(path))).toEqual([]);
  await rm(directory, { recursive: true });
});

test('npm run check:package passes what does not affect the public API, and fails when a member changes', async () => {
  const project = await mkdtemp(join(tmpdir(), 'petstore-public-api-'));
  const run = (...args: string[]): SpawnSyncReturns<string> =>
    spawnSync(process.execPath, ['scripts/public-api.js', ...args], { cwd: project, encoding: 'utf8' });
  const write = (entry: string): Promise<void> =>
    writeFile(join(project, 'dist/things.d.ts'), `import { Helper } from './helper.js';\n${entry}`);
  const entry = '/** A thing. */ export declare class Thing { private readonly helper; use(count: Helper): string; }';
  await mkdir(join(project, 'dist'));
  await cp(join(ROOT, 'scripts/public-api.js'), join(project, 'scripts/public-api.js'));
  await symlink(join(ROOT, 'node_modules'), join(project, 'node_modules'));
  const exports = { './things': { types: './dist/things.d.ts' }, './package.json': './package.json' };
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'shop', type: 'module', exports }));
  await writeFile(join(project, 'dist/helper.d.ts'), 'export declare class Helper { private secret; help(): void; }');
  await write(entry);
  expect(run()).toMatchObject({ status: 0, stderr: '' });
  const report = await readFile(join(project, 'api-report/things.md'), 'utf8');
  expect(report).toContain('class Thing {\n    use(count: Helper): string;\n}');
  expect(report).toContain('not exported:\n\n```ts\nclass Helper {\n    help(): void;\n}');
  await write(entry.replace('A thing', 'Any thing').replace('readonly helper', 'readonly other'));
  expect(run('--check')).toMatchObject({ status: 0, stderr: '' });
  await write(entry.replace('count: Helper', 'count: bigint'));
  const { status, stderr } = run('--check');
  expect([status, stderr.split('\n')]).toEqual([1, expect.arrayContaining(['-     use(count: Helper): string;'])]);
  await rm(project, { recursive: true });
});
