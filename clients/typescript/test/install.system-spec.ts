import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { blocksOf, ROOT } from './samples.js';

interface Packument {
  _attachments: Record<string, { data: string }>;
  versions: Record<string, { dist: { tarball: string } }>;
}

/** A registry of npm that keeps the last package which was published. */
let published: Packument | undefined;
const registry = createServer((request, response) => {
  void (async () => {
    if (request.method === 'PUT') published = (await json(request)) as Packument;
    const isTarball = request.url?.endsWith('.tgz');
    const [attachment] = Object.values(published?._attachments ?? {});
    if (published === undefined) response.writeHead(404).end('{}');
    else response.end(isTarball ? Buffer.from(attachment?.data ?? '', 'base64') : JSON.stringify(published));
  })();
});

let directory: string;
const place = (name: string): string => join(directory, name);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petstore-install-'));
  for (const name of ['petstore-service', 'my-app', 'another-app']) await mkdir(place(name));
  registry.listen(0, '127.0.0.1');
  await once(registry, 'listening');
});
afterAll(async () => {
  registry.close();
  await rm(directory, { recursive: true });
});

/** Runs commands as npm's users do: without the variables of the npm that runs this test. */
async function run(cwd: string, commands: string, settings: Record<string, string> = {}): Promise<string> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
  const env = { ...Object.fromEntries(own), npm_config_prefer_offline: 'true', ...settings };
  return (await promisify(execFile)('bash', ['-ec', commands], { cwd, env })).stdout;
}

const IMPORT = `import('@petstore-service/client').then(({ PetStoreClient }) => console.log(typeof PetStoreClient))`;

test('the README installs the package from a checkout, and publishes it to a registry', async () => {
  const [pack = '', install = '', publish = ''] = await blocksOf('clients/typescript/README.md', 'sh');
  await run(ROOT, pack, { npm_config_pack_destination: place('petstore-service') });
  await run(place('my-app'), install);
  expect(await run(place('my-app'), `node -e "${IMPORT}"`)).toBe('function\n');

  const host = `127.0.0.1:${(registry.address() as AddressInfo).port}`;
  const own = publish.replace('https://npm.example.com/', `http://${host}/`);
  const [configure = ''] = own.split('\n');
  const token = { [`npm_config_//${host}/:_authToken`]: 'secret' };
  await run(place('petstore-service'), own, token);
  expect(Object.keys(published?.versions ?? {})).toEqual(['1.0.0']);
  await run(place('another-app'), `npm init --yes; ${configure}\nnpm install @petstore-service/client`);
  expect(await run(place('another-app'), `node -e "${IMPORT}"`)).toBe('function\n');
}, 120_000);
