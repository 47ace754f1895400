import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { checkTransport, MICROSERVICES, WEBSOCKETS } from './transports.internals.js';

const require = createRequire(import.meta.url);

/** A program with its own copy of a package, in which one text is replaced. */
async function programWith(name: string, file: string, from: string, to: string): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'petstore-transport-')));
  const copy = join(folder, 'node_modules', name);
  const installed = dirname(require.resolve(name));
  await mkdir(dirname(copy), { recursive: true });
  await cp(installed, copy, { recursive: true, filter: (path) => !/\.d\.ts$/.test(path) });
  // What the copy imports is the installed one.
  const beside = ['@nestjs/common', '@nestjs/core', 'iterare', 'object-hash', 'reflect-metadata', 'rxjs', 'tslib'];
  for (const each of beside) {
    const packages = join(installed.slice(0, installed.lastIndexOf('node_modules')), 'node_modules');
    await symlink(join(packages, each), join(folder, 'node_modules', each)).catch(() => undefined);
  }
  const text = await readFile(join(copy, file), 'utf8');
  expect(text).toContain(from);
  await writeFile(join(copy, file), text.replaceAll(from, to));
  return folder;
}

test.each([WEBSOCKETS, MICROSERVICES])('the marks of the installed $name are known', async (transport) => {
  await checkTransport(transport);
});

test('a package that is not installed is no difference', async () => {
  await checkTransport(WEBSOCKETS, [join(tmpdir(), 'main.js')]);
});

test.each([
  ['constants.js', 'websockets:is_gateway', 'websockets:gateway', 'WebSocketGateway'],
  ['constants.js', 'websockets:message_mapping', 'websockets:mapping', 'SubscribeMessage'],
  ['decorators/index.js', 'subscribe-message', 'connected-socket', 'SubscribeMessage'],
])('a program whose copy of a package has in %s, for %s, %s is refused', async (file, from, to, decorator) => {
  const folder = await programWith(WEBSOCKETS.name, file, from, to);
  try {
    await expect(checkTransport(WEBSOCKETS, [join(folder, 'main.js')])).rejects.toThrow(
      `a handler with @${decorator} would not be noticed`,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});
