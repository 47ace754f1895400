import fc from 'fast-check';
import { MAX_NAME_LENGTH } from '../../src/pets/pet.entity.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';
import { ListPetsQuery } from '../../src/pets/pet.dto.js';
import { ServedDocument } from '../support/served-document.js';

/*
 * Valid and invalid requests to all operations. The expected response follows from the way in which each
 * request was generated, and from a model of the catalogue, without any code of the service. Every response must also
 * be one that the served document describes.
 *
 * The environment variable FUZZ_REQUESTS sets the number of requests (`.ci/nightly` sends 20,000) and FUZZ_SEED the
 * seed; a failure prints the seed. The same seed makes the same requests.
 */
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 2_000);
const DEFAULT_LIMIT = new ListPetsQuery().limit;
const SEED = Number(process.env.FUZZ_SEED ?? 20301205);
const MAX_BODY_BYTES = 65_536;

/** The expected response: its status, the code of an Error, and the names that its message must criticise, in order. */
interface Verdict {
  readonly status: number;
  readonly code?: string;
  readonly faults?: readonly string[];
}

const ok = (status: number): Verdict => ({ status });
const no = (status: number, code: string, faults?: readonly string[]): Verdict => ({ status, code, faults });

/** A request and its expected response. */
interface Probe {
  readonly operation: keyof typeof OPERATIONS;
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string | undefined>;
  readonly body?: Buffer;
  readonly verdict: Verdict;
  /** Further checks of the expected response. */
  readonly verify?: (answer: HttpAnswer) => void | Promise<void>;
}

/** Operations: path and method in the document, and the kinds of responses that a run must have met to be meaningful. */
const OPERATIONS = {
  listPets: {
    place: ['/pets', 'get'],
    outcomes: [
      ...['first', 'next'].flatMap((page) =>
        ['all', 'available', 'pending', 'sold'].map((status) => `${page} page of ${status}`),
      ),
      ...['200', '304', '400 invalid_parameter', '400 invalid_cursor'],
    ],
  },
  createPet: {
    place: ['/pets', 'post'],
    outcomes: ['201', '400 malformed_json', '400 body_too_complex', '400 validation_failed', '413 body_too_large'],
  },
  getPet: { place: ['/pets/{petId}', 'get'], outcomes: ['200', '304', '404 pet_not_found'] },
} as const;

/** A request that is generated only when it is sent, because it depends on earlier responses. Reports name its operation. */
const plan = (operation: Probe['operation'], make: () => Omit<Probe, 'operation'>): (() => Probe) =>
  Object.assign(() => ({ operation, ...make() }), { [fc.toStringMethod]: () => operation });

const STATUSES = ['available', 'pending', 'sold'] as const;
type Status = (typeof STATUSES)[number];

/** All pets of the catalogue, by ascending id, and their texts as the service must return them, byte by byte. */
const pets: { readonly id: string; readonly status: Status; readonly text: string }[] = [];
/** The cursors that the service has issued: each continues after `seen` pets of the catalogue. */
const cursors: { readonly text: string; readonly status: Status | undefined; readonly seen: number }[] = [];

/** Kinds of responses that the run has met; all were as expected. */
const happened = new Set<string>();

/** A value once in `odds` + 1 times, else `usual`. */
const rarely = <T, U>(value: fc.Arbitrary<T>, odds: number, usual: U): fc.Arbitrary<T | U> =>
  fc.oneof({ weight: odds, arbitrary: fc.constant(usual) }, value);

const pick = <T>(items: readonly T[], index: number): T | undefined => items[index % Math.max(items.length, 1)];

/** The text of a JSON value, and the text that the service must return for it; undefined for an invalid value. */
interface Value {
  readonly text: string;
  readonly canonical?: string;
}

const valid = (value: string): Value => ({ text: JSON.stringify(value), canonical: JSON.stringify(value) });
const invalid = (text: string): Value => ({ text });

