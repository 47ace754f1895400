import fc from 'fast-check';
import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '#errors';
import { int64OfNumeral, INT64_MAX, INT64_MIN, toInt64 } from './int64.js';
import { numeralOf, readJson, readOwnJson } from './json-reader.js';
import { JSON_LIMITS } from './json-scan.js';
import { writeJson } from './json-writer.js';

describe('readJson', () => {
  test('gives what JSON.parse gives, for every text that it reads', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => isDeepStrictEqual(read(text), JSON.parse(text))),
      { numRuns: 500 },
    );
    const odd = '{"__proto__":{"a":1},"constructor":[{"toString":null}],"7":1,"b":-0,"a":1e400}';
    expect(isDeepStrictEqual(read(odd), JSON.parse(odd))).toBe(true);
    expect(Object.getPrototypeOf(read(odd))).toBe(Object.prototype);
  });

  test('refuses what JSON.parse refuses, and only members of one name beside it', () => {
    const pieces = [...'{}[]:,"\\ \n\t\u00010129.eE+-uü🐕\u00a0', ...['true', 'false', 'null', '"a"', '"b":', 'NaN']];
    const garbage = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((list) => list.join('')),
      fc.tuple(fc.json(), fc.nat(), fc.constantFrom('', ...pieces)).map(([text, at, piece]) => {
        const cut = at % (text.length + 1);
        return text.slice(0, cut) + piece + text.slice(cut + 1);
      }),
    );
    fc.assert(
      fc.property(garbage, (text) => {
        // The bytes of a request: UTF-8 cannot represent an unpaired surrogate.
        const sent = Buffer.from(text);
        const there = attempt(() => JSON.parse(sent.toString()));
        const here = attempt(() => readJson(sent));
        if (here === REFUSED && there !== REFUSED) expect(refusal(sent)).toMatch(/named twice/);
        else expect(isDeepStrictEqual(here, there)).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });

  test.each<[string, string]>([
    ['{"a" 1}', "Expected ':' after property name (character 6)"],
    ['{"a":1 "b":2}', "Expected ',' or '}' after property value (character 8)"],
    ['["🐕" 2]', "Expected ',' or ']' after array element (character 6)"],
    ['[1,]', "Unexpected token ']'"],
    ['{"secret":\u00a01}', "Unexpected token '\u00a0'"],
    ['{"secret', 'Unterminated string (character 9)'],
    ['', 'Unexpected end of JSON input'],
    ['{} secret', 'Unexpected non-whitespace character after JSON (character 4)'],
    ['\ufeff{}', 'it starts with a byte order mark'],
    ...Object.entries({
      '{"a":1,"a":1}': 8,
      '{"1":1,"1":2}': 8,
      '{"a":{"x":{"y":[1]}},"a":2}': 22,
      '{"a":12345,"a":"x"}': 12,
      '{"a":false,"a":[1]}': 12,
      '{"a":[[null,-1.5e3]],"a":null}': 22,
      '{"__proto__":1,"__proto__":2}': 16,
      '[{"x":{"a":1,"b":2,"\\u0061":3}}]': 20,
      '{"\\\\":1,"x":"}{\\"","\\u005c":2}': 20,
      '{ "🐕" : 1 , "b" : [ ] , "🐕" : { } }': 25,
    }).map(([text, character]): [string, string] => [text, `a member is named twice (character ${character})`]),
  ])('refuses %j: %s', (text, fault) => {
    expect(refusal(Buffer.from(text))).toBe(`The body is not valid JSON: ${fault}.`);
  });

  test('reads every escape sequence; only validation refuses unpaired surrogates and U+0000', () => {
    expect(read('"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00fC!"')).toBe('"\\/\b\f\n\r\tü!');
    expect(read('"\\udc15\\ud83d\\u0000"')).toBe('\udc15\ud83d\0');
  });

  test.each([
    ['values', '1', JSON_LIMITS.values - 1],
    ['objects', '{}', (JSON_LIMITS.values - 2) / 2],
    ['long numbers', '1234567890123456', (JSON_LIMITS.values - 2) / 2],
    ['numbers with an exponent', '1e1', Math.floor((JSON_LIMITS.values - 1) / 3)],
    ['strings', '"\\"\\\\"', JSON_LIMITS.values - 1],
  ])('refuses more %s than it takes', (_, piece, most) => {
    const list = (count: number): Buffer => Buffer.from(`[${Array.from({ length: count }, () => piece).join()}]`);
    expect(readJson(list(most))).toHaveLength(most);
    expect(refusal(list(most + 2), 'body_too_complex')).toBe(
      'The body has more than 11000 values and member names (objects and long numbers count twice, ' +
        'numbers with an exponent three times).',
    );
    const limits = { values: 3 * most + 10, levels: 1 };
    expect(readJson(Buffer.from(list(1).toString().padEnd(9)), { values: 10, levels: 2 })).toHaveLength(1);
    if (piece !== '{}') expect(readJson(list(most + 2), limits)).toHaveLength(most + 2);
  });

  test('refuses deeper levels, and does not recurse into them', () => {
    expect(read('['.repeat(32) + ']'.repeat(32))).toEqual(JSON.parse('['.repeat(32) + ']'.repeat(32)));
    expect(refusal(Buffer.from('['.repeat(1e6)), 'body_too_complex')).toBe('The body nests deeper than 32 levels.');
  });

  test('keeps the source of numbers whose double may not be their value', () => {
    const body = read(
      '{"a":[1,9007199254740993,{"b":6.0000000000000000001}],"\\u0063":1e2,"__proto__":9007199254740993,"d":1.5e0,' +
        '"e":1e400,"f":1e30,"g":123.4567890123456789,"h":"9007199254740993","i":1e-1000,"j":42}',
    ) as { a: [number, number, object] };
    expect(numeralOf(body.a, 1)).toBe('9007199254740993');
    expect(numeralOf(body.a[2], 'b')).toBe('6.0000000000000000001');
    expect(['c', '__proto__', 'i'].map((name) => numeralOf(body, name))).toEqual([
      '1e2',
      '9007199254740993',
      '1e-1000',
    ]);
    expect([...'defghj', 'toString'].filter((name) => numeralOf(body, name) !== undefined)).toEqual([]);
    expect(numeralOf(body.a, 0)).toBeUndefined();
    // Nothing of it is seen.
    expect(Reflect.ownKeys(body.a[2])).toEqual(['b']);
    expect(structuredClone(body.a[2])).toStrictEqual({ b: 6 });
  });

  test('gives the exact value of an integer in any notation, in any place', () => {
    const integer = fc.oneof(
      fc.bigInt({ min: INT64_MIN - 5n, max: INT64_MAX + 5n }),
      fc.bigInt({ min: -200n, max: 200n }),
      fc.integer({ min: 0, max: 39 }).map((zeros) => 10n ** BigInt(zeros)),
      fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n }),
    );
    const mark = fc.constantFrom('e', 'E', 'e+');
    fc.assert(
      fc.property(integer, fc.nat(60), fc.nat(8), mark, fc.json(), (value, point, zeros, sign, other) => {
        const numeral = spelled(value, point, zeros, sign);
        const expected = value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
        expect(int64OfNumeral(numeral)).toBe(expected);
        const body = read(`{"o":${other},"x":[${numeral} , {"y" :\n${numeral}}]}`) as { x: [number, { y: number }] };
        for (const [holder, key] of [
          [body.x, 0],
          [body.x[1], 'y'],
        ] as [Record<string, number>, string][]) {
          const kept = numeralOf(holder, key);
          expect(kept === undefined ? toInt64(holder[key]) : int64OfNumeral(kept)).toBe(expected);
        }
      }),
      { numRuns: 3000 },
    );
  });

  test.each(['1.5', '6.0000000000000000001', '1e-1000000000', '9007199254740990.9', '1e1000000000', '-1e19', '1e'])(
    '%s is no int64',
    (numeral) => {
      expect(int64OfNumeral(numeral)).toBeUndefined();
    },
  );
});

