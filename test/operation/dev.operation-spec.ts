import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceProcess } from '../support/service-process.js';

const ROOT = join(import.meta.dirname, '../..');
const NEEDED = ['dist', 'docs', 'libs', 'migrations', 'scripts', 'src', 'test'];
const FILES = ['package.json', 'tsconfig.json', 'tsconfig.build.json', '.env.example'];

test('npm run dev serves a change of a source after a restart, and ends with its programs', async () => {
  const copy = await mkdtemp(join(tmpdir(), 'petstore-dev-'));
  for (const path of [...NEEDED, ...FILES]) await cp(join(ROOT, path), join(copy, path), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const service = new ServiceProcess({}, copy, { program: [join(copy, 'scripts/dev.js')] });
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
  } finally {
    // Its programs would outlive a killed parent.
    if (service.isRunning) await service.stop('SIGTERM');
    await rm(copy, { recursive: true });
  }
}, 240_000);
