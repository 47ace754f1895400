import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
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
  const program = await installWithChanged(
    '@nestjs/core',
    [['package.json', `"version": "${version}"`, '"version": "12.99.0"']],
    home,
  );
  const key = 'bootstrap-key-of-the-tests';
  const settings = {
    ...database.settings,
    BOOTSTRAP_API_KEY: key,
    REQUEST_TIMEOUT_MS: '1500',
    RATE_LIMIT_PER_MINUTE: '0',
  };
  const service = services.start(settings, program);
  const url = await service.origin();
  expect(service.stdout).toContain('The tests have not passed for @nestjs/core 12.99.0 (tested: ');
  const runner = ['--import', './test/support/register-typescript.js', 'contract/run.ts'];
  const output = execFileSync(process.execPath, [...runner, '--url', url, '--key', key], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect(output).toMatch(/^(\d+) of \1 rows hold\.$/m);
});
