import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestApp, type TestApp } from '../support/app.js';

/* What docs/clients.md says of Postman, run by Newman against the service. */

import.meta.jest.setTimeout(120_000);

const TOOLS = join(import.meta.dirname, '../../openapi-tools');

interface Run {
  stats: Record<'requests' | 'assertions', { total: number; failed: number }>;
  executions: { item: { name: string }; response?: { code: number } }[];
}

let app: TestApp;
let directory: string;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'petstore-postman-'));
  app = await createTestApp();
});
afterEach(async () => {
  await app.close();
  rmSync(directory, { recursive: true });
});

/** Sends the requests of a collection in their order. Newman ends with an error when an assertion fails. */
async function send(collection: string, ...variables: string[]): Promise<Run> {
  const [file, report] = [join(directory, 'collection.json'), join(directory, 'report.json')];
  writeFileSync(file, collection);
  await promisify(execFile)(process.execPath, [
    ...[join(TOOLS, 'node_modules/newman/bin/newman.js'), 'run', file],
    ...[`bearerToken=${app.apiKey}`, ...variables].flatMap((variable) => ['--env-var', variable]),
    ...['--reporters', 'json', '--reporter-json-export', report],
  ]);
  return (JSON.parse(readFileSync(report, 'utf8')) as { run: Run }).run;
}

const responsesOf = ({ executions }: Run): unknown[] =>
  executions.map(({ item, response }) => [item.name, response?.code]);

const SUCCESSES = [
  ['List pets', 200],
  ['Add a pet', 201],
  ['Get a pet', 200],
];

test('every request of the collection that the service offers succeeds, and has passed its tests', async () => {
  const { text } = await app.client.get('/docs/postman.json', { apiKey: null });
  const run = await send(text, `baseUrl=${app.origin}/v1`);
  expect(responsesOf(run)).toEqual(SUCCESSES);
  expect(run.stats.assertions).toMatchObject({ total: 6, failed: 0 });
});

test('every request of openapi.json succeeds with its examples, all optional parameters included', async () => {
  // Postman imports documents by this package; its options are those of the import's settings.
  const program = `
    import converter from 'openapi-to-postmanv2';
    import { readFileSync } from 'node:fs';
    const data = readFileSync(process.argv[1], 'utf8');
    const options = { parametersResolution: 'Example', requestNameSource: 'Fallback' };
    converter.convertV2({ type: 'string', data }, options, (_, { output }) => console.log(JSON.stringify(output[0].data)));`;
  const document = join(directory, 'openapi.json');
  writeFileSync(document, (await app.client.get('/openapi.json', { apiKey: null })).text);
  const module = ['--input-type=module', '--eval', program, document];
  const collection = execFileSync(process.execPath, module, { cwd: TOOLS, encoding: 'utf8' });
  expect(responsesOf(await send(collection, `baseUrl=${app.origin}/v1`))).toEqual(SUCCESSES);
});
