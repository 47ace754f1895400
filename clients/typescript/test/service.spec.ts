import { jest } from '@jest/globals';
import { createTestApp, type TestApp } from '../../../test/support/app.js';
import {
  type DeprecationNotice,
  type NewPet,
  type Pet,
  PetStoreClient,
  type PetStoreClientOptions,
  type PetsPage,
} from '../src/index.js';
import { failureOf } from './support.js';

/** Identifiers that a double would round, and the smallest and largest int64. */
const IDS = [
  -9223372036854775808n,
  -9223372036854775807n,
  -9007199254740993n,
  0n,
  9007199254740991n,
  9007199254740993n,
  9223372036854775806n,
  9223372036854775807n,
];
const ORIGIN = 'http://petstore.test';

let app: TestApp;
/** The requests that the clients have sent, such as `GET http://petstore.test/v1/pets`. */
let sent: string[];
const notices: DeprecationNotice[] = [];

beforeAll(async () => {
  app = await createTestApp({ settings: { PUBLIC_BASE_URL: `${ORIGIN}/v1` } });
  for (const id of IDS) {
    const insert = `INSERT INTO pet (id, name, category_id, status) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $1, 'sold')`;
    await app.sql(insert, [String(id), `Pet ${id}`]);
  }
});
afterAll(() => app.close());
beforeEach(() => {
  sent = [];
});

/** A fetch that sends requests for any origin to the tested service. */
const toService: typeof fetch = (input, init) => {
  const url = new URL(input instanceof Request ? input.url : input);
  sent.push(`${init?.method} ${url.href}`);
  return fetch(app.origin + url.pathname + url.search, init);
};

function clientOf(options: Partial<PetStoreClientOptions> = {}): PetStoreClient {
  const onDeprecation = (notice: DeprecationNotice): void => void notices.push(notice);
  return new PetStoreClient({
    baseUrl: `${ORIGIN}/v1`,
    apiKey: app.apiKey,
    fetch: toService,
    onDeprecation,
    ...options,
  });
}

async function listed(pets: AsyncIterable<Pet>): Promise<Pet[]> {
  const all: Pet[] = [];
  for await (const pet of pets) all.push(pet);
  return all;
}

describe('every digit is kept', () => {
  test('of ids in a list, over all pages', async () => {
    const pets = await listed(clientOf().listPets({ status: 'sold', limit: 3 }));
    expect(pets).toEqual(IDS.map((id) => ({ id, name: `Pet ${id}`, categoryId: id, status: 'sold' })));
    expect(sent).toHaveLength(3);
    expect(sent[0]).toBe(`GET ${ORIGIN}/v1/pets?limit=3&status=sold`);
    expect(sent[1]).toMatch(/^GET http:\/\/petstore\.test\/v1\/pets\?limit=3&status=sold&cursor=/);
  });

  test.each(IDS)('of the id %p in a path', async (id) => {
    const { pet } = await clientOf().getPet(id);
    expect(pet).toEqual({ id, name: `Pet ${id}`, categoryId: id, status: 'sold' });
  });

  test.each(IDS)('of the categoryId %p of a new pet, up to the database', async (categoryId) => {
    const pet = await clientOf().createPet({ name: 'Rex', categoryId });
    expect(pet).toEqual({ id: expect.any(BigInt), name: 'Rex', categoryId, status: 'available' });
    const select = 'SELECT category_id::text FROM pet WHERE id = $1';
    expect(await app.sql(select, [String(pet.id)])).toEqual([[String(categoryId)]]);
  });

  test('a number, which may have lost digits, is refused before anything is sent', async () => {
    const client = clientOf();
    const getting = await failureOf(client.getPet(Number('9007199254740993') as unknown as bigint));
    const creating = await failureOf(client.createPet({ name: 'Rex', categoryId: 7 } as unknown as NewPet));
    expect([getting.code, creating.code]).toEqual(['invalid_argument', 'invalid_argument']);
    expect([getting.message, creating.message]).toEqual([
      'petId must be a bigint such as 7n, because a number may already have lost digits, not 9007199254740992',
      'categoryId must be a bigint such as 7n, because a number may already have lost digits, not 7',
    ]);
    expect(sent).toEqual([]);
  });
});

describe('pages', () => {
  test('are read one by one with next', async () => {
    const client = clientOf();
    const first = await client.listPetsPage({ status: 'sold', limit: 5 });
    const second = await client.listPetsPage({ next: first.next as string });
    expect([...first.pets, ...second.pets].map(({ id }) => id)).toEqual(IDS);
    expect(second.next).toBeUndefined();
  });

  test('are requested only when they are needed', async () => {
    for await (const { id } of clientOf().listPets({ status: 'sold', limit: 2 })) {
      if (id === IDS[1]) break;
    }
    expect(sent).toHaveLength(1);
  });

  test('are requested at baseUrl, whatever address the service has as its PUBLIC_BASE_URL', async () => {
    const client = clientOf({ baseUrl: 'http://inside.test:8080/v1' });
    expect((await listed(client.listPets({ status: 'sold', limit: 3 }))).map(({ id }) => id)).toEqual(IDS);
    expect(sent).toHaveLength(3);
    expect(sent.filter((request) => !request.startsWith('GET http://inside.test:8080/v1/pets?limit=3&'))).toEqual([]);
  });
});

