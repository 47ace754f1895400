import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestApp, type TestApp } from '../support/app.js';

/* The Postman collection of `npm run postman`, run by Newman against the service. */

import.meta.jest.setTimeout(120_000);

const TOOLS = join(import.meta.dirname, '../../openapi-tools');

interface Run {
  stats: Record<'requests' | 'assertions', { total: number; failed: number }>;
  executions: { item: { name: string }; response?: { code: number } }[];
}

let app: TestApp;
let directory: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'petstore-postman-'));
  app = await createTestApp();
});
afterAll(async () => {
  await app.close();
  rmSync(directory, { recursive: true });
});

test('every request of the collection succeeds without changes', async () => {
  const [collection, report] = [join(directory, 'collection.json'), join(directory, 'report.json')];
  writeFileSync(collection, execFileSync(process.execPath, [join(TOOLS, 'postman.js')]));
  // Newman ends with an error when an assertion fails.
  await promisify(execFile)(process.execPath, [
    ...[join(TOOLS, 'node_modules/newman/bin/newman.js'), 'run', collection],
    ...['--env-var', `baseUrl=${app.origin}/v1`, '--env-var', `bearerToken=${app.apiKey}`],
    ...['--reporters', 'json', '--reporter-json-export', report],
  ]);
  const { stats, executions } = (JSON.parse(readFileSync(report, 'utf8')) as { run: Run }).run;
  expect(executions.map(({ item, response }) => [item.name, response?.code])).toEqual([
    ['List pets', 200],
    ['Add a pet', 201],
    ['Get a pet', 200],
  ]);
  expect(stats.assertions).toMatchObject({ total: 6, failed: 0 });
});
