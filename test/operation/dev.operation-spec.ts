import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../support/until.js';
import { ServiceProcess } from '../support/service-process.js';

const ROOT = join(import.meta.dirname, '../..');
const NEEDED = ['dist', 'docs', 'libs', 'migrations', 'scripts', 'src', 'test', 'clients/typescript/src'];
const FILES = [
  ...['package.json', 'nest-cli.json', 'tsconfig.json', 'tsconfig.build.json', '.env.example'],
  ...['clients/typescript/README.md', 'clients/typescript/package.json'],
];

test('npm run dev starts once, serves a change that is made as soon as it listens, and ends with its programs', async () => {
  const copy = await mkdtemp(join(tmpdir(), 'petstore-dev-'));
  for (const path of [...NEEDED, ...FILES]) await cp(join(ROOT, path), join(copy, path), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const dev = (): ServiceProcess => new ServiceProcess({}, copy, { program: [join(copy, 'scripts/dev.js')] });
  let service = dev();
  try {
    await service.origin();
    const source = join(copy, 'src/app.description.ts');
    await writeFile(source, (await readFile(source, 'utf8')).replace("'Pet Store Service'", "'Changed'"));
    const titleOf = async (): Promise<unknown> => {
      const origin = service.stderr.match(/http:\/\/localhost:\d+(?=\/v1\n)/g)?.at(-1) ?? '';
      const response = await fetch(`${origin}/openapi.json`).catch(() => undefined);
      return ((await response?.json()) as { info: { title: string } } | undefined)?.info.title;
    };
    let title = await titleOf();
    for (let waited = 0; title !== 'Changed' && waited < 120_000; waited += 200) {
      await sleep(200);
      title = await titleOf();
    }
    expect(title).toBe('Changed');
    expect(await service.stop('SIGTERM')).toBe(0);

    service = dev();
    await service.origin();
    await until(() => service.stdout.includes(' Watching for file changes.'));
    // A restart would take about a second.
    await sleep(3_000);
    expect(service.stderr.match(/ listens on /g)).toHaveLength(1);
    expect(await service.stop('SIGTERM')).toBe(0);
  } finally {
    // Its programs would outlive a killed parent.
    if (service.isRunning) await service.stop('SIGTERM');
    await rm(copy, { recursive: true });
  }
}, 240_000);
