import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import fc from 'fast-check';
import { MAX_NAME_LENGTH } from '../../src/pets/pet.entity.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/*
 * Valid and invalid requests to all operations. The expected response follows from the way in which each
 * request was generated, and from a model of the catalogue, without any code of the service. Every response must also
 * be one that the served document describes.
 *
 * The environment variable FUZZ_REQUESTS sets the number of requests (`.ci/nightly` sends 20,000) and FUZZ_SEED the
 * seed; a failure prints the seed. The same seed makes the same requests.
 */
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 2_000);
const SEED = Number(process.env.FUZZ_SEED ?? 20301205);
const MAX_BODY_BYTES = 65_536;

// ---- Expected responses ---------------------------------------------------------------------------------------------

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
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string | undefined>;
  readonly body?: Buffer;
  /** Path and method in the document. */
  readonly operation: readonly [path: string, method: string];
  readonly verdict: Verdict;
  /** Further checks of the expected response. */
  readonly verify?: (answer: HttpAnswer) => void | Promise<void>;
}

/** A request that is generated only when it is sent, because it depends on earlier responses. */
class Plan {
  constructor(
    readonly label: string,
    readonly make: () => Probe,
  ) {}

  /** For reports of failures. */
  [fc.toStringMethod](): string {
    return this.label;
  }
}

type Status = 'available' | 'pending' | 'sold';
const STATUSES: readonly Status[] = ['available', 'pending', 'sold'];

/** A pet as the service must return it, byte by byte. */
interface KnownPet {
  readonly id: string;
  readonly status: Status;
  readonly text: string;
}

/** A cursor that the service has issued, and its meaning: it continues after `seen` pets of the catalogue. */
interface KnownCursor {
  readonly text: string;
  readonly status: Status | undefined;
  readonly seen: number;
}

/** All pets of the catalogue, by ascending id. */
const pets: KnownPet[] = [];
const cursors: KnownCursor[] = [];

/** Kinds of responses that the run has met; all were as expected. */
const happened = new Set<string>();

/** A value once in `odds` + 1 times, else `usual`. */
const rarely = <T, U>(value: fc.Arbitrary<T>, odds: number, usual: U): fc.Arbitrary<T | U> =>
  fc.oneof({ weight: odds, arbitrary: fc.constant(usual) }, value);

const pick = <T>(items: readonly T[], index: number): T | undefined => items[index % Math.max(items.length, 1)];

// ---- JSON texts, valid and faulty ------------------------------------------------------------------------------------

/** The text of a JSON value, and the text that the service must return for it; undefined for an invalid value. */
interface Value {
  readonly text: string;
  readonly canonical?: string;
}

const invalid = (text: string): Value => ({ text });