const text = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  fc.string({ unit: fc.constantFrom('🐕', 'e\u0301', ' ', '\u00a0', '\ufeff', '"', '\\', '\n'), maxLength: 9 }),
  fc
    .tuple(fc.constantFrom('a', '🐕', ' ', '\ud83d'), fc.integer({ min: 120, max: 270 }))
    .map(([unit, count]) => unit.repeat(count)),
);
const name: fc.Arbitrary<Value> = fc.oneof(
  {
    weight: 12,
    arbitrary: text.map((value) => {
      const length = Array.from(value).length;
      const isStorable = !value.includes('\0') && Buffer.from(value).toString() === value;
      const isName = length >= 1 && length <= MAX_NAME_LENGTH && value.trim() !== '' && isStorable;
      return isName ? valid(value) : invalid(JSON.stringify(value));
    }),
  },
  fc.constantFrom('7', 'null', '[]').map(invalid),
);

const MAX = 2n ** 63n - 1n;
const int64 = fc.oneof(
  fc.bigInt({ min: -MAX - 1n, max: MAX }),
  fc.bigInt({ min: -1000n, max: 1000n }),
  fc.constantFrom(-MAX - 1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, MAX - 1n, MAX),
);
const categoryId: fc.Arbitrary<Value> = fc.oneof(
  {
    weight: 16,
    arbitrary: fc
      .tuple(int64, fc.constantFrom('', '', '.0', 'E+0'))
      .map(([value, behind]) => ({ text: `${value}${behind}`, canonical: value.toString() })),
  },
  fc.bigInt({ min: MAX + 1n, max: MAX * 100n }).map((value) => invalid(`${value}`)),
  fc.tuple(int64, fc.integer({ min: 1, max: 999 })).map(([value, fraction]) => invalid(`${value}.${fraction}`)),
  fc.constantFrom('1e1000000000', '"1"', 'null').map(invalid),
);

const status: fc.Arbitrary<Value | undefined> = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(undefined, ...STATUSES.map(valid)) },
  fc.constantFrom('null', '"Available"', '["sold"]').map(invalid),
);

const foreignMembers = fc.uniqueArray(
  fc.record({
    name: fc
      .oneof(fc.constantFrom('id', '__proto__', 'Name'), fc.string({ unit: 'binary', maxLength: 8 }))
      .filter((other) => !['name', 'categoryId', 'status'].includes(other)),
    text: fc.oneof(
      fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value)),
      fc.constantFrom('1e99999', '"\\u0000\\ud800"', '['.repeat(31) + ']'.repeat(31)),
    ),
  }),
  { maxLength: 3, selector: (member) => member.name },
);

