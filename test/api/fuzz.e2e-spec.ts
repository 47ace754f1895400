import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import fc from 'fast-check';
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/*
 * Valid and invalid requests to all operations. The expected answer follows from the way in which each
 * request was generated, and from a model of the catalogue, without any code of the service. Every answer must also be one
 * that the served document describes.
 *
 * The environment variable FUZZ_REQUESTS sets the number of requests (`npm run test:fuzz` sends 20,000) and FUZZ_SEED the
 * seed; a failure prints the seed. The same seed makes the same requests.
 */
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 2_000);
const SEED = Number(process.env.FUZZ_SEED ?? 20301205);
const MAX_BODY_BYTES = 65_536;

// ---- Expected answers ------------------------------------------------------------------------------------------------

/** The expected answer: its status, the code if it is an Error, and the names that its message must criticise. */
interface Verdict {
  readonly status: number;
  readonly code?: string;
  readonly faults?: readonly string[];
}

const ok = (status: number): Verdict => ({ status });
const no = (status: number, code: string, faults?: readonly string[]): Verdict => ({
  status,
  code,
  ...(faults && { faults }),
});

type Status = 'available' | 'pending' | 'sold';
const STATUSES: readonly Status[] = ['available', 'pending', 'sold'];

/** An animal as the service must return it, byte by byte. */
interface KnownPet {
  readonly id: string;
  readonly status: Status;
  readonly text: string;
}

/** A cursor that the service has issued, and its meaning: it continues after `seen` animals of the catalogue. */
interface KnownCursor {
  readonly text: string;
  readonly status: Status | undefined;
  readonly seen: number;
}

/** All animals of the catalogue, by ascending id. */
const pets: KnownPet[] = [];
const cursors: KnownCursor[] = [];

/** Kinds of answers that the run has met; all were as expected. */
const happened = new Set<string>();
const note = (outcome: string): void => void happened.add(outcome);

const pick = <T>(items: readonly T[], index: number): T | undefined => items[index % Math.max(items.length, 1)];

// ---- Keys and header fields ------------------------------------------------------------------------------------------

interface Credentials {
  /** Label in `keys`, or the literal value of the field; undefined sends no field. */
  readonly key?: string;
  readonly field?: string;
  readonly refusal?: Verdict;
}

/** Secrets by label, created by the service before the first request. */
const keys: Record<string, string> = {};

const credentials: fc.Arbitrary<Credentials> = fc.oneof(
  { weight: 60, arbitrary: fc.constant({ key: 'good' }) },
  fc.constant({ refusal: no(401, 'missing_api_key') }),
  fc.constantFrom('Bearer a b', 'Basic cGV0czpwZXRz').map((field) => ({ field, refusal: no(401, 'missing_api_key') })),
  fc.constantFrom('mistyped', 'unknown').map((key) => ({ key, refusal: no(401, 'invalid_api_key') })),
  fc.constant({ key: 'revoked', refusal: no(401, 'revoked_api_key') }),
  fc.constant({ key: 'expired', refusal: no(401, 'expired_api_key') }),
  fc.constant({ key: 'metrics', refusal: no(403, 'insufficient_scope') }),
);

// ---- JSON texts, valid and faulty ------------------------------------------------------------------------------------

/** The text of a JSON value; `isValid` says whether it is valid for its member. */
interface Value {
  readonly text: string;
  readonly isValid: boolean;
  /** The text that the service must return for it. */
  readonly canonical?: string;
}

const valid = (text: string, canonical: string): Value => ({ text, isValid: true, canonical });
const invalid = (text: string): Value => ({ text, isValid: false });