/** A string as JSON: as JSON.stringify spells it, or with every UTF-16 unit escaped. */
function spellString(value: string, isEscaped: boolean): string {
  if (!isEscaped) return JSON.stringify(value);
  const units = Array.from({ length: value.length }, (_, index) => value.charCodeAt(index));
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`;
}

const text = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  fc.string({
    unit: fc.constantFrom('🐕', 'e\u0301', ' ', '\u00a0', '\ufeff', '\u2028', '"', '\\', '\n'),
    maxLength: 9,
  }),
  fc
    .tuple(fc.constantFrom('a', 'é', '🐕', ' ', '\ud83d'), fc.integer({ min: 120, max: 270 }))
    .map(([unit, count]) => unit.repeat(count)),
);
const name: fc.Arbitrary<Value> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.tuple(text, fc.boolean()).map(([value, isEscaped]) => {
      const length = Array.from(value).length;
      const isStorable = !value.includes('\0') && Buffer.from(value).toString() === value;
      const isName = length >= 1 && length <= MAX_NAME_LENGTH && value.trim() !== '' && isStorable;
      return { text: spellString(value, isEscaped), ...(isName && { canonical: JSON.stringify(value) }) };
    }),
  },
  fc.constantFrom('7', 'null', '[]', '""', '" \\u2003"', '"\\u0000"').map(invalid),
);

const MAX = 2n ** 63n - 1n;
const MIN = -(2n ** 63n);
const int64 = fc.oneof(
  fc.bigInt({ min: MIN, max: MAX }),
  fc.bigInt({ min: -1000n, max: 1000n }),
  fc.constantFrom(MIN, 2n ** 53n + 1n, -(2n ** 53n) - 1n, MAX - 1n, MAX, 10n ** 18n),
);
const categoryId: fc.Arbitrary<Value> = fc.oneof(
  {
    weight: 16,
    arbitrary: fc
      .tuple(int64, fc.constantFrom('', '', '.0', '.000', 'E+0'))
      .map(([value, behind]) => ({ text: `${value}${behind}`, canonical: value.toString() })),
  },
  fc.bigInt({ min: MAX + 1n, max: MAX * 100n }).map((value) => invalid(`${value}`)),
  fc.tuple(int64, fc.integer({ min: 1, max: 999 })).map(([value, fraction]) => invalid(`${value}.${fraction}`)),
  fc.constantFrom('1e1000000000', '1e-1000000000', '"1"', 'true', 'null', '[1]').map(invalid),
);

const status: fc.Arbitrary<Value | undefined> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.constantFrom(...STATUSES), fc.boolean())
      .map(([value, isEscaped]) => ({ text: spellString(value, isEscaped), canonical: `"${value}"` })),
  },
  fc.constantFrom('null', '""', '"Available"', '0', '["sold"]').map(invalid),
);

const foreignMembers = fc.uniqueArray(
  fc.record({
    name: fc.oneof(
      fc.constantFrom('id', '__proto__', 'constructor', 'Name', ''),
      fc.string({ unit: 'binary', maxLength: 8 }).filter((other) => !['name', 'categoryId', 'status'].includes(other)),
    ),
    text: fc.oneof(
      fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value)),
      fc.constantFrom('1e99999', '-0.0', '"\\u0000\\ud800"', '['.repeat(31) + ']'.repeat(31)),
    ),
  }),
  { maxLength: 3, selector: (member) => member.name },
);

/** Functions that break the JSON text of an object, whatever its members are, and the code of the result. */
const BREAKAGES: (readonly [code: string, breakUp: (text: string) => string])[] = [
  ['malformed_json', (object) => object.slice(0, -1)],
  ['malformed_json', (object) => object.slice(1)],
  ['malformed_json', (object) => object.replace(/}$/, ',}')],
  ['malformed_json', (object) => object.replace(/^{/, '{"tag":01,')],
  ['body_too_complex', (object) => object.replace(/^{/, `{"tag":${'['.repeat(32)}${']'.repeat(32)},`)],
  ['body_too_complex', (object) => object.replace(/^{/, `{"tag":[${'1,'.repeat(12_000)}1],`)],
  ['malformed_json', (object) => object.replace(/^{/, '{"n\\u0061me":1,"name":1,')],
];

interface JsonBody {
  readonly bytes: Buffer;
  readonly verdict: Verdict;
  /** The members after `id` of the pet that the service must return. */
  readonly members?: string;
  readonly status?: Status;
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
  .map(
    ({
      name,
      categoryId,
      status = { text: '', canonical: '"available"' },
      foreign,
      turn,
      space,
      breakage,
    }): JsonBody => {
      const own = Object.entries({ name, categoryId, status }).filter(
        ([, value]) => value !== undefined && value.text !== '',
      );
      const members = [
        ...own.map(([member, value]) => [JSON.stringify(member), (value as Value).text]),
        ...foreign.map((member) => [JSON.stringify(member.name), member.text]),
      ].map((pair) => pair.join(`${space}:${space}`));
      members.unshift(...members.splice(turn));
      const object = `{${members.join(`${space},${space}`)}}`;
      if (breakage) return { bytes: Buffer.from(breakage[1](object)), verdict: no(400, breakage[0]) };
      const bytes = Buffer.from(`${space}${object}${space}`);
      const faults = Object.entries({ name, categoryId, status }).flatMap(([member, value]) =>
        value?.canonical === undefined ? [member] : [],
      );
      if (faults.length > 0) return { bytes, verdict: no(400, 'validation_failed', faults) };
      return {
        bytes,
        verdict: ok(201),
        members: `"name":${name?.canonical},"categoryId":${categoryId?.canonical},"status":${status.canonical}`,
        status: JSON.parse(String(status.canonical)) as Status,
      };
    },
  );

const otherBody = fc.oneof(
  fc
    .constantFrom('[{"name":"Rex","categoryId":7}]', '"Rex"', '1e999', 'null', ' false ')
    .map((sent): JsonBody => ({ bytes: Buffer.from(sent), verdict: no(400, 'validation_failed', ['the']) })),
  fc
    .uint8Array({ minLength: 1, maxLength: 40 })
    .map((bytes) => Buffer.from(bytes))
    // Random text that happens to be JSON is not garbage; JSON.parse decides.
    .filter((bytes) => !isJson(bytes))
    .map((bytes): JsonBody => ({ bytes, verdict: no(400, 'malformed_json') })),
);

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString());
    return true;
  } catch {
    return false;
  }
}

// ---- The operations --------------------------------------------------------------------------------------------------

const readMethod = fc.constantFrom('GET', 'GET', 'GET', 'GET', 'HEAD');
const ifNoneMatch = fc.constantFrom(undefined, undefined, 'W/"other"', 'garbage', '', '*');

const wrongParameter = fc.oneof(
  fc.record({ limit: fc.constantFrom('0', '101', '-1', '', '1.5', '1e1', '05', ' 5', '٥', '1'.repeat(400)) }),
  fc.record({ limit: fc.string({ maxLength: 6 }).filter((value) => !/^\d+$/.test(value)) }),
  fc.record({ status: fc.constantFrom('', 'SOLD', 'sold ', 'available,sold', 'sold\0', '__proto__') }),
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

const listPets: fc.Arbitrary<Plan> = fc
  .record({
    method: readMethod,
    limit: fc.option(fc.integer({ min: 1, max: 100 }), { freq: 3, nil: undefined }),
    status: fc.option(fc.constantFrom(...STATUSES), { freq: 2, nil: undefined }),
    cursor: cursorUse,
    wrong: rarely(wrongParameter, 5, undefined),
    turn: fc.nat(3),
    ifNoneMatch,
  })
  .map(
    ({ method, limit, status, cursor, wrong, turn, ifNoneMatch }) =>
      new Plan('listPets', () => {
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
        const path = `/v1/pets${search === '' ? '' : `?${search}`}`;
        const matching = pets.slice(seen).filter((pet) => status === undefined || pet.status === status);
        const page = matching.slice(0, limit ?? 20);
        return {
          method,
          path,
          operation: ['/pets', 'get'],
          verdict: verdict.status === 200 && ifNoneMatch === '*' ? ok(304) : verdict,
          headers: { 'if-none-match': ifNoneMatch },
          verify: (answer) => {
            if (verdict.status !== 200) return;
            if (page.length > 0) happened.add(`listPets ${seen > 0 ? 'next' : 'first'} page of ${status ?? 'all'}`);
            if (method === 'GET' && answer.status === 200) {
              expect(answer.text).toBe(`[${page.map((pet) => pet.text).join()}]`);
            }
            const link = /^<http:\/\/localhost:3000\/v1\/pets\?([^>]+)>; rel="next"$/.exec(
              String(answer.headers.link),
            )?.[1];
            expect(link !== undefined).toBe(matching.length > page.length);
            if (link !== undefined) {
              const next = new URLSearchParams(link);
              expect([next.get('limit'), next.get('status')]).toEqual([String(limit ?? 20), status ?? null]);
              const last = pets.indexOf(page.at(-1) as KnownPet) + 1;
              if (cursors.length < 500) cursors.push({ text: next.get('cursor') ?? '', status, seen: last });
            }
          },
        };
      }),
  );

/** A cursor with one other character. */
function changed(cursor: string, index: number): string {
  const at = index % cursor.length;
  return cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1);
}

const getPet: fc.Arbitrary<Plan> = fc
  .record({
    method: readMethod,
    id: fc.oneof(
      { weight: 4, arbitrary: fc.nat() },
      int64.map((value) => value.toString()),
      fc.constantFrom('abc', '1.5', '007', '-0', '9223372036854775808', '1'.repeat(4_000)),
      // Clients remove `.` and `..` before they send the path.
      fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }).filter((segment) => !/^\.{1,2}$/.test(segment)),
    ),
    query: fc.constantFrom('', '', '?', '?limit=0', '?%ff'),
    ifNoneMatch,
  })
  .map(
    ({ method, id, query, ifNoneMatch }) =>
      new Plan('getPet', () => {
        const pet = typeof id === 'number' ? pick(pets, id) : pets.find((candidate) => candidate.id === id);
        const path = `/v1/pets/${encodeURIComponent(typeof id === 'string' ? id : (pet?.id ?? '0'))}${query}`;
        return {
          method,
          path,
          operation: ['/pets/{petId}', 'get'],
          verdict: !pet ? no(404, 'pet_not_found') : ok(ifNoneMatch === '*' ? 304 : 200),
          headers: { 'if-none-match': ifNoneMatch },
          verify: (answer) => {
            if (answer.status === 200 && method === 'GET') expect(answer.text).toBe(pet?.text);
          },
        };
      }),
  );

const createPet: fc.Arbitrary<Plan> = fc
  .record({
    body: fc.oneof({ weight: 9, arbitrary: objectBody }, otherBody),
    chunked: fc.boolean(),
    /** The body is padded to this length. */
    pad: rarely(fc.integer({ min: MAX_BODY_BYTES - 3, max: MAX_BODY_BYTES + 3 }), 9, 0),
  })
  .map(
    ({ body, chunked, pad }) =>
      new Plan('createPet', () => {
        const rest = Math.max(0, pad - body.bytes.length);
        const bytes = Buffer.concat([body.bytes, Buffer.alloc(rest, ' ')]);
        const verdict = bytes.length > MAX_BODY_BYTES ? no(413, 'body_too_large') : body.verdict;
        return {
          method: 'POST',
          path: '/v1/pets',
          operation: ['/pets', 'post'],
          verdict,
          body: bytes,
          headers: {
            'content-type': 'application/json',
            ...(chunked && { 'content-length': undefined, 'transfer-encoding': 'chunked' }),
          },
          verify: async (answer) => {
            if (verdict.status !== 201) return;
            const id = /^\{"id":([1-9]\d*),/.exec(answer.text)?.[1] ?? '';
            expect(answer.text).toBe(`{"id":${id},${body.members}}`);
            expect(answer.headers.location).toBe(`http://localhost:3000/v1/pets/${id}`);
            expect(BigInt(id)).toBeGreaterThan(BigInt(pets.at(-1)?.id ?? 0));
            pets.push({ id, status: body.status as Status, text: answer.text });
            expect((await app.client.get(`/v1/pets/${id}`)).text).toBe(answer.text);
          },
        };
      }),
  );

