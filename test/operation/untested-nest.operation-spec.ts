import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/until.js';
import { installWithChanged } from './support/changed-package.js';
import { Services } from './support/services.js';

/* With a release of Nest that is not in the table of tested ones, Nest itself calls the handlers: the contract holds as well. */

import.meta.jest.setTimeout(120_000);

const ROOT = join(import.meta.dirname, '../..');

let database: TestDatabase;
let home: string;
let services: Services;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'petstore-untested-'));
  services = new Services(home);
  database = await createTestDatabase();
});
afterAll(async () => {
  await services.kill();
  await database.drop();
  await rm(home, { recursive: true, force: true });
});

test('the contract holds with a release of Nest that is not tested', async () => {
  const { version } = createRequire(import.meta.url)('@nestjs/core/package.json') as { version: string };
  // A changed copy of Nest would be a second one beside that of its other packages, so the table changes.
  const program = await installWithChanged('dotenv', [], home);
  const table = join(home, 'dist/libs/runtime/src/tested-releases.js');
  const text = await readFile(table, 'utf8');
  expect(text).toContain(`'${version}'`);
  await writeFile(table, text.replaceAll(`'${version}'`, "'12.99.0'"));
  const key = 'bootstrap-key-of-the-tests';
  const settings = {
    ...database.settings,
    BOOTSTRAP_API_KEY: key,
    REQUEST_TIMEOUT_MS: '1500',
    RATE_LIMIT_PER_MINUTE: '0',
  };
  const service = services.start(settings, program);
  const url = await service.origin();
  await until(() => service.stdout.includes(`@nestjs/core ${version} (tested: `));
  const runner = ['--import', './test/support/register-typescript.js', 'contract/run.ts'];
  const output = execFileSync(process.execPath, [...runner, '--url', url, '--key', key], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect(output).toMatch(/^(\d+) of \1 rows hold\.$/m);
});
