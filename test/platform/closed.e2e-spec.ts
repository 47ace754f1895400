import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { ServiceProcess } from '../support/service-process.js';

/* No function makes an application that answers without a key. Each runs in a process of its own: `test/support/other-starts.ts`. */

const LOADER = new URL('../support/register-typescript.js', import.meta.url).href;
const PROGRAM = join(import.meta.dirname, '../support/other-starts.ts');

let database: TestDatabase;
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'petstore-closed-'));
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
  await rm(home, { recursive: true, force: true });
});

async function run(way: string): Promise<[code: number | null, output: string]> {
  const service = new ServiceProcess(database.settings, home, { program: ['--import', LOADER, PROGRAM, way] });
  const code = await service.ended;
  return [code, service.stdout + service.stderr];
}

test.each([
  'NestFactory.create',
  'NestFactory.create of entities',
  'NestFactory.createApplicationContext',
  'Test.createTestingModule',
  'NestFactory.create after createApplication',
])('%s fails, and names the functions to call', async (way) => {
  const [code, output] = await run(way);
  expect(output).toContain(
    'Nothing would ask for API keys: only startService and createApplication make an application',
  );
  expect(output).toMatch(/runCommands its commands, and createTestApp its tests\. For a script, createApplication/);
  expect(output).not.toContain('made');
  expect(code).toBe(1);
});

test('a script works with the providers of the application, and ends', async () => {
  const [code, output] = await run('script');
  expect(output).toContain('found 0 pets');
  expect(output).toMatch(/^made$/m);
  expect(code).toBe(0);
});