// ---- The document ----------------------------------------------------------------------------------------------------

interface DocumentedHeader {
  required?: boolean;
  schema: object;
}
interface DocumentedResponse {
  headers?: Record<string, DocumentedHeader | { $ref: string }>;
  content?: Record<string, { schema: { $ref: string }; examples?: Record<string, unknown> }>;
}
interface Document {
  paths: Record<string, Record<string, { responses: Record<string, DocumentedResponse | { $ref: string }> }>>;
  components: object;
}

/** Header fields with a meaning for clients: a response may have only those that are documented for it. */
const MEANINGFUL_HEADERS = (
  'accept allow cache-control deprecation etag idempotent-replayed link location retry-after sunset ' +
  'vary www-authenticate x-request-id'
).split(' ');

class ServedDocument {
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly validators = new Map<unknown, ValidateFunction>();

  constructor(private readonly document: Document) {
    addFormatsModule.default(this.ajv);
    this.ajv.addSchema({ $id: 'document', ...document });
  }

  /** Differences between a response of an operation and the document; empty if there are none. */
  faultsOf([path, method]: readonly [string, string], answer: HttpAnswer, hasBody: boolean): string[] {
    const responses = this.document.paths[path]?.[method]?.responses ?? {};
    const response = this.resolve(responses[String(answer.status)] ?? responses.default);
    if (!response) return [`the status ${answer.status} is not documented`];
    return [...this.headerFaults(response, answer), ...this.bodyFaults(response, answer, hasBody)];
  }