/** Functions that break the JSON text of an object, whatever its members are, and the code of the result. */
const BREAKAGES: (readonly [code: string, breakUp: (text: string) => string])[] = [
  ['malformed_json', (object) => object.slice(0, -1)],
  ['malformed_json', (object) => object.replace(/^{/, '{"n\\u0061me":1,"name":1,')],
  ['body_too_complex', (object) => object.replace(/^{/, `{"tag":[${'1,'.repeat(12_000)}1],`)],
];

interface JsonBody {
  readonly bytes: Buffer;
  readonly verdict: Verdict;
  /** The members after `id` of the pet that the service must return. */
  readonly members?: string;
}

const objectBody = fc
  .record({
    name: fc.option(name, { freq: 12, nil: undefined }),
    categoryId: fc.option(categoryId, { freq: 12, nil: undefined }),
    status,
    foreign: foreignMembers,
    turn: fc.nat(5),
    space: fc.constantFrom('', '', '\n', ' \t\r\n'),
    breakage: rarely(fc.constantFrom(...BREAKAGES), 9, undefined),
  })
  .map(({ foreign, turn, space, breakage, ...own }): JsonBody => {
    const sent = Object.entries(own).flatMap(([member, value]) => (value ? { name: member, text: value.text } : []));
    const members = [...sent, ...foreign].map((one) => `${JSON.stringify(one.name)}${space}:${space}${one.text}`);
    members.unshift(...members.splice(turn));
    const object = `{${members.join(`${space},${space}`)}}`;
    if (breakage) return { bytes: Buffer.from(breakage[1](object)), verdict: no(400, breakage[0]) };
    const bytes = Buffer.from(`${space}${object}${space}`);
    const pet = Object.entries({ ...own, status: own.status ?? valid('available') });
    const faults = pet.filter(([, value]) => value?.canonical === undefined).map(([member]) => member);
    if (faults.length > 0) return { bytes, verdict: no(400, 'validation_failed', faults) };
    const canonical = pet.map(([member, value]) => `"${member}":${value?.canonical}`).join();
    return { bytes, verdict: ok(201), members: canonical };
  });

const otherBody = fc
  .constantFrom('[{"name":"Rex","categoryId":7}]', '1e999', 'null', ' false ')
  .map((sent): JsonBody => ({ bytes: Buffer.from(sent), verdict: no(400, 'validation_failed', ['the']) }));

const readMethod = fc.constantFrom('GET', 'GET', 'GET', 'GET', 'HEAD');
const ifNoneMatch = fc.constantFrom(undefined, undefined, 'W/"other"', 'garbage', '', '*');

const wrongParameter = fc.oneof(
  fc.record({ limit: fc.constantFrom('0', '101', '', '1e1', '05', ' 5', '٥', '1'.repeat(400)) }),
  fc.record({ limit: fc.string({ maxLength: 6 }).filter((value) => !/^\d+$/.test(value)) }),
  fc.record({ status: fc.constantFrom('', 'SOLD', 'available,sold', 'sold\0', '__proto__') }),
  fc
    .tuple(fc.string({ unit: 'binary', maxLength: 10 }), fc.string({ maxLength: 4 }))
    .filter(([parameter]) => !['limit', 'status', 'cursor'].includes(parameter))
    .map(([parameter, value]) => ({ [parameter]: value })),
  fc.constantFrom('limit', 'status', 'cursor').map((twice) => ({ twice })),
);

const cursorUse = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  { weight: 4, arbitrary: fc.record({ index: fc.nat(), fits: fc.constantFrom(true, true, true, false) }) },
  fc.record({ index: fc.nat(), changed: fc.nat(30) }),
  fc.record({ text: fc.oneof(fc.string({ unit: 'binary', maxLength: 30 }), fc.base64String({ maxLength: 40 })) }),
);

/** The cursor of a Link to the next page, and the other parameters. */
const nextOf = ({ headers }: HttpAnswer): URLSearchParams | undefined => {
  const query = /^<http:\/\/localhost:3000\/v1\/pets\?([^>]+)>; rel="next"$/.exec(String(headers.link))?.[1];
  return query === undefined ? undefined : new URLSearchParams(query);
};

const listPets = fc
  .record({
    method: readMethod,
    limit: fc.option(fc.integer({ min: 1, max: 100 }), { freq: 3, nil: undefined }),
    status: fc.option(fc.constantFrom(...STATUSES), { freq: 2, nil: undefined }),
    cursor: cursorUse,
    wrong: rarely(wrongParameter, 5, undefined),
    turn: fc.nat(3),
    ifNoneMatch,
  })
  .map(({ method, limit, status, cursor, wrong, turn, ifNoneMatch }) =>
    plan('listPets', () => {
      const query = new Map<string, string>();
      if (limit !== undefined) query.set('limit', String(limit));
      if (status !== undefined) query.set('status', status);
      let seen = 0;
      let verdict = ok(200);
      if (cursor && 'text' in cursor) {
        query.set('cursor', cursor.text);
        verdict = no(400, 'invalid_cursor');
      } else if (cursor) {
        const ownList = cursors.filter((candidate) => candidate.status === status);
        const known = pick('fits' in cursor && cursor.fits ? ownList : cursors, cursor.index);
        if (known) query.set('cursor', 'changed' in cursor ? changed(known.text, cursor.changed) : known.text);
        if (known && ('changed' in cursor || known.status !== status)) verdict = no(400, 'invalid_cursor');
        else seen = known?.seen ?? 0;
      }
      const pairs = [...query, ...Object.entries(wrong ?? {})].filter(([parameter]) => parameter !== 'twice');
      if (wrong) verdict = no(400, 'invalid_parameter');
      if (wrong && 'twice' in wrong) for (const value of ['5', '6']) pairs.push([String(wrong.twice), value]);
      pairs.unshift(...pairs.splice(turn));
      const search = pairs.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join('&');
      const matching = pets.slice(seen).filter((pet) => status === undefined || pet.status === status);
      const page = matching.slice(0, limit ?? DEFAULT_LIMIT);
      return {
        method,
        path: `/v1/pets${search === '' ? '' : `?${search}`}`,
        verdict: verdict.status === 200 && ifNoneMatch === '*' ? ok(304) : verdict,
        headers: { 'if-none-match': ifNoneMatch },
        verify: (answer) => {
          if (verdict.status !== 200) return;
          if (page.length > 0) happened.add(`listPets ${seen > 0 ? 'next' : 'first'} page of ${status ?? 'all'}`);
          if (method === 'GET' && answer.status === 200)
            expect(answer.text).toBe(`[${page.map((pet) => pet.text).join()}]`);
          const next = nextOf(answer);
          expect(next !== undefined).toBe(matching.length > page.length);
          if (next === undefined) return;
          expect([next.get('limit'), next.get('status')]).toEqual([String(limit ?? DEFAULT_LIMIT), status ?? null]);
          const last = pets.findIndex(({ id }) => id === page.at(-1)?.id) + 1;
          if (cursors.length < 500) cursors.push({ text: next.get('cursor') ?? '', status, seen: last });
        },
      };
    }),
  );

/** A cursor with one other character. */
function changed(cursor: string, index: number): string {
  const at = index % cursor.length;
  return cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1);
}

