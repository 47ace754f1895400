import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
let collection: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'petstore-postman-'));
  collection = join(directory, 'collection.json');
  writeFileSync(collection, execFileSync(process.execPath, [join(TOOLS, 'postman.js')]));
  app = await createTestApp();
});
afterAll(async () => {
  await app.close();
  rmSync(directory, { recursive: true });
});

/** Runs the collection; `passed` follows Newman's exit code. */
async function runNewman(apiKey: string): Promise<Run & { passed: boolean }> {
  const report = join(directory, 'report.json');
  const variables = [`baseUrl=${app.origin}/v1`, `bearerToken=${apiKey}`];
  const arguments_ = [
    ...[join(TOOLS, 'node_modules/newman/bin/newman.js'), 'run', collection],
    ...variables.flatMap((variable) => ['--env-var', variable]),
    ...['--reporters', 'json', '--reporter-json-export', report],
  ];
  const passed = await new Promise<boolean>((resolve) => {
    execFile(process.execPath, arguments_, (error) => resolve(error === null));
  });
  return { passed, ...(JSON.parse(readFileSync(report, 'utf8')) as { run: Run }).run };
}

test('every request of the collection succeeds without changes', async () => {
  const { passed, stats, executions } = await runNewman(app.apiKey);
  expect(executions.map(({ item, response }) => [item.name, response?.code])).toEqual([
    ['List animals', 200],
    ['Add an animal', 201],
    ['Get an animal', 200],
  ]);
  expect(stats.assertions).toMatchObject({ total: 6, failed: 0 });
  expect(passed).toBe(true);
});

test('the run fails when the service refuses the requests', async () => {
  const { passed, stats } = await runNewman('x'.repeat(30));
  expect([passed, stats.assertions.failed]).toEqual([false, 3]);
});
