import type { INestApplication } from '@nestjs/common';
import fc from 'fast-check';
import { tap } from 'rxjs';
import { createTestApp, type TestApp } from '../support/app.js';
import { engine } from '../support/database.js';
import { HttpClient } from '../support/http-client.js';

/*
 * Requests that wait together share a statement. Clients must not notice: a response shows the database at or after the
 * moment its request was sent, whichever instance responds.
 */

const settings = { RATE_LIMIT_PER_MINUTE: '0' };

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
    // A copy from before the request: all of these pets must be in its response.
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

test('every read has all pets that were acknowledged before it was sent, for many clients and on two instances', async () => {
  const clients = fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { minLength: 2, maxLength: 16 });
  await fc.assert(
    fc.asyncProperty(clients, async (sequences) => {
      await (apps[0] as TestApp).sql('TRUNCATE pet CASCADE');
      const acknowledged = new Map<number, string>();
      await Promise.all(sequences.map((steps, index) => play(steps, acknowledged, `Pet of ${index}`)));
      const [[count]] = (await (apps[0] as TestApp).sql('SELECT count(*)::int FROM pet')) as [[number]];
      expect(count).toBe(acknowledged.size);
    }),
    { numRuns: 40 },
  );
});

test('500: an interceptor that changes a shared page, whose items are frozen', async () => {
  const setUp = (nest: INestApplication): void => {
    const change = (page: { items?: { name: string }[] }): void => page.items?.forEach((pet) => (pet.name = 'changed'));
    nest.useGlobalInterceptors({ intercept: (_, next) => next.handle().pipe(tap(change)) });
  };
  const app = await createTestApp({ setUp });
  await app.client.post('/v1/pets', { name: 'Rex', categoryId: 1 });
  expect((await app.client.get('/v1/pets', { expects500: true })).status).toBe(500);
  expect(app.log.text).toContain('Cannot assign to read only property');
  await app.close();
});