const getPet = fc
  .record({
    method: readMethod,
    id: fc.oneof(
      { weight: 4, arbitrary: fc.nat() },
      int64.map((value) => value.toString()),
      fc.constantFrom('abc', '1.5', '007', '-0', '9223372036854775808'),
      // Clients remove `.` and `..` before they send the path.
      fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }).filter((segment) => !/^\.{1,2}$/.test(segment)),
    ),
    query: fc.constantFrom('', '', '?', '?limit=0', '?%ff'),
    ifNoneMatch,
  })
  .map(({ method, id, query, ifNoneMatch }) =>
    plan('getPet', () => {
      const pet = typeof id === 'number' ? pick(pets, id) : pets.find((candidate) => candidate.id === id);
      return {
        method,
        path: `/v1/pets/${encodeURIComponent(typeof id === 'string' ? id : (pet?.id ?? '0'))}${query}`,
        verdict: !pet ? no(404, 'pet_not_found') : ok(ifNoneMatch === '*' ? 304 : 200),
        headers: { 'if-none-match': ifNoneMatch },
        verify: (answer) => {
          if (answer.status === 200 && method === 'GET') expect(answer.text).toBe(pet?.text);
        },
      };
    }),
  );

const createPet = fc
  .record({
    body: fc.oneof({ weight: 9, arbitrary: objectBody }, otherBody),
    chunked: fc.boolean(),
    /** The body is padded to this length. */
    pad: rarely(fc.integer({ min: MAX_BODY_BYTES - 3, max: MAX_BODY_BYTES + 3 }), 9, 0),
  })
  .map(({ body: { bytes, members, verdict }, chunked, pad }) =>
    plan('createPet', () => {
      const body = Buffer.concat([bytes, Buffer.alloc(Math.max(0, pad - bytes.length), ' ')]);
      return {
        method: 'POST',
        path: '/v1/pets',
        verdict: body.length > MAX_BODY_BYTES ? no(413, 'body_too_large') : verdict,
        body,
        headers: chunked ? { 'content-length': undefined, 'transfer-encoding': 'chunked' } : {},
        verify: async (answer) => {
          if (answer.status !== 201) return;
          const id = /^\{"id":([1-9]\d*),/.exec(answer.text)?.[1] ?? '';
          expect(answer.text).toBe(`{"id":${id},${members}}`);
          expect(answer.headers.location).toBe(`http://localhost:3000/v1/pets/${id}`);
          expect(BigInt(id)).toBeGreaterThan(BigInt(pets.at(-1)?.id ?? 0));
          pets.push({ id, status: (answer.json as { status: Status }).status, text: answer.text });
          expect((await app.client.get(`/v1/pets/${id}`)).text).toBe(answer.text);
        },
      };
    }),
  );

const anyPlan = fc.oneof(
  { weight: 6, arbitrary: createPet },
  { weight: 5, arbitrary: listPets },
  { weight: 3, arbitrary: getPet },
);

let app: TestApp;
let served: ServedDocument;

beforeAll(async () => {
  const settings = { LOG_LEVEL: 'warn', MAX_BODY_BYTES: String(MAX_BODY_BYTES), RATE_LIMIT_PER_MINUTE: '0' };
  app = await createTestApp({ settings });
  served = new ServedDocument((await app.client.get('/openapi.json')).text);
});
afterAll(() => app.close());

async function attempt(make: () => Probe): Promise<void> {
  const { operation, method, path, headers, body, verdict, verify } = make();
  const answer = await app.client.send(method, path, { headers, body });
  try {
    expectVerdict(answer, verdict, method);
    expect(served.faultsOf(OPERATIONS[operation].place, answer, method !== 'HEAD')).toEqual([]);
    await verify?.(answer);
  } catch (error) {
    const { status: got, headers: fields, text } = answer;
    throw new Error(
      `${method} ${path} ${JSON.stringify(headers)} ${JSON.stringify(body?.toString().slice(0, 2_000))}\n` +
        `expected ${JSON.stringify(verdict)}\ngot ${got} ${JSON.stringify(fields)} ${text.slice(0, 2_000)}\n` +
        (error as Error).message,
      { cause: error },
    );
  }
  happened.add(`${operation} ${verdict.status} ${verdict.code ?? ''}`.trim());
}

function expectVerdict(answer: HttpAnswer, { status: expected, code, faults }: Verdict, method: string): void {
  expect(answer.status).toBe(expected);
  if (code === undefined || method === 'HEAD') return;
  const body = answer.json as { code: string; message: string; status: number };
  expect(body).toEqual({ code, message: expect.any(String) as string, status: expected });
  if (faults) expect(body.message.split('; ').map((clause) => clause.split(' ')[0])).toEqual(faults);
}

test(
  'every valid request is accepted, every invalid one refused as expected, and every response is as the document says',
  async () => {
    await fc.assert(fc.asyncProperty(anyPlan, attempt), { seed: SEED, numRuns: REQUESTS });
    const expected = Object.entries(OPERATIONS).flatMap(([operation, { outcomes }]) =>
      outcomes.map((outcome) => `${operation} ${outcome}`),
    );
    expect(expected.filter((outcome) => !happened.has(outcome))).toEqual([]);
  },
  60_000 + REQUESTS * 20,
);

test('after the run the catalogue contains exactly the created pets, and the log no warning and no error', async () => {
  const walked: string[] = [];
  for (let query: string | undefined = 'limit=100'; query !== undefined;) {
    const page: HttpAnswer = await app.client.get(`/v1/pets?${query}`);
    expect(page.status).toBe(200);
    walked.push(page.text.slice(1, -1));
    query = nextOf(page)?.toString();
  }
  expect(walked.join()).toBe(pets.map(({ text }) => text).join());
  expect(app.log.lines).toEqual([]);
}, 120_000);