describe('conditional GET', () => {
  test('of a list gives NotModified until a pet is added', async () => {
    const client = clientOf();
    const before = await client.listPetsPage({ status: 'pending' });
    expect(before.etag).toMatch(/^W\/"/);
    const same = await client.listPetsPage({ status: 'pending', ifNoneMatch: before.etag });
    expect(same).toEqual({ notModified: true, etag: before.etag });
    const pet = await client.createPet({ name: 'Max', categoryId: 1n, status: 'pending' });
    const after = (await client.listPetsPage({ status: 'pending', ifNoneMatch: before.etag })) as PetsPage;
    expect([after.notModified, after.pets]).toEqual([false, [...before.pets, pet]]);
  });

  test('of a pet gives NotModified', async () => {
    const client = clientOf();
    const { etag } = await client.getPet(0n);
    expect(await client.getPet(0n, { ifNoneMatch: etag })).toEqual({ notModified: true, etag });
    expect(await client.getPet(0n, { ifNoneMatch: '"another"' })).toMatchObject({
      notModified: false,
      pet: { id: 0n },
    });
  });
});

describe('createPet', () => {
  const countOf = async (name: string): Promise<unknown> =>
    (await app.sql('SELECT count(*)::int FROM pet WHERE name = $1', [name]))[0]?.[0];

  test('adds only one pet when a response is lost, and returns it', async () => {
    const answers: string[] = [];
    const lossy: typeof fetch = async (input, init) => {
      const response = await toService(input, init);
      answers.push(await response.clone().text());
      if (answers.length === 1) throw new TypeError('fetch failed');
      expect(response.headers.get('idempotent-replayed')).toBe('true');
      return response;
    };
    const pet = await clientOf({ fetch: lossy }).createPet({ name: 'Lost', categoryId: 7n });
    expect(answers).toEqual([expect.stringContaining(`"id":${pet.id},`), answers[0]]);
    expect(await countOf('Lost')).toBe(1);
  });

  test('adds two pets in two calls', async () => {
    const client = clientOf();
    await client.createPet({ name: 'Twin', categoryId: 7n });
    await client.createPet({ name: 'Twin', categoryId: 7n });
    expect(await countOf('Twin')).toBe(2);
  });

  test.each(['order-1', 'with "quotes" and \\ backslash', 'x'.repeat(250)])(
    'adds one pet in two calls with the idempotencyKey %p',
    async (idempotencyKey) => {
      const pet: NewPet = { name: `One of ${idempotencyKey.slice(0, 9)}`, categoryId: 7n };
      const first = await clientOf().createPet(pet, { idempotencyKey });
      expect(await clientOf().createPet(pet, { idempotencyKey })).toEqual(first);
      expect(await countOf(pet.name)).toBe(1);
      const error = await failureOf(clientOf().createPet({ ...pet, categoryId: 8n }, { idempotencyKey }));
      expect([error.code, error.status]).toEqual(['idempotency_key_reused', 422]);
    },
  );
});

describe('errors of the service', () => {
  test('have code, status, message and the request id of its log', async () => {
    const error = await failureOf(clientOf().createPet({ name: '', categoryId: 2n ** 63n }));
    expect([error.name, error.code, error.status]).toEqual(['PetStoreError', 'validation_failed', 400]);
    expect(error.message).toMatch(/^name must be .*; categoryId must be an integer between/);
    expect(app.log.requests.map(({ requestId }) => requestId)).toContain(error.requestId);
  });

  test.each<[string, number, (client: PetStoreClient) => Promise<unknown>, Partial<PetStoreClientOptions>]>([
    ['pet_not_found', 404, (client) => client.getPet(404n), {}],
    ['invalid_parameter', 400, (client) => client.listPetsPage({ limit: 101 }), {}],
    ['invalid_cursor', 400, (client) => client.listPetsPage({ next: `${ORIGIN}/v1/pets?cursor=x` }), {}],
    ['invalid_api_key', 401, (client) => client.listPetsPage(), { apiKey: 'unknown' }],
    ['route_not_found', 404, (client) => client.listPetsPage(), { baseUrl: `${ORIGIN}/v2/` }],
  ])('%s (%i)', async (code, status, call, options) => {
    expect(await failureOf(call(clientOf(options)))).toMatchObject({ code, status });
  });
});

describe('deprecation', () => {
  test('is reported once for each client and operation', async () => {
    notices.length = 0;
    const client = clientOf();
    await client.listPetsPage();
    await client.getPet(0n);
    await failureOf(client.getPet(404n));
    expect(notices).toEqual([
      {
        operation: 'getPet',
        deprecation: new Date('2026-11-20T00:00:00Z'),
        sunset: new Date('2030-12-05T00:00:00Z'),
        successor: `${ORIGIN}/v1/pets`,
        documentation: `${ORIGIN}/docs/deprecations#getPet`,
      },
    ]);
  });

  test('gives a warning on the console without a hook', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    await clientOf({ onDeprecation: undefined as never }).getPet(0n);
    expect(warn.mock.calls).toEqual([
      [
        '@petstore-service/client: getPet is deprecated and will be removed on 2030-12-05: ' +
          `${ORIGIN}/docs/deprecations#getPet`,
      ],
    ]);
    warn.mockRestore();
  });

  test('ends with operation_removed after the sunset', async () => {
    app.clock.travelTo('2030-12-05T00:00:00Z');
    const error = await failureOf(clientOf().getPet(0n));
    app.clock.comeBack();
    expect([error.code, error.status]).toEqual(['operation_removed', 410]);
  });
});