/** A string as JSON: as JSON.stringify spells it, or with every UTF-16 unit escaped. */
function spellString(value: string, isEscaped: boolean): string {
  if (!isEscaped) return JSON.stringify(value);
  const units = Array.from({ length: value.length }, (_, index) => value.charCodeAt(index));
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`;
}

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({
    unit: fc.constantFrom('🐕', 'é', 'e\u0301', ' ', '\u00a0', '\ufeff', '\u2028', '"', '\\', '\n', "'"),
    maxLength: 12,
  }),
);
const longText = fc
  .tuple(fc.constantFrom('a', 'é', '🐕', ' ', '\u2764\ufe0f', '\ud83d'), fc.integer({ min: 120, max: 270 }))
  .map(([unit, count]) => unit.repeat(count));

const name: fc.Arbitrary<Value> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .tuple(fc.oneof({ weight: 4, arbitrary: anyText }, longText), fc.boolean())
      .map(([value, isEscaped]) => {
        const length = Array.from(value).length;
        const isStorable = !value.includes('\0') && Buffer.from(value).toString() === value;
        const isName = length >= 1 && length <= 255 && value.trim() !== '' && isStorable;
        const text = spellString(value, isEscaped);
        return isName ? valid(text, JSON.stringify(value)) : invalid(text);
      }),
  },
  fc.constantFrom('7', 'null', '[]', '{}', '""', '" \\u2003"', '"\\u0000"').map(invalid),
);

const MAX = 2n ** 63n - 1n;
const MIN = -(2n ** 63n);
const int64 = fc.oneof(
  fc.bigInt({ min: MIN, max: MAX }),
  fc.bigInt({ min: -1000n, max: 1000n }),
  fc.constantFrom(MIN, MIN + 1n, 2n ** 53n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, MAX - 1n, MAX, 0n, 10n ** 18n),
);

/** An integer in one of the spellings that JSON allows. */
function spellInteger(value: bigint, way: number, amount: number): string {
  switch (way) {
    case 1:
      return `${value}.${'0'.repeat(1 + amount)}`;
    case 2:
      return value === 0n ? `0e-${amount}` : `${value}${'0'.repeat(amount)}e-${amount}`;
    case 3:
      return value === 0n ? '-0' : `${value}E+0`;
    default:
      return value.toString();
  }
}

const categoryId: fc.Arbitrary<Value> = fc.oneof(
  {
    weight: 16,
    arbitrary: fc
      .tuple(int64, fc.nat(4), fc.nat(25))
      .map(([value, way, amount]) => valid(spellInteger(value, way, amount), value.toString())),
  },
  fc
    .oneof(fc.bigInt({ min: MAX + 1n, max: MAX * 100n }), fc.bigInt({ min: MIN * 100n, max: MIN - 1n }))
    .map((value) => invalid(`${value}`)),
  fc.tuple(int64, fc.integer({ min: 1, max: 999 })).map(([value, fraction]) => invalid(`${value}.${fraction}`)),
  fc.constantFrom('1e1000000000', '1e-1000000000', '9223372036854775807.5', '"1"', 'true', 'null', '[1]').map(invalid),
);

const status: fc.Arbitrary<Value | undefined> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.constantFrom(...STATUSES), fc.boolean())
      .map(([value, isEscaped]) => valid(spellString(value, isEscaped), `"${value}"`)),
  },
  fc.constantFrom('null', '""', '"Available"', '"sold "', '0', '["sold"]').map(invalid),
);

const foreignName = fc.oneof(
  fc.constantFrom('id', '__proto__', 'constructor', 'toString', 'Name', ''),
  fc.string({ unit: 'binary', maxLength: 8 }).filter((text) => !['name', 'categoryId', 'status'].includes(text)),
);
const foreignMembers = fc.uniqueArray(
  fc.record({
    name: foreignName,
    isEscaped: fc.boolean(),
    value: fc.oneof(
      fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value)),
      fc.constantFrom(
        '[{"a":[1,2,{"b":null}]}]',
        '1e99999',
        '-0.0',
        '"\\u0000\\ud800"',
        '['.repeat(31) + ']'.repeat(31),
      ),
    ),
  }),
  { maxLength: 3, selector: (member) => member.name },
);

/** Functions that break the JSON text of an object. Each result is malformed, whatever the members are. */
const BREAKAGES: ((text: string) => string)[] = [
  (text) => text.slice(0, -1),
  (text) => text.slice(1),
  (text) => `${text}x`,
  (text) => text.replace(/}$/, ',}'),
  (text) => text.replace(/^{/, '{"tag" 1,'),
  (text) => text.replace(/^{/, '{"tag":01,'),
  (text) => text.replace(/^{/, '{"tag":"a\nb",'),
  (text) => text.replace(/^{/, '{"tag":"\\x41",'),
  (text) => text.replace(/^{/, `{"tag":${'['.repeat(32)}${']'.repeat(32)},`),
  (text) => text.replace(/^{/, `{"tag":[${'1,'.repeat(8_000)}1],`),
  (text) => text.replace(/^{/, '{"n\\u0061me":1,"name":1,'),
  (text) => text.replace(/^{/, '{"__proto__":1,"__proto__":2,'),
];

/** Bytes that are not UTF-8, to be put into a string. */
const NOT_UTF8 = ['ff', 'c0af', 'eda080'].map((hex) => Buffer.from(hex, 'hex'));

interface JsonBody {
  readonly bytes: Buffer;
  readonly verdict: Verdict;
  /** The members after `id` of the animal that the service must return. */
  readonly members?: string;
  readonly status?: Status;
}

const spaces = fc.array(fc.constantFrom('', '', '', ' ', '\n', '\t', '\r\n', '   '), { minLength: 1, maxLength: 8 });

const objectBody = fc
  .record({
    name: fc.option(name, { freq: 12, nil: undefined }),
    categoryId: fc.option(categoryId, { freq: 12, nil: undefined }),
    status,
    foreign: foreignMembers,
    order: fc.array(fc.nat(99), { minLength: 6, maxLength: 6 }),
    isEscaped: fc.boolean(),
    spaces,
    breakage: fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, fc.nat(BREAKAGES.length - 1)),
    notUtf8: fc.oneof({ weight: 50, arbitrary: fc.constant(undefined) }, fc.constantFrom(...NOT_UTF8)),
  })
  .map((parts): JsonBody => {
    const own = (['name', 'categoryId', 'status'] as const).flatMap((member) => {
      const value = parts[member];
      return value ? [[spellString(member, member === 'name' && parts.isEscaped), value.text] as const] : [];
    });
    const members = [
      ...own,
      ...parts.foreign.map((member) => [spellString(member.name, member.isEscaped), member.value] as const),
    ]
      .map((member, index) => ({ member, rank: parts.order[index] ?? 0 }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ member }) => member);
    let at = 0;
    const space = (): string => parts.spaces[at++ % parts.spaces.length] ?? '';
    const inner = members.map(([key, value]) => `${space()}${key}${space()}:${space()}${value}${space()}`).join(',');
    const text = `{${inner}}`;
    const breakage = parts.breakage === undefined ? undefined : BREAKAGES[parts.breakage];
    if (parts.notUtf8) {
      const bytes = Buffer.concat([Buffer.from('{"tag":"'), parts.notUtf8, Buffer.from(`",${text.slice(1)}`)]);
      return { bytes, verdict: no(400, 'malformed_json') };
    }
    // Malformed even without members: then at least a trailing comma is left.
    if (breakage) return { bytes: Buffer.from(breakage(text)), verdict: no(400, 'malformed_json') };
    const faults = [
      ...(parts.name?.isValid ? [] : ['name']),
      ...(parts.categoryId?.isValid ? [] : ['categoryId']),
      ...(parts.status === undefined || parts.status.isValid ? [] : ['status']),
    ];
    const bytes = Buffer.from(`${space()}${text}${space()}`);
    if (faults.length > 0) return { bytes, verdict: no(400, 'validation_failed', faults) };
    const statusText = parts.status?.canonical ?? '"available"';
    return {
      bytes,
      verdict: ok(201),
      members: `"name":${parts.name?.canonical},"categoryId":${parts.categoryId?.canonical},"status":${statusText}`,
      status: JSON.parse(statusText) as Status,
    };
  });

