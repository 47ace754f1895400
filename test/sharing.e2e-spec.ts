import fc from 'fast-check';
import { createTestApp, type TestApp } from './support/app.js';
import { engine } from './support/database.js';
import { HttpClient } from './support/http-client.js';

/*
 * Requests that wait together share a statement. Nobody must be able to tell: an answer shows the database at or after the
 * moment its request was sent, whatever instance it came from.
 */

let apps: TestApp[];
beforeAll(async () => {
  const first = await createTestApp({ settings: { RATE_LIMIT_PER_MINUTE: '0' } });
  apps = [first];
  if (engine === 'postgresql') {
    apps.push(await createTestApp({ database: first.database, settings: { RATE_LIMIT_PER_MINUTE: '0' } }));
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

/** What one client after the other has been told. */
class Acknowledged {
  readonly pets = new Map<number, string>();
}

async function play(steps: readonly Step[], acknowledged: Acknowledged, name: string): Promise<void> {
  for (const { kind, instance } of steps) {
    const { origin, apiKey } = apps[instance % apps.length] as TestApp;
    const client = new HttpClient(origin, apiKey);
    // Taken before the request is sent: all of it must be in the answer.
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

test('every read shows what was acknowledged before it was sent, from many clients and on two instances', async () => {
  const clients = fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { minLength: 2, maxLength: 16 });
  await fc.assert(
    fc.asyncProperty(clients, async (sequences) => {
      await (apps[0] as TestApp).sql('TRUNCATE pet');
      const acknowledged = new Acknowledged();
      await Promise.all(sequences.map((steps, index) => play(steps, acknowledged, `Animal of ${index}`)));
      const [[count]] = (await (apps[0] as TestApp).sql('SELECT count(*)::int FROM pet')) as [[number]];
      expect(count).toBe(acknowledged.pets.size);
    }),
    { numRuns: 40 },
  );
});

test('a hundred animals that are added at once are a hundred animals, each with its own answer', async () => {
  const { client } = apps[0] as TestApp;
  const names = Array.from({ length: 100 }, (_, index) => `Animal "${index}", {with} \\ and 🐕`);
  const created = await Promise.all(names.map((name, index) => client.post('/v1/pets', { name, categoryId: index })));
  created.forEach(({ status, json }, index) => {
    expect([status, json.name, json.categoryId]).toEqual([201, names[index], index]);
  });
  expect(new Set(created.map(({ json }) => String(json.id))).size).toBe(100);
  const found = await Promise.all(created.map(({ json }) => client.get(`/v1/pets/${json.id}`)));
  found.forEach(({ text }, index) => expect(text).toBe(created[index]?.text));
});

test('one that the database refuses never fails its neighbours', async () => {
  const { client, ...app } = apps[0] as TestApp;
  await app.sql(`ALTER TABLE pet ADD CONSTRAINT ck_test CHECK (name <> 'refused')`);
  const names = Array.from({ length: 30 }, (_, index) => (index % 10 === 5 ? 'refused' : `Animal ${index}`));
  const answers = await Promise.all(names.map((name) => client.post('/v1/pets', { name, categoryId: 1 })));
  await app.sql('ALTER TABLE pet DROP CONSTRAINT ck_test');
  expect(answers.map(({ status }) => status)).toEqual(names.map((name) => (name === 'refused' ? 500 : 201)));
});

test('the answers to forty who ask for one page at once are the same, and the page is right', async () => {
  const { client, ...app } = apps[0] as TestApp;
  await app.sql('TRUNCATE pet');
  await app.sql(`INSERT INTO pet (name, category_id) SELECT 'Animal ' || n, n FROM generate_series(1, 50) n`);
  const answers = await Promise.all(Array.from({ length: 40 }, () => client.get('/v1/pets?limit=7')));
  expect(new Set(answers.map(({ text, headers }) => text + headers.etag + String(headers.link))).size).toBe(1);
  expect((answers[0]?.json as unknown[]).length).toBe(7);
});
