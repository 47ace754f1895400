import fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { PET_STATUSES } from '../../src/pets/pet.entity.js';
import { PetsRepository } from '../../src/pets/pets.repository.js';
import { INT64_MAX, INT64_MIN } from '../../src/platform/json/int64.js';
import { writeJson } from '../../src/platform/json/json-writer.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { engine } from '../support/database.js';
import { type HttpCall, HttpClient } from '../support/http-client.js';

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

/** The animals in all acknowledged answers so far. */
class Acknowledged {
  readonly pets = new Map<number, string>();
}

async function play(steps: readonly Step[], acknowledged: Acknowledged, name: string): Promise<void> {
  for (const { kind, instance } of steps) {
    const { origin, apiKey } = apps[instance % apps.length] as TestApp;
    const client = new HttpClient(origin, apiKey);
    // A copy from before the request: all of these animals must be in its answer.
    const before = [...acknowledged.pets];
    if (kind === 'create') {
      const created = await client.post('/v1/pets', { name, categoryId: 1, status: 'sold' });
      expect(created.status).toBe(201);
      expect(created.json).toEqual({ id: created.json.id, name, categoryId: 1, status: 'sold' });
      expect(acknowledged.pets.has(created.json.id as number)).toBe(false);
      acknowledged.pets.set(created.json.id as number, created.text);
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
      const acknowledged = new Acknowledged();
      await Promise.all(sequences.map((steps, index) => play(steps, acknowledged, `Animal of ${index}`)));
      const [[count]] = (await (apps[0] as TestApp).sql('SELECT count(*)::int FROM pet')) as [[number]];
      expect(count).toBe(acknowledged.pets.size);
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

describe.each<[how: string, headersOf: (index: number) => HttpCall['headers']]>([
  ['without an Idempotency-Key', () => ({})],
  ['each with its Idempotency-Key', () => ({ 'idempotency-key': randomUUID() })],
  ['with an Idempotency-Key or without', (index: number) => (index % 2 ? {} : { 'idempotency-key': randomUUID() })],
])('animals that are added at once, %s', (_, headersOf) => {
  test('each get their own id, answer and address', async () => {
    const { client } = apps[0] as TestApp;
    // All animals differ, and each value is combined with others.
    const sent = Array.from({ length: 120 }, (_, index) => ({
      name: NAMES[index % NAMES.length] as string,
      categoryId: CATEGORY_IDS[Math.floor(index / NAMES.length) % CATEGORY_IDS.length] as bigint,
      status: PET_STATUSES[(index + Math.floor(index / 40)) % PET_STATUSES.length] as string,
    }));
    const created = await Promise.all(
      sent.map((pet, index) => client.post('/v1/pets', pet, { headers: headersOf(index) })),
    );
    const ids = created.map(({ text }) => /^\{"id":([1-9]\d*),/.exec(text)?.[1]);
    expect(new Set(ids).size).toBe(sent.length);
    expect(created.map(({ status }) => status)).toEqual(sent.map(() => 201));
    const found = await Promise.all(
      created.map(({ headers }) => client.get(new URL(headers.location as string).pathname)),
    );
    created.forEach(({ text, headers }, index) => {
      expect(text).toBe(`{"id":${ids[index]},${writeJson(sent[index]).slice(1)}`);
      expect(headers.location).toBe(`http://localhost:3000/v1/pets/${ids[index]}`);
      expect(found[index]?.text).toBe(text);
    });
  });
});

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

// One batch per name: if one name of several broke a shared statement, each animal would be inserted alone, and the test
// would not notice.
test.each(['"Rex"', ' Rex ', 'back\\slash', '\\"', '{}', '{Rex}', 'NULL', 'a,b', 'a\u2028b', '🐕'])(
  'many animals with the name %j that are added at once keep it',
  async (name) => {
    const { client, ...app } = apps[0] as TestApp;
    await app.sql('TRUNCATE pet CASCADE');
    const created = await Promise.all(CATEGORY_IDS.map((categoryId) => client.post('/v1/pets', { name, categoryId })));
    expect(created.map(({ status, json }) => [status, json.name] as unknown[])).toEqual(created.map(() => [201, name]));
    expect(await app.sql('SELECT name, category_id::text FROM pet ORDER BY pet.category_id')).toEqual(
      CATEGORY_IDS.map((categoryId) => [name, String(categoryId)]),
    );
  },
);

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

test('forty simultaneous requests for a page get the same, correct answer', async () => {
  const { client, ...app } = apps[0] as TestApp;
  await app.sql('TRUNCATE pet CASCADE');
  await app.sql(`INSERT INTO pet (name, category_id) SELECT 'Animal ' || n, n FROM generate_series(1, 50) n`);
  const answers = await Promise.all(Array.from({ length: 40 }, () => client.get('/v1/pets?limit=7')));
  expect(new Set(answers.map(({ text, headers }) => text + headers.etag + String(headers.link))).size).toBe(1);
  expect((answers[0]?.json as unknown[]).length).toBe(7);
});
