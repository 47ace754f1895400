import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTestApp, type TestApp } from '../../../test/support/app.js';
import { blocksOf, manifestOf, ROOT, Workshop } from './samples.js';

let app: TestApp;
let workshop: Workshop;

beforeEach(async () => {
  app = await createTestApp({ settings: { PUBLIC_BASE_URL: 'http://localhost:3000/v1' } });
  workshop = await Workshop.open(app.port, app.apiKey);
});
afterEach(async () => {
  await app.close();
  await workshop.close();
});

/** Adds pets with ids that a double would round. */
async function addPets(): Promise<void> {
  await app.sql(`
    INSERT INTO pet (id, name, category_id) OVERRIDING SYSTEM VALUE
    SELECT 9007199254740992 + number, 'Pet ' || number, number FROM generate_series(1, 150) AS number`);
}

const LINES_OF_PETS = Array.from(
  { length: 150 },
  (_, index) => `${9007199254740993n + BigInt(index)} Pet ${index + 1}`,
);

const categories = (): Promise<unknown[][]> =>
  app.sql(`SELECT category_id::text FROM pet WHERE name = 'Rex' ORDER BY id`);

describe('the package', () => {
  test('contains only its build, its licence and its README', async () => {
    const files = await workshop.installClient();
    const others = files.filter((file) => !/^dist\/(commonjs\/)?(generated\/)?[\w-]+\.(js|d\.ts)$/.test(file));
    expect(others.sort()).toEqual(['LICENSE', 'README.md', 'dist/commonjs/package.json', 'package.json']);
  }, 60_000);

  test('is tested with the versions of its dependencies', async () => {
    const { dependencies } = await manifestOf(join(ROOT, 'clients/typescript'));
    expect((await manifestOf(ROOT)).devDependencies).toMatchObject(dependencies);
  });

  test('works as its README shows, with the types of the README', async () => {
    await addPets();
    await workshop.installClient();
    await workshop.write('readme.ts', (await blocksOf('clients/typescript/README.md', 'ts')).join('\n'));
    await workshop.compile('readme.ts');
    const lines = (await workshop.run(process.execPath, 'readme.js')).split('\n');
    expect(lines).toEqual([
      'Rex has the id 1 and the category 9007199254740993.',
      '1n Rex',
      ...LINES_OF_PETS.map((line) => line.replace(' ', 'n ')),
      '20 20',
      'Nothing has changed.',
      expect.stringMatching(/^validation_failed 400 name must be .* [0-9a-f]{32}-1$/),
      'true',
      '{"id":1,"name":"Rex","categoryId":9007199254740993,"status":"available"} true',
      '20',
      'getPet ends on 2030-12-05T00:00:00.000Z',
      'Rex',
      '',
    ]);
    expect(await categories()).toEqual([['9007199254740993']]);
  }, 120_000);
});

