/**
 * Takes parts out of a copy of the repository, and shows that the rest works:
 *
 *   node scripts/demolish.js [part ...] [all]
 *
 * Without names, each part in turn, and then all of them at once. A part goes with its import and its word in the list of
 * src/app.description.ts, and its folder. The rest must compile, and the service built from it must keep the contract.
 */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import '../test/support/register-typescript.js';

const { startPostgresqlServer } = await import('../test/support/postgresql-server.ts');
const { RepositoryCopy } = await import('../test/support/repository-copy.ts');
const { ServiceProcess } = await import('../test/support/service-process.ts');

const root = join(import.meta.dirname, '..');
const DEFINITION = 'src/app.description.ts';
const definition = readFileSync(join(root, DEFINITION), 'utf8');
const { paths } = JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8'));
/** The scopes of the operations. */
const SCOPES = new Set(
  Object.values(paths)
    .flatMap(Object.values)
    .flatMap((each) => each['x-required-scopes'] ?? []),
);
const imports = [...definition.matchAll(/^import \{ (\w+) \} from '#([\w-]+)';$/gm)];
const [list] = /(?<= parts: )\[[^\]]*\]/.exec(definition);
/** The words of the parts in the list, by their folders. */
const words = new Map(imports.map(([, word, library]) => [library, word]).filter(([, word]) => list.includes(word)));
const parts = [...words.keys()];

/** The definition of the service without some parts. */
function definitionWithout(libraries) {
  return libraries.reduce((text, library) => {
    const word = new RegExp(`(?<= parts: \\[[^\\]]*)\\b${words.get(library)}\\b,?\\s*`);
    return text.replace(word, '').replace(new RegExp(`^import .* from '#${library}';\\n`, 'm'), '');
  }, definition);
}

/** Compiles the copy with its tests; only what has changed if it was compiled before. */
async function compile(copy) {
  await copy.run('node_modules/typescript/bin/tsc', ['--incremental', '--tsBuildInfoFile', 'dist/build-info']);
  for (const assets of ['docs', 'libs/docs-pages/src/browser']) {
    const source = join(copy.path, assets);
    if (existsSync(source)) cpSync(source, join(copy.path, 'dist', assets), { recursive: true });
  }
  cpSync(join(root, 'dist/client.tgz'), join(copy.path, 'dist/client.tgz'));
}

/** Makes the keys that rows of the contract need. Returns the runner's options. */
async function createKeys(copy, env) {
  const create = async (...args) =>
    (await copy.run('dist/src/cli.js', ['keys', 'create', '--quiet', '--client', ...args], env)).trim();
  const revoked = await create('contract');
  await copy.run('dist/src/cli.js', ['keys', 'revoke', revoked.slice(0, 12)], env);
  const others = {
    ...{ revoked, other: await create('other') },
    expired: await create('contract', '--expires', '1s'),
  };
  for (const scope of ['metrics:read', ...SCOPES])
    others[scope.replace(':', '_')] = await create('contract', '--scopes', scope);
  const variables = Object.entries(others).flatMap(([name, secret]) => ['--let', `${name}=${secret}`]);
  return ['--key', await create('contract', '--scopes', [...SCOPES].join()), ...variables];
}

/** Compiles the copy without some parts, and judges its service. Returns what the runner of the contract prints. */
async function judgeWithout(libraries, copy, env, keys) {
  for (const folder of libraries.flatMap((library) => [`libs/${library}`, `dist/libs/${library}`]))
    rmSync(join(copy.path, folder), { recursive: true, force: true });
  writeFileSync(join(copy.path, DEFINITION), definitionWithout(libraries));
  await compile(copy);
  const service = new ServiceProcess(env, copy.path, { program: [join(copy.path, 'dist/src/main.js')] });
  try {
    const runner = ['./test/support/register-typescript.js', 'contract/run.ts', '--url', await service.origin()];
    return await copy.run('--import', [...runner, ...keys]);
  } finally {
    await service.kill();
    cpSync(join(root, 'libs'), join(copy.path, 'libs'), { recursive: true });
  }
}

const names = process.argv.slice(2);
if (!names.every((name) => [...parts, 'all'].includes(name))) throw new Error(`Optional are ${parts.join(', ')}, all.`);
const copy = await RepositoryCopy.create();
const server = await startPostgresqlServer();
try {
  await compile(copy);
  const env = { DATABASE_URL: server.url, REQUEST_TIMEOUT_MS: '1500', LOG_LEVEL: 'silent' };
  await copy.run('dist/src/cli.js', ['migrate'], env);
  const keys = await createKeys(copy, env);
  for (const name of names.length > 0 ? names : [...parts, 'all']) {
    const verdict = await judgeWithout(name === 'all' ? parts : [name], copy, env, keys);
    process.stdout.write(`${name.padEnd(14)}${verdict}`);
  }
} finally {
  await server.stop();
  await copy.remove();
}
