import { jest } from '@jest/globals';
import { inspect } from 'node:util';
import { fromJson, type NewPet, type Pet, PetStoreClient, type PetStoreClientOptions, toJson } from '../src/index.js';
import { failureOf } from './support.js';

const OPTIONS = { baseUrl: 'https://petstore.example/v1', apiKey: 'a-key-for-the-tests-of-arguments' };
const REX: NewPet = { name: 'Rex', categoryId: 7n };

/** What a program without types may give; each is wrong for every option and argument that does not say otherwise. */
const NONSENSE: Record<string, unknown> = {
  null: null,
  true: true,
  'an empty string': '',
  'a symbol': Symbol('secret'),
  'an array': [],
  'an object': {},
  'an object without a prototype': Object.create(null),
  'an object whose text throws': {
    toString: () => {
      throw new Error('toString');
    },
  },
  '-1': -1,
  '1.5': 1.5,
  NaN: NaN,
  Infinity: Infinity,
  '-Infinity': -Infinity,
  '4711': 4711,
  '7n': 7n,
  text: 'wrong \n text',
  'a function': () => 'wrong',
};

/** Which of these values are right for a name, or are judged by the service. */
const RIGHT: Record<string, string[]> = {
  attemptTimeoutMs: ['1.5', '4711'],
  maxTotalMs: ['1.5', '4711'],
  maxAttempts: ['4711'],
  limit: ['4711'],
  status: ['text'],
  fetch: ['a function'],
  onDeprecation: ['a function'],
  petId: ['7n'],
  options: ['an object', 'an object without a prototype', 'an object whose text throws'],
  pet: ['an object', 'an object without a prototype', 'an object whose text throws'],
};

const RULES: Record<string, string> = {
  baseUrl: 'an address that begins with http:// or https://, such as https://petstore.example/v1, without',
  apiKey: 'a string of printable ASCII without spaces and line breaks',
  attemptTimeoutMs: 'a number of ms from 1 to 2147483647 (24 days)',
  maxTotalMs: 'a number of ms from 1 to 2147483647 (24 days)',
  maxAttempts: 'an integer of at least 1',
  limit: 'an integer of at least 1',
  status: 'a string that is not empty',
  next: '',
  fetch: 'a function',
  onDeprecation: 'a function',
  signal: 'an AbortSignal',
  idempotencyKey: 'a string of 1 to 255 characters of printable ASCII',
  ifNoneMatch: 'the etag of an earlier response',
  petId: 'a bigint such as 7n',
  options: 'an object',
  pet: 'an object',
};

type Call = (client: PetStoreClient, value: never) => Promise<unknown>;
const first = (pets: AsyncGenerator<Pet>): Promise<unknown> => pets.next();
const ARGUMENTS: [string, string, Call][] = [
  ['createPet', 'pet', (client, pet) => client.createPet(pet)],
  ['createPet', 'options', (client, options) => client.createPet(REX, options)],
  ['createPet', 'idempotencyKey', (client, idempotencyKey) => client.createPet(REX, { idempotencyKey })],
  ['createPet', 'signal', (client, signal) => client.createPet(REX, { signal })],
  ['listPets', 'options', (client, options) => first(client.listPets(options))],
  ['listPets', 'status', (client, status) => first(client.listPets({ status }))],
  ['listPets', 'limit', (client, limit) => first(client.listPets({ limit }))],
  ['listPets', 'signal', (client, signal) => first(client.listPets({ signal }))],
  ['listPetsPage', 'options', (client, options) => client.listPetsPage(options)],
  ['listPetsPage', 'status', (client, status) => client.listPetsPage({ status })],
  ['listPetsPage', 'limit', (client, limit) => client.listPetsPage({ limit })],
  ['listPetsPage', 'next', (client, next) => client.listPetsPage({ next })],
  ['listPetsPage', 'ifNoneMatch', (client, ifNoneMatch) => client.listPetsPage({ ifNoneMatch })],
  ['listPetsPage', 'signal', (client, signal) => client.listPetsPage({ signal })],
  ['getPet', 'petId', (client, petId) => client.getPet(petId)],
  ['getPet', 'options', (client, options) => client.getPet(7n, options)],
  ['getPet', 'ifNoneMatch', (client, ifNoneMatch) => client.getPet(7n, { ifNoneMatch })],
  ['getPet', 'signal', (client, signal) => client.getPet(7n, { signal })],
];
const NAMES = ['baseUrl', 'apiKey', 'fetch', 'attemptTimeoutMs', 'maxAttempts', 'maxTotalMs', 'onDeprecation'];

const make = (options: unknown): Promise<PetStoreClient> =>
  Promise.resolve().then(() => new PetStoreClient(options as PetStoreClientOptions));

/** The values that are wrong for a name. */
function wrongFor(name: string): [string, never][] {
  const values = Object.entries(NONSENSE).filter(([kind]) => !RIGHT[name]?.includes(kind));
  return values as [string, never][];
}

describe.each(NAMES)('the option %s', (name) => {
  test.each(wrongFor(name))('must not be %s', async (_kind, value) => {
    const error = await failureOf(make({ ...OPTIONS, [name]: value }));
    expect(error.code).toBe('invalid_argument');
    expect(error.message.startsWith(`${name} must be ${RULES[name]}`)).toBe(true);
  });

  test('may be a getter, which is called once; if it throws, the error names the option', async () => {
    const get = jest.fn(() => ({ ...OPTIONS, fetch })[name]);
    await make(Object.defineProperty({ ...OPTIONS }, name, { get }));
    expect(get).toHaveBeenCalledTimes(1);
    const thrower = Object.defineProperty({ ...OPTIONS }, name, {
      get: () => {
        throw new Error('not today');
      },
    });
    const error = await failureOf(make(thrower));
    expect([error.code, error.message]).toEqual(['invalid_argument', `options.${name} cannot be read: not today`]);
  });
});

