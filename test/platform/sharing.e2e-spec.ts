import fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { PET_STATUSES } from '../../src/pets/pet.entity.js';
import { PetsRepository } from '../../src/pets/pets.repository.js';
import { INT64_MAX, INT64_MIN } from '../../src/platform/json/int64.js';
import { writeJson } from '../../src/platform/json/json-writer.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { engine } from '../support/database.js';
import { HttpClient } from '../support/http-client.js';

/*
 * Requests that wait together share a statement. Clients must not notice: an answer shows the database at or after the
 * moment its request was sent, whichever instance answers.
 */

const settings = { RATE_LIMIT_PER_MINUTE: '0', FAST_PATHS: 'on' };

let apps: TestApp[];
beforeAll(async () => {
  const first = await createTestApp({ settings });
  apps = [first];
  if (engine === 'postgresql') {
    apps.push(await createTestApp({ database: first.database, settings }));
  }
});
afterAll(async () => {
  for (const app of [...apps].reverse()) await app.close();
});

type Step = { kind: 'create' | 'get' | 'list' | 'status' | 'walk'; instance: number };

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('create', 'create', 'get', 'list', 'status', 'walk'),
  instance: fc.nat({ max: 1 }),
});

async function play(steps: readonly Step[], acknowledged: Map<number, string>, name: string): Promise<void> {
  for (const { kind, instance } of steps) {
    const { origin, apiKey } = apps[instance % apps.length] as TestApp;
    const client = new HttpClient(origin, apiKey);
    // A copy from before the request: all of these animals must be in its answer.
    const before = [...acknowledged];
    if (kind === 'create') {
      const created = await client.post('/v1/pets', { name, categoryId: 1, status: 'sold' });
      expect(created.status).toBe(201);
      expect(created.json).toEqual({ id: created.json.id, name, categoryId: 1, status: 'sold' });
      expect(acknowledged.has(created.json.id as number)).toBe(false);
      acknowledged.set(created.json.id as number, created.text);
    } else if (kind === 'get') {
      const [known] = before.slice(-1);
      if (known) expect((await client.get(`/v1/pets/${known[0]}`)).text).toBe(known[1]);
    } else if (kind === 'walk') {
      const pages = [];
      for (let path: string | undefined = '/v1/pets?limit=30'; path !== undefined;) {
        const page = await client.get(path);
        pages.push(page.text.slice(1, -1));
        path = /<http:\/\/localhost:3000([^>]+)>/.exec((page.headers.link as string | undefined) ?? '')?.[1];
      }
      for (const [, text] of before) expect(pages.join()).toContain(text);
    } else {
      const { text } = await client.get(`/v1/pets?limit=100${kind === 'status' ? '&status=sold' : ''}`);
      for (const [, pet] of before) expect(text).toContain(pet);
    }
  }
}

test('every read has all animals that were acknowledged before it was sent, for many clients and on two instances', async () => {
  const clients = fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { minLength: 2, maxLength: 16 });
  await fc.assert(
    fc.asyncProperty(clients, async (sequences) => {
      await (apps[0] as TestApp).sql('TRUNCATE pet CASCADE');
      const acknowledged = new Map<number, string>();
      await Promise.all(sequences.map((steps, index) => play(steps, acknowledged, `Animal of ${index}`)));
      const [[count]] = (await (apps[0] as TestApp).sql('SELECT count(*)::int FROM pet')) as [[number]];
      expect(count).toBe(acknowledged.size);
    }),
    { numRuns: 40 },
  );
});

const NAMES = [
  `"quoted" and 'quoted'`,
  'back\\slash \\" \\\\',
  '{braces},{"and",commas}',
  'NULL',
  'null',
  '{}',
  ' \t, spaces ,\n ',
  '🐕‍🦺 🐈',
  'line\u2028and paragraph\u2029separators',
  '\u0001\u001f\u007f',
  'x'.repeat(255),
  '語'.repeat(255),
];
const CATEGORY_IDS = [INT64_MIN, INT64_MIN + 1n, -1n, 0n, 1n, 2n ** 53n + 1n, INT64_MAX - 1n, INT64_MAX];

// One batch per name: if one name of several broke a shared statement, each animal would be inserted alone, and the test
// would not notice.
test.each(NAMES)(
  'animals with the name %j that are added at once each get their own id, answer and address',
  async (name) => {
    const { client } = apps[0] as TestApp;
    // With and without a key in one batch.
    const sent = [...CATEGORY_IDS, ...CATEGORY_IDS].map((categoryId, index) => ({
      pet: { name, categoryId, status: PET_STATUSES[index % PET_STATUSES.length] as string },
      headers: index < CATEGORY_IDS.length ? {} : { 'idempotency-key': randomUUID() },
    }));
    const created = await Promise.all(sent.map(({ pet, headers }) => client.post('/v1/pets', pet, { headers })));
    const ids = created.map(({ text }) => /^\{"id":([1-9]\d*),/.exec(text)?.[1]);
    expect(new Set(ids).size).toBe(sent.length);
    for (const [index, { status, text, headers }] of created.entries()) {
      expect([status, text]).toEqual([201, `{"id":${ids[index]},${writeJson(sent[index]?.pet).slice(1)}`]);
      expect(headers.location).toBe(`http://localhost:3000/v1/pets/${ids[index]}`);
      expect((await client.get(`/v1/pets/${ids[index]}`)).text).toBe(text);
    }
  },
);

test('ids ascend in the order in which animals that are added at once have arrived', async () => {
  const { nest, ...app } = apps[0] as TestApp;
  const repository = nest.get(PetsRepository);
  await app.sql('TRUNCATE pet CASCADE');
  const names = Array.from({ length: 150 }, (_, index) => `Number ${index}`);
  // Over HTTP the order of arrival would be random.
  const added = await Promise.all(names.map((name) => repository.insert({ name, categoryId: 1n, status: 'sold' })));
  expect(await app.sql('SELECT id::text, name FROM pet ORDER BY id')).toEqual(
    added.map(({ id, name }) => [String(id), name]),
  );
});

test('a request that the database refuses fails no other request of its statement, and does not get the answer of another one', async () => {
  const { client, ...app } = apps[0] as TestApp;
  await app.sql(`ALTER TABLE pet ADD CONSTRAINT ck_test CHECK (name <> 'refused')`);
  const names = Array.from({ length: 30 }, (_, index) => (index % 10 === 5 ? 'refused' : `Neighbour ${index}`));
  const answers = await Promise.all(names.map((name, index) => client.post('/v1/pets', { name, categoryId: index })));
  await app.sql('ALTER TABLE pet DROP CONSTRAINT ck_test');
  expect(answers.map(({ status }) => status)).toEqual(names.map((name) => (name === 'refused' ? 500 : 201)));
  const stored = await app.sql(
    `SELECT name, category_id::int, id::int FROM pet WHERE name = 'refused' OR name LIKE 'Neighbour %' ORDER BY 2`,
  );
  const told = answers
    .filter(({ status }) => status === 201)
    .map(({ json }) => [json.name, json.categoryId, json.id] as unknown[]);
  expect(stored).toEqual(told);
  expect(told.map(([name]) => name)).toEqual(names.filter((name) => name !== 'refused'));
});