const otherBody = fc.oneof(
  fc
    .constantFrom('[{"name":"Rex","categoryId":7}]', '"Rex"', '1e999', 'null', ' false ')
    .map((text): JsonBody => ({ bytes: Buffer.from(text), verdict: no(400, 'validation_failed', ['the']) })),
  fc
    .oneof(
      fc.uint8Array({ minLength: 1, maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      fc.string({ unit: 'binary', minLength: 1 }).map((text) => Buffer.from(text)),
    )
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

/** A request and its expected answer. */
interface Probe {
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string | undefined>;
  readonly body?: Buffer;
  /** Path and method in the document. */
  readonly operation: readonly [path: string, method: string];
  /** The operation requires the scope pets:write. */
  readonly writes?: boolean;
  /** The fault is found before the API key is checked. */
  readonly early?: Verdict;
  readonly verdict: Verdict;
  /** Further checks of the expected answer. */
  readonly verify?: (answer: HttpAnswer) => void | Promise<void>;
}

/** A request that is generated only when it is sent, because it depends on earlier answers. */
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

const LIST = ['/pets', 'get'] as const;
const CREATE = ['/pets', 'post'] as const;
const GET = ['/pets/{petId}', 'get'] as const;

const readMethod = fc.oneof({ weight: 6, arbitrary: fc.constant('GET') }, fc.constant('HEAD'));

/** An encoded part of a query, which may percent-encode characters without need. */
function encode(text: string, isEncoded: boolean): string {
  // Percent-encoded, the longest texts could exceed the limit of the header section instead of that of the path.
  if (text.length > 1_000) return text;
  if (!isEncoded) return encodeURIComponent(text);
  return encodeURIComponent(text).replace(
    /[a-z](?![^%]?[A-F0-9]?%)/g,
    (letter) => `%${letter.charCodeAt(0).toString(16)}`,
  );
}

const wrongLimit = fc.oneof(
  fc.constantFrom('0', '-1', '', '1.5', '1e1', '05', '0x10', ' 5', '٥', '1'.repeat(400)),
  fc.integer({ min: 101 }).map(String),
  fc.string({ maxLength: 6 }).filter((text) => !/^\d+$/.test(text)),
);
const wrongStatus = fc.oneof(
  fc.constantFrom('', 'SOLD', 'sold ', 'available,sold', 'sold\0', '__proto__'),
  fc.string({ maxLength: 8 }).filter((text) => !STATUSES.includes(text as Status)),
);
const unknownParameter = fc.oneof(
  fc.constantFrom('page', 'Limit', 'limit[]', 'stauts', '__proto__', ''),
  fc.string({ unit: 'binary', maxLength: 10 }).filter((text) => !['limit', 'status', 'cursor'].includes(text)),
);

/** Changes of a cursor, all of which the service must notice. */
const TAMPERINGS: ((text: string, at: number) => string)[] = [
  (text, at) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1),
  // The neighbouring character differs only in its last bit, which the last character of a cursor may not even use.
  (text) => text.slice(0, -1) + neighbour(text.slice(-1)),
  (text, at) => text.slice(0, at) + text.slice(at + 1),
  () => '',
];

function neighbour(character: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return alphabet.charAt(alphabet.indexOf(character) ^ 1);
}

const cursorUse = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  { weight: 4, arbitrary: fc.record({ index: fc.nat(), fits: fc.constantFrom(true, true, true, false) }) },
  fc.record({ index: fc.nat(), tampering: fc.nat(TAMPERINGS.length - 1), at: fc.nat(30) }),
  fc.record({ text: fc.oneof(fc.string({ unit: 'binary', maxLength: 30 }), fc.base64String({ maxLength: 40 })) }),
);

const listPets: fc.Arbitrary<Plan> = fc
  .record({
    method: readMethod,
    limit: fc.option(fc.integer({ min: 1, max: 100 }), { freq: 3, nil: undefined }),
    status: fc.option(fc.constantFrom(...STATUSES), { freq: 2, nil: undefined }),
    cursor: cursorUse,
    wrong: fc.oneof(
      { weight: 12, arbitrary: fc.constant(undefined) },
      wrongLimit.map((text) => ({ limit: text })),
      wrongStatus.map((text) => ({ status: text })),
      fc.tuple(unknownParameter, fc.string({ maxLength: 4 })).map(([parameter, text]) => ({ [parameter]: text })),
      fc.constantFrom('limit', 'status', 'cursor').map((twice) => ({ twice })),
      fc.integer({ min: 8_200, max: 9_000 }).map((length) => ({ x: 'x'.repeat(length) })),
    ),
    order: fc.nat(5),
    isEncoded: fc.boolean(),
    ifNoneMatch: fc.constantFrom(undefined, undefined, undefined, 'W/"other"', 'garbage', '', '*', 'same', 'same'),
  })
  .map(
    ({ method, limit, status, cursor, wrong, order, isEncoded, ifNoneMatch }) =>
      new Plan('listPets', () => {
        const query = new Map<string, string>();
        if (limit !== undefined) query.set('limit', String(limit));
        if (status !== undefined) query.set('status', status);
        let seen = 0;
        let verdict = ok(200);
        if (cursor && 'text' in cursor) {
          query.set('cursor', cursor.text);
          verdict = no(400, 'invalid_cursor', ['cursor']);
        } else if (cursor) {
          const ownList = cursors.filter((candidate) => candidate.status === status);
          const known = pick('fits' in cursor && cursor.fits ? ownList : cursors, cursor.index);
          if (known && 'tampering' in cursor) {
            query.set('cursor', TAMPERINGS[cursor.tampering]?.(known.text, cursor.at % known.text.length) ?? '');
            verdict = no(400, 'invalid_cursor', ['cursor']);
          } else if (known) {
            query.set('cursor', known.text);
            seen = known.seen;
            if (known.status !== status) verdict = no(400, 'invalid_cursor', ['cursor']);
          }
        }
        const pairs = [...query];
        for (const [parameter, text] of Object.entries(wrong ?? {})) {
          if (parameter === 'twice') pairs.push([text, query.get(text) ?? '5'], [text, query.get(text) ?? '5']);
          else if (query.has(parameter)) pairs.splice([...query.keys()].indexOf(parameter), 1, [parameter, text]);
          else pairs.push([parameter, text]);
          verdict = no(400, 'invalid_parameter');
        }
        for (let turn = 0; turn < order; turn++) pairs.push(...pairs.splice(0, 1));
        const text = pairs.map(([key, value]) => `${encode(key, isEncoded)}=${encode(value, isEncoded)}`).join('&');
        const path = `/v1/pets${text === '' ? '' : `?${text}`}`;
        const matching = pets.slice(seen).filter((pet) => status === undefined || pet.status === status);
        const page = matching.slice(0, limit ?? 20);
        const hasNext = matching.length > page.length;
        const body = `[${page.map((pet) => pet.text).join()}]`;
        return {
          method,
          path,
          operation: LIST,
          ...(path.length > 8_192 && { early: no(414, 'uri_too_long') }),
          verdict: verdict.status === 200 && ifNoneMatch === '*' ? ok(304) : verdict,
          headers: { 'if-none-match': ifNoneMatch === 'same' ? undefined : ifNoneMatch },
          verify: async (answer) => {
            if (verdict.status !== 200) return;
            if (page.length > 0) note(`listPets ${seen > 0 ? 'next' : 'first'} page of ${status ?? 'all'}`);
            if (method === 'GET' && answer.status === 200) expect(answer.text).toBe(body);
            const link = /^<http:\/\/localhost:3000\/v1\/pets\?([^>]+)>; rel="next"$/.exec(
              String(answer.headers.link),
            )?.[1];
            expect(link !== undefined).toBe(hasNext);
            if (link !== undefined) {
              const next = new URLSearchParams(link);
              expect([next.get('limit'), next.get('status')]).toEqual([String(limit ?? 20), status ?? null]);
              const last = pets.indexOf(page.at(-1) as KnownPet) + 1;
              if (cursors.length < 500) cursors.push({ text: next.get('cursor') ?? '', status, seen: last });
            }
            if (ifNoneMatch === 'same') await expectUnchanged(method, path, answer);
          },
        };
      }),
  );

/** Repeats the request with the entity tag of its answer, and expects 304 without a body. */
async function expectUnchanged(method: string, path: string, { headers }: HttpAnswer): Promise<void> {
  const again = await app.client.send(method, path, { headers: { 'if-none-match': `"x", ${headers.etag}` } });
  expect([again.status, again.text, again.headers.etag]).toEqual([304, '', headers.etag]);
}

const getPet: fc.Arbitrary<Plan> = fc
  .record({
    method: readMethod,
    id: fc.oneof(
      { weight: 4, arbitrary: fc.nat().map((index) => ({ index })) },
      int64.map((value) => ({ text: value.toString() })),
      fc.constantFrom('abc', '1.5', '007', '-0', '9223372036854775808', '1'.repeat(4_000)).map((text) => ({ text })),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }).map((text) => ({ text })),
    ),
    query: fc.constantFrom('', '', '?', '?limit=0', '?status=lost&status=x', '?%ff'),
    isEncoded: fc.boolean(),
    ifNoneMatch: fc.constantFrom(undefined, undefined, 'W/"other"', '*', 'same'),
  })
  // Clients remove such segments before they send the path.
  .filter(({ id }) => !('text' in id) || !/^\.{1,2}$/.test(id.text))
  .map(
    ({ method, id, query, isEncoded, ifNoneMatch }) =>
      new Plan('getPet', () => {
        const pet = 'index' in id ? pick(pets, id.index) : pets.find((candidate) => candidate.id === id.text);
        const text = 'text' in id ? id.text : (pet?.id ?? '0');
        const path = `/v1/pets/${encode(text, isEncoded)}${query}`;
        return {
          method,
          path,
          operation: GET,
          ...(path.length > 8_192 && { early: no(414, 'uri_too_long') }),
          verdict: !pet ? no(404, 'pet_not_found') : ok(ifNoneMatch === '*' ? 304 : 200),
          headers: { 'if-none-match': ifNoneMatch === 'same' ? undefined : ifNoneMatch },
          verify: async (answer) => {
            expect(answer.headers['deprecation']).toBe('@1795132800');
            if (answer.status === 200 && method === 'GET') expect(answer.text).toBe(pet?.text);
            if (pet && ifNoneMatch === 'same') await expectUnchanged(method, path, answer);
          },
        };
      }),
  );