test.each([undefined, ...wrongFor('options').map(([, value]) => value)])(
  'the options must not be %p',
  async (options) => {
    const { code, message } = await failureOf(make(options));
    expect([code, message]).toEqual(['invalid_argument', expect.stringMatching(/^options must be an object, not /)]);
  },
);

describe.each(ARGUMENTS)('the argument of %s: %s', (_method, name, call) => {
  const sent = jest.fn<typeof fetch>();
  const client = new PetStoreClient({ ...OPTIONS, fetch: sent });

  test.each(wrongFor(name))('must not be %s', async (_kind, value) => {
    const error = await failureOf(call(client, value));
    expect(error.code).toBe('invalid_argument');
    expect(error.message.startsWith(`${name} must be ${RULES[name]}`)).toBe(true);
    expect(sent).not.toHaveBeenCalled();
  });
});

describe('baseUrl', () => {
  test.each([
    'localhost:3000/v1',
    'petstore',
    '/v1',
    'ftp://petstore.example/v1',
    'https://',
    'https://petstore.example/v1?a=b',
    'https://petstore.example/v1#a',
    'https://user@petstore.example/v1',
  ])('must not be %s', async (baseUrl) => {
    expect((await failureOf(make({ ...OPTIONS, baseUrl }))).message).toMatch(/^baseUrl must be an address/);
  });

  test.each(['https://rex:passw0rd@petstore.example/v1', 'https://rex:passw0rd@petstore example/v1'])(
    'with credentials is refused, and no part of the error shows them: %s',
    async (baseUrl) => {
      const error = await failureOf(make({ ...OPTIONS, baseUrl }));
      const shown = [error.stack, JSON.stringify(error), JSON.stringify(error.cause ?? null), String(error.cause)];
      expect([error.code, shown.join()]).toEqual(['invalid_argument', expect.not.stringContaining('passw0rd')]);
    },
  );
});

test('options and members of a pet may be undefined', async () => {
  const names = ['fetch', 'attemptTimeoutMs', 'maxAttempts', 'maxTotalMs', 'onDeprecation'];
  const fetch = jest.fn<typeof globalThis.fetch>(() => Promise.resolve(new Response('[]')));
  await make({ ...OPTIONS, ...Object.fromEntries(names.map((name) => [name, undefined])) });
  const client = await make({ ...OPTIONS, fetch });
  const undefinedOnes = {
    status: undefined,
    limit: undefined,
    signal: undefined,
    ifNoneMatch: undefined,
    next: undefined,
  };
  await client.listPetsPage(undefinedOnes);
  expect(fetch.mock.calls[0]?.[0]).toEqual(new URL('https://petstore.example/v1/pets'));
});

test.each<[string, unknown, string]>([
  ['refers to itself', Object.assign({ ...REX }, { self: undefined }), 'Maximum call stack size exceeded'],
  [
    'has a member that throws',
    Object.defineProperty({}, 'name', { enumerable: true, get: () => Symbol.keyFor('x' as never) }),
    'x',
  ],
  ['has a toJSON that throws', { toJSON: () => Symbol.keyFor('x' as never) }, 'x is not a symbol'],
])('a pet that %s is refused by name', async (_case, pet, reason) => {
  if (typeof pet === 'object' && pet !== null && 'self' in pet) pet.self = pet;
  const client = new PetStoreClient(OPTIONS);
  const error = await failureOf(client.createPet(pet as NewPet));
  expect(error.code).toBe('invalid_argument');
  expect(error.message).toMatch(new RegExp(`^pet cannot be written as JSON: .*${reason}`));
});

describe('toJson and fromJson', () => {
  test('keep every digit of a pet', () => {
    const pet = { id: 9223372036854775807n, name: 'Rex', categoryId: -9007199254740993n, status: 'sold' as const };
    const text = '{"id":9223372036854775807,"name":"Rex","categoryId":-9007199254740993,"status":"sold"}';
    expect([toJson(pet), fromJson(text), toJson([1n, 'a', null])]).toEqual([text, pet, '[1,"a",null]']);
  });

  test.each([undefined, () => 1, Symbol('a')])('refuse to write %p', (value) => {
    expect(() => toJson(value)).toThrow(/^value must be a value that JSON can express, not /);
  });

  test.each([null, 7, {}, '{', '{"id":1.5}', ''])('refuse to read %p', async (text) => {
    const error = await failureOf(Promise.resolve().then(() => fromJson(text as string)));
    expect([error.code, error.message]).toEqual(['invalid_argument', expect.stringMatching(/^text must be /)]);
  });
});

test('an option that does not exist is refused, and the message lists those that do', async () => {
  const wrong = { ...OPTIONS, maxRetries: 3 };
  expect(() => new PetStoreClient(wrong)).toThrow(
    'options has no member "maxRetries", only baseUrl, apiKey, fetch, attemptTimeoutMs, maxAttempts, maxTotalMs, onDeprecation',
  );
  const misspelt: object = { stauts: 'sold' };
  expect(await failureOf(new PetStoreClient(OPTIONS).listPetsPage(misspelt))).toMatchObject({
    code: 'invalid_argument',
    message: expect.stringContaining('options has no member "stauts", only '),
  });
});

test('neither a console nor JSON shows the API key of a client', () => {
  const client = new PetStoreClient(OPTIONS);
  expect([inspect(client, { depth: null, showHidden: true }), JSON.stringify(client)].join()).not.toContain(
    OPTIONS.apiKey,
  );
});