  private headerFaults(response: DocumentedResponse, { headers }: HttpAnswer): string[] {
    const documented = Object.entries(response.headers ?? {}).map(
      ([field, header]) => [field.toLowerCase(), this.resolve(header)] as const,
    );
    const names = documented.map(([field]) => field);
    return [
      ...MEANINGFUL_HEADERS.filter((field) => headers[field] !== undefined && !names.includes(field)).map(
        (field) => `${field} is not documented`,
      ),
      ...documented.flatMap(([field, header]) => {
        const text = headers[field];
        if (text === undefined) return header?.required ? [`${field} is missing`] : [];
        const isNumber = (header?.schema as { type?: string }).type === 'integer';
        return this.schemaFaults(field, header?.schema ?? {}, isNumber ? Number(text) : text);
      }),
    ];
  }

  private bodyFaults(response: DocumentedResponse, answer: HttpAnswer, hasBody: boolean): string[] {
    const content = response.content?.['application/json'];
    if (!content) return answer.text === '' ? [] : ['it has a body'];
    if (answer.headers['content-type'] !== 'application/json')
      return [`the Content-Type is ${answer.headers['content-type']}`];
    if (!hasBody) return answer.text === '' ? [] : ['it has a body'];
    const body = JSON.parse(answer.text) as { code?: string };
    if (answer.status < 400) return this.schemaFaults('the body', content.schema, body);
    const isKnown = body.code !== undefined && content.examples !== undefined && body.code in content.examples;
    return [
      ...this.schemaFaults('the body', content.schema, body),
      ...(isKnown ? [] : [`the code ${body.code} is not documented`]),
    ];
  }