const contentType = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .constantFrom('application/json', 'Application/JSON', 'application/json;charset="UTF-8"')
      .map((text) => ({ text, isJson: true })),
  },
  fc
    .constantFrom(undefined, '', 'text/json', 'application/json; charset=latin1', 'application/merge-patch+json')
    .map((text) => ({ text, isJson: false })),
);

const createPet: fc.Arbitrary<Plan> = fc
  .record({
    body: fc.oneof({ weight: 9, arbitrary: objectBody }, otherBody),
    contentType,
    encoding: fc.oneof(
      { weight: 12, arbitrary: fc.constant(undefined) },
      fc.constantFrom('identity', 'gzip', 'br', 'gzip, identity'),
    ),
    chunked: fc.boolean(),
    pad: fc.oneof(
      { weight: 20, arbitrary: fc.constant(0) },
      fc.integer({ min: MAX_BODY_BYTES - 3, max: MAX_BODY_BYTES }),
      fc.integer({ min: MAX_BODY_BYTES + 1, max: MAX_BODY_BYTES + 3 }),
      fc.integer({ min: MAX_BODY_BYTES, max: 4 * MAX_BODY_BYTES }),
    ),
    missing: fc.oneof({ weight: 25, arbitrary: fc.constant(false) }, fc.constant(true)),
    query: fc.constantFrom('', '', '', '', '?', '?name=Max&limit=0'),
  })
  .map(
    ({ body, contentType: type, encoding, chunked, pad, missing, query }) =>
      new Plan('createPet', () => {
        const rest = Math.max(0, pad - body.bytes.length);
        const bytes = missing ? Buffer.alloc(0) : Buffer.concat([body.bytes, Buffer.alloc(rest, ' ')]);
        const isSupported = type.isJson && (encoding === undefined || encoding === 'identity');
        let { verdict } = body;
        if (missing && !chunked) verdict = no(400, 'missing_body');
        else if (!isSupported) verdict = no(415, 'unsupported_media_type');
        else if (bytes.length > MAX_BODY_BYTES) verdict = no(413, 'body_too_large');
        else if (missing) verdict = no(400, 'missing_body');
        return {
          method: 'POST',
          path: `/v1/pets${query}`,
          operation: CREATE,
          writes: true,
          verdict,
          body: bytes,
          headers: {
            'content-type': type.text,
            'content-encoding': encoding,
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

const plan = fc.oneof(
  { weight: 6, arbitrary: createPet },
  { weight: 5, arbitrary: listPets },
  { weight: 3, arbitrary: getPet },
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

/** Header fields with a meaning for clients: an answer may have only those that are documented for it. */
const MEANINGFUL_HEADERS = [
  ...[
    'accept',
    'allow',
    'cache-control',
    'deprecation',
    'etag',
    'idempotent-replayed',
    'link',
    'location',
    'petstore-stability',
    'retry-after',
  ],
  ...['sunset', 'vary', 'www-authenticate', 'x-request-id'],
];

class ServedDocument {
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly validators = new Map<unknown, ValidateFunction>();

  constructor(private readonly document: Document) {
    addFormatsModule.default(this.ajv);
    this.ajv.addSchema({ $id: 'document', ...document });
  }

  /** Differences between an answer of an operation and the document; empty if there are none. */
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

let app: TestApp;
let served: ServedDocument;

beforeAll(async () => {
  const settings = { LOG_LEVEL: 'warn', MAX_BODY_BYTES: String(MAX_BODY_BYTES), RATE_LIMIT_PER_MINUTE: '0' };
  app = await createTestApp({ settings });
  served = new ServedDocument((await app.client.get('/openapi.json')).json as Document);
  const service = app.nest.get(ApiKeysService);
  keys.good = app.apiKey;
  keys.mistyped = app.apiKey.slice(0, -1) + (app.apiKey.endsWith('0') ? '1' : '0');
  keys.unknown = 'unknown-key-of-another-service';
  keys.metrics = (await service.create({ client: 'metrics', scopes: ['metrics:read'] })).secret;
  keys.expired = (await service.create({ client: 'expired', expiresAt: new Date(Date.now() - 1) })).secret;
  const revoked = await service.create({ client: 'revoked' });
  keys.revoked = revoked.secret;
  await service.revoke(String(revoked.key.id));
});
afterAll(() => app.close());

async function attempt(sent: Credentials, { label, make }: Plan): Promise<void> {
  const probe = make();
  const verdict = probe.early ?? sent.refusal ?? probe.verdict;
  const authorization = sent.key === undefined ? sent.field : `Bearer ${keys[sent.key]}`;
  const headers = { authorization, ...probe.headers };
  const answer = await app.client.send(probe.method, probe.path, { apiKey: null, headers, body: probe.body });
  try {
    expectVerdict(answer, verdict, probe.method);
    expect(served.faultsOf(probe.operation, answer, probe.method !== 'HEAD')).toEqual([]);
    if (verdict === probe.verdict) await probe.verify?.(answer);
  } catch (error) {
    const request = [
      probe.method,
      probe.path,
      JSON.stringify(headers),
      JSON.stringify(probe.body?.toString().slice(0, 2_000)),
    ];
    const { status: got, headers: fields, text } = answer;
    throw new Error(
      `${request.join(' ')}\nforetold ${JSON.stringify(verdict)}\n` +
        `got ${got} ${JSON.stringify(fields)} ${text.slice(0, 2_000)}\n${(error as Error).message}`,
      { cause: error },
    );
  }
  note(`${label} ${verdict.status} ${verdict.code ?? ''}`.trim());
}

function expectVerdict(answer: HttpAnswer, { status: expected, code, faults }: Verdict, method: string): void {
  expect(answer.status).toBe(expected);
  expect(answer.headers['x-content-type-options']).toBe('nosniff');
  if (code === undefined || method === 'HEAD') return;
  const body = answer.json as { code: string; message: string; status: number };
  expect(body).toEqual({ code, message: expect.any(String) as string, status: expected });
  expect(Object.keys(body)).toEqual(['code', 'message', 'status']);
  if (faults)
    expect(body.message.split('; ').map((clause) => clause.split(' ')[0])).toEqual(expect.arrayContaining([...faults]));
  if (code === 'validation_failed')
    expect(body.message.split('; ').map((clause) => clause.split(' ')[0])).toEqual(faults);
}

const REFUSED_KEYS = [
  '401 missing_api_key',
  '401 invalid_api_key',
  '401 revoked_api_key',
  '401 expired_api_key',
  '403 insufficient_scope',
];

/** Kinds of answers that a run must have met to be meaningful. */
const OUTCOMES: Record<string, string[]> = {
  listPets: [
    ...['first', 'next'].flatMap((page) => ['all', ...STATUSES].map((status) => `${page} page of ${status}`)),
    ...['200', '304', '400 invalid_parameter', '400 invalid_cursor', '414 uri_too_long', ...REFUSED_KEYS],
  ],
  createPet: [
    ...['201', '400 malformed_json', '400 missing_body', '400 validation_failed', '413 body_too_large'],
    ...['415 unsupported_media_type', ...REFUSED_KEYS],
  ],
  getPet: ['200', '304', '404 pet_not_found', ...REFUSED_KEYS],
};

test(
  'every valid request is accepted, every invalid one refused as foretold, and every answer is as the document says',
  async () => {
    await fc.assert(fc.asyncProperty(credentials, plan, attempt), {
      seed: SEED,
      numRuns: REQUESTS,
    });
    const expected = Object.entries(OUTCOMES).flatMap(([label, outcomes]) =>
      outcomes.map((outcome) => `${label} ${outcome}`),
    );
    expect([...happened]).toEqual(expect.arrayContaining(expected));
  },
  60_000 + REQUESTS * 20,
);

test('after the run the catalogue contains exactly the created animals', async () => {
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