describe('docs/clients.md', () => {
  test('TypeScript: types with bigint, and calls that keep every digit', async () => {
    await addPets();
    await workshop.install('openapi-typescript', 'typescript', 'openapi-fetch', 'openapi-typescript-helpers');
    await workshop.install('lossless-json');
    const [download = ''] = await blocksOf('docs/clients.md', 'sh');
    const [generate = ''] = await blocksOf('docs/clients.md', 'js');
    const [pets = ''] = await blocksOf('docs/clients.md', 'ts');
    await workshop.run('bash', '-ec', download);
    await workshop.write('generate.mjs', generate);
    await workshop.run(process.execPath, 'generate.mjs');
    await workshop.write('pets.ts', pets);
    await workshop.compile('pets.ts');
    const lines = (await workshop.run(process.execPath, 'pets.js')).split('\n');
    expect(lines).toEqual(['true', '1n Rex', ...LINES_OF_PETS.slice(0, 99).map((line) => line.replace(' ', 'n ')), '']);
    expect(await categories()).toEqual([['9007199254740993']]);
  }, 120_000);

  test('openapi-fetch without changes loses the last digit, as the page says', async () => {
    await addPets();
    await workshop.install('openapi-fetch', 'openapi-typescript-helpers');
    const code = `
      import createClient from 'openapi-fetch';
      const headers = { Authorization: \`Bearer \${process.env.API_KEY}\` };
      const client = createClient({ baseUrl: 'http://localhost:3000/v1', headers });
      const { data } = await client.GET('/pets', { params: { query: { limit: 1 } } });
      console.log(data[0].id);
      await client.POST('/pets', { body: { name: 'Rex', categoryId: 1n } }).catch((error) => console.log(error.message));`;
    await workshop.write('rounded.js', code);
    const lines = (await workshop.run(process.execPath, 'rounded.js')).split('\n');
    expect(lines).toEqual(['9007199254740992', 'Do not know how to serialize a BigInt', '']);
  });

  test('Python', async () => {
    await addPets();
    const [program = ''] = await blocksOf('docs/clients.md', 'python');
    const lines = (await workshop.run('python3', '-c', program)).split('\n');
    expect(lines).toEqual(['9223372036854775807', '1 Rex', ...LINES_OF_PETS, '']);
    expect(await categories()).toEqual([['9223372036854775807']]);
  });

  test('curl', async () => {
    await addPets();
    const [, create = '', list = ''] = await blocksOf('docs/clients.md', 'sh');
    const created = await workshop.run('bash', '-ec', create);
    expect(created).toBe('{"id":1,"name":"Rex","categoryId":9223372036854775807,"status":"available"}');
    const pages = (await workshop.run('bash', '-ec', list)).split('\n');
    const ids = pages.flatMap((page) => [...page.matchAll(/"id":(\d+),"name":"([^"]+)"/g)]);
    expect(ids.map(([, id, name]) => `${id} ${name}`)).toEqual(['1 Rex', ...LINES_OF_PETS]);
  });
});

describe('docs/guide.md', () => {
  test('JavaScript', async () => {
    await addPets();
    await workshop.installClient();
    await workshop.write('guide.mjs', (await blocksOf('docs/guide.md', 'js')).join('\n'));
    const lines = (await workshop.run(process.execPath, 'guide.mjs')).split('\n');
    expect(lines).toEqual([
      '1n Rex available',
      '401 invalid_api_key',
      '1n Rex',
      ...LINES_OF_PETS.map((line) => line.replace(' ', 'n ')),
      'true',
      expect.stringMatching(/^400 validation_failed name must be .* [0-9a-f]{32}-1$/),
      '1',
      '9223372036854775807n',
      'true',
      'Rex',
      '',
    ]);
  }, 60_000);

  test('Python', async () => {
    await addPets();
    const program = (await blocksOf('docs/guide.md', 'python')).join('\n');
    const lines = (await workshop.run('python3', '-c', program)).split('\n');
    expect(lines).toEqual([
      '1 Rex available',
      '401 invalid_api_key',
      '1 Rex',
      ...LINES_OF_PETS,
      'True true',
      expect.stringMatching(/^400 invalid_parameter .*limit.* \S+$/),
      expect.stringMatching(/^"client";q=6000;w=60 "client";r=\d+;t=\d+$/),
      '9223372036854775807',
      '304',
      'Rex',
      '',
    ]);
  });

  test('curl', async () => {
    await addPets();
    // The service's tests run the blocks that add Rex.
    const blocks = (await blocksOf('docs/guide.md', 'sh')).filter((block) => !block.includes('"Rex"'));
    const [authentication, pages, errors, limits, identifiers, caching, ...others] = await blocks.reduce(
      async (outputs, block) => [...(await outputs), await workshop.run('bash', '-ec', block)],
      Promise.resolve<string[]>([]),
    );
    expect(authentication).toMatch(/"code":"missing_api_key".*401\n$/s);
    const ids = [...(pages ?? '').matchAll(/"id":(\d+),"name":"([^"]+)"/g)];
    expect(ids.map(([, id, name]) => `${id} ${name}`)).toEqual(LINES_OF_PETS);
    expect(errors).toMatch(/^HTTP\/1\.1 400 .*X-Request-Id: \S+.*"code":"invalid_parameter"/is);
    expect(limits).toMatch(/^RateLimit-Policy: "client";q=6000;w=60\r?\nRateLimit: "client";r=\d+;t=\d+/i);
    expect(identifiers).toContain('"categoryId":9223372036854775807');
    expect(caching).toBe('304\n');
    expect(others).toEqual([]);
  });
});

describe('openapi.json', () => {
  test('its pattern of a name means the same in Python', async () => {
    const { components } = JSON.parse(await readFile(join(ROOT, 'openapi.json'), 'utf8')) as {
      components: { schemas: { NewPet: { properties: { name: { pattern: string } } } } };
    };
    const { pattern } = components.schemas.NewPet.properties.name;
    const program = `
import re, sys
codes = [code for code in range(0x10000) if not 0xD800 <= code <= 0xDFFF]
print(*[code for code in codes if not re.search(sys.argv[1], chr(code))])`;
    const refused = (await workshop.run('python3', '-c', program, pattern)).trim().split(' ').map(Number);
    const codes = Array.from({ length: 0x10000 }, (_, code) => code).filter((code) => code < 0xd800 || code > 0xdfff);
    expect(refused).toEqual(codes.filter((code) => code === 0 || !/\S/.test(String.fromCharCode(code))));
  });
});