  private schemaFaults(what: string, schema: object, value: unknown): string[] {
    let validate = this.validators.get(schema);
    if (!validate) {
      const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as object;
      this.validators.set(schema, (validate = this.ajv.compile(absolute)));
    }
    return validate(value) ? [] : [`${what}: ${this.ajv.errorsText(validate.errors)}`];
  }

  private resolve<T extends object>(value: T | { $ref: string } | undefined): T | undefined {
    if (value === undefined || !('$ref' in value)) return value;
    const parts = value.$ref.slice(2).split('/');
    return parts.reduce<unknown>((node, part) => (node as Record<string, unknown>)[part], this.document) as T;
  }
}

// ---- The run ---------------------------------------------------------------------------------------------------------

const plan = fc.oneof(
  { weight: 6, arbitrary: createPet },
  { weight: 5, arbitrary: listPets },
  { weight: 3, arbitrary: getPet },
);

let app: TestApp;
let served: ServedDocument;

beforeAll(async () => {
  const settings = { LOG_LEVEL: 'warn', MAX_BODY_BYTES: String(MAX_BODY_BYTES), RATE_LIMIT_PER_MINUTE: '0' };
  app = await createTestApp({ settings });
  served = new ServedDocument((await app.client.get('/openapi.json')).json as Document);
});
afterAll(() => app.close());

async function attempt({ label, make }: Plan): Promise<void> {
  const probe = make();
  const { verdict, headers } = probe;
  const answer = await app.client.send(probe.method, probe.path, { headers, body: probe.body });
  try {
    expectVerdict(answer, verdict, probe.method);
    expect(served.faultsOf(probe.operation, answer, probe.method !== 'HEAD')).toEqual([]);
    await probe.verify?.(answer);
  } catch (error) {
    const body = JSON.stringify(probe.body?.toString().slice(0, 2_000));
    const { status: got, headers: fields, text } = answer;
    throw new Error(
      `${probe.method} ${probe.path} ${JSON.stringify(headers)} ${body}\nexpected ${JSON.stringify(verdict)}\n` +
        `got ${got} ${JSON.stringify(fields)} ${text.slice(0, 2_000)}\n${(error as Error).message}`,
      { cause: error },
    );
  }
  happened.add(`${label} ${verdict.status} ${verdict.code ?? ''}`.trim());
}

function expectVerdict(answer: HttpAnswer, { status: expected, code, faults }: Verdict, method: string): void {
  expect(answer.status).toBe(expected);
  if (code === undefined || method === 'HEAD') return;
  const body = answer.json as { code: string; message: string; status: number };
  expect(body).toEqual({ code, message: expect.any(String) as string, status: expected });
  if (faults) expect(body.message.split('; ').map((clause) => clause.split(' ')[0])).toEqual(faults);
}

/** Kinds of responses that a run must have met to be meaningful. */
const OUTCOMES: Record<string, string[]> = {
  listPets: [
    ...['first', 'next'].flatMap((page) => ['all', ...STATUSES].map((status) => `${page} page of ${status}`)),
    ...['200', '304', '400 invalid_parameter', '400 invalid_cursor'],
  ],
  createPet: ['201', '400 malformed_json', '400 body_too_complex', '400 validation_failed', '413 body_too_large'],
  getPet: ['200', '304', '404 pet_not_found'],
};

test(
  'every valid request is accepted, every invalid one refused as expected, and every response is as the document says',
  async () => {
    await fc.assert(fc.asyncProperty(plan, attempt), {
      seed: SEED,
      numRuns: REQUESTS,
    });
    const expected = Object.entries(OUTCOMES).flatMap(([label, outcomes]) =>
      outcomes.map((outcome) => `${label} ${outcome}`),
    );
    expect(expected.filter((outcome) => !happened.has(outcome))).toEqual([]);
  },
  60_000 + REQUESTS * 20,
);

test('after the run the catalogue contains exactly the created pets', async () => {
  const walked: string[] = [];
  for (let path: string | undefined = '/v1/pets?limit=100'; path !== undefined;) {
    const page: HttpAnswer = await app.client.get(path);
    expect(page.status).toBe(200);
    walked.push(page.text.slice(1, -1));
    path = /^<http:\/\/localhost:3000([^>]+)>; rel="next"$/.exec(String(page.headers.link))?.[1];
  }
  expect(walked.join()).toBe(pets.map(({ text }) => text).join());
}, 120_000);

test('the log of the run has no warning and no error', () => {
  expect(app.log.lines).toEqual([]);
});