test('JSON.stringify takes what readOwnJson returns: integers beyond 2^53 are texts', () => {
  const text =
    '{"id":9223372036854775807,"ids":[9223372036854775807,1],"owner":{"id":-9223372036854775808,"name":"Ann"}}';
  const value = readOwnJson(text);
  expect(writeJson(value)).toBe(text);
  expect(JSON.stringify(value)).toBe(text.replace(/-?\d{16,}/g, '"$&"'));
  expect(Object.keys(value as object)).toEqual(['id', 'ids', 'owner']);
});

test('readOwnJson reads what writeJson writes, over all integers', () => {
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      fc.bigInt(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.string(),
      tie('list'),
    ),
    list: fc.oneof(fc.array(tie('any')), fc.dictionary(fc.string(), tie('any'))),
  })).any;
  fc.assert(
    fc.property(value, (any) => {
      const text = writeJson([any]);
      expect(writeJson(readOwnJson(text))).toBe(text);
    }),
    { numRuns: 1000 },
  );
  const text = '[9007199254740993,{"__proto__":-9223372036854775808},1.5e+300,1]';
  expect(writeJson(readOwnJson(text))).toBe(text);
});

function read(text: string): unknown {
  return readJson(Buffer.from(text));
}

/** The message of the error for a refused body. */
function refusal(bytes: Buffer, code = 'malformed_json'): string {
  try {
    readJson(bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).definition.code).toBe(code);
    // Errors repeat nothing of the input.
    expect((error as ApiError).message).not.toContain('secret');
    return (error as ApiError).message;
  }
  throw new Error('The body was not refused.');
}

const REFUSED = Symbol('refused');

function attempt(action: () => unknown): unknown {
  try {
    return action();
  } catch {
    return REFUSED;
  }
}

/** An integer with the decimal point moved left by `point` digits, `zeros` more zeros, and an exponent that restores it. */
function spelled(value: bigint, point: number, zeros: number, mark: string): string {
  const digits = String(value < 0n ? -value : value).padStart(point + 1, '0');
  const split = digits.length - point;
  const fraction = digits.slice(split) + '0'.repeat(zeros);
  return `${value < 0n ? '-' : ''}${digits.slice(0, split)}${fraction && `.${fraction}`}${mark}${point}`;
}
