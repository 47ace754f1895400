import fc from 'fast-check';
import { ApiError } from '#errors';
import { countCharacters, type JsonValue, readJson } from './json-reader.js';

const [INT64_MIN, INT64_MAX] = [-(2n ** 63n), 2n ** 63n - 1n];

describe('readJson', () => {
  test('reads everything that JSON.parse reads, with the same result', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => agree(read(text), JSON.parse(text))),
      { numRuns: 500 },
    );
    // Doubles of all sizes, in the spelling JSON.stringify gives them.
    const numbers = fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }));
    fc.assert(fc.property(numbers, (list) => agree(read(JSON.stringify(list)), JSON.parse(JSON.stringify(list)))));
  });

  test('refuses everything that JSON.parse refuses', () => {
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
        const here = attempt(() => readJson(sent));
        const there = attempt(() => JSON.parse(sent.toString()));
        if (here === REFUSED && there !== REFUSED) {
          expect(refusal(sent)).toMatch(/named twice|nests deeper/);
        } else {
          expect(agree(here, there)).toBe(true);
        }
      }),
      { numRuns: 5000 },
    );
  });

  test.each([
    ['', 'it ends where a value is expected', 1],
    ['{', 'it ends where a member name is expected', 2],
    ['{"a":1,}', 'a member name is expected', 8],
    ['{"a" 1}', "':' is expected", 6],
    ['{"a":1 "b":2}', "',' or '}' is expected", 8],
    ['[1,]', 'a value is expected', 4],
    ['[1 2]', "',' or ']' is expected", 4],
    ['\u00a01', 'a value is expected', 1],
    ['1.', 'the value is followed by something else', 2],
    ['"abc', 'a string has no end', 5],
    ['"a\nb"', 'a control character in a string is not escaped', 3],
    ['"🐕\u001f"', 'a control character in a string is not escaped', 3],
    ['"\\x"', 'a string has an invalid escape sequence', 1],
    ['"\\u12g4"', 'a string has an invalid escape sequence', 1],
    ['\ufeff{}', 'it starts with a byte order mark', 1],
  ])('refuses %j: %s (character %i)', (text, what, character) => {
    expect(refusal(Buffer.from(text))).toBe(`The body is not valid JSON: ${what} (character ${character}).`);
  });

  test('reads every escape sequence; only validation refuses unpaired surrogates and U+0000', () => {
    expect(read('"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00fC!"')).toBe('"\\/\b\f\n\r\tü!');
    expect(read('"\\ud83d\\udc15"')).toBe('🐕');
    expect(read('"\\udc15\\ud83d\\u0000"')).toBe('\udc15\ud83d\0');
  });

  test.each([
    ['{"a":1,"a":2}', 8],
    ['{"1":1,"1":2}', 8],
    ['{"__proto__":1,"__proto__":2}', 16],
    ['[{"x":{"a":1,"b":2,"a":3}}]', 20],
  ])('refuses members of one name: %s', (text, character) => {
    expect(refusal(Buffer.from(text))).toBe(
      `The body is not valid JSON: a member is named twice (character ${character}).`,
    );
  });

  describe('numbers', () => {
    test.each<[string, number | bigint]>([
      ['-0', -0],
      ['0e1000000000', 0],
      ['1.0', 1],
      ['1e2', 100],
      ['100e-2', 1],
      ['9007199254740991', Number.MAX_SAFE_INTEGER],
      ['-9007199254740991', Number.MIN_SAFE_INTEGER],
      ['9007199254740992', 9007199254740992n],
      ['9.223372036854775807e18', INT64_MAX],
      ['-9223372036854775808', INT64_MIN],
      ['9223372036854775808', 9223372036854775808n],
      ['1e40', Infinity],
      ['1e400', Infinity],
      ['1e1000000000', Infinity],
      ['1.5', 1.5],
      ['1e-1', 0.1],
      ['1.00000000000000000000001', NaN],
      ['9007199254740993.5', NaN],
      ['1e-1000000000', NaN],
    ])('reads %s as %p', (text, value) => {
      expect(read(text)).toBe(value);
      expect(read(`[${text},1]`)).toEqual([value, 1]);
    });

    test('gives the exact value of an integer in any notation', () => {
      const integer = fc.oneof(
        fc.bigInt({ min: INT64_MIN - 5n, max: INT64_MAX + 5n }),
        fc.bigInt({ min: -200n, max: 200n }),
        fc.integer({ min: 0, max: 39 }).map((zeros) => 10n ** BigInt(zeros)),
        fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n }),
      );
      const mark = fc.constantFrom('e', 'E', 'e+');
      fc.assert(
        fc.property(integer, fc.nat(60), fc.nat(8), mark, (value, point, zeros, sign) => {
          const exact = read(spelled(value, point, zeros, sign));
          expect(BigInt(exact as bigint)).toBe(value);
          expect(typeof exact).toBe(Number.isSafeInteger(Number(value)) ? 'number' : 'bigint');
        }),
        { numRuns: 3000 },
      );
    });

    test('never gives an integer for a number with a fraction', () => {
      const digits = fc.stringMatching(/^[0-9]{0,30}[1-9]$/);
      fc.assert(
        fc.property(fc.bigInt(), digits, (integer, fraction) => {
          const value = read(`${integer}.${fraction}`);
          expect(typeof value).toBe('number');
          expect(Number.isInteger(value)).toBe(false);
        }),
        { numRuns: 1000 },
      );
    });
  });
});

function read(text: string): JsonValue {
  return readJson(Buffer.from(text));
}

/** The message of the error for a refused body. */
function refusal(bytes: Buffer): string {
  try {
    readJson(bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).definition.code).toBe('malformed_json');
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

/** Whether JSON.parse gives the same, except where a double rounds numbers that the reader keeps exactly or refuses. */
function agree(here: unknown, there: unknown): boolean {
  if (typeof here === 'bigint') {
    return Number(here) === there;
  }
  if (typeof here === 'number' && typeof there === 'number' && !Number.isFinite(here)) {
    return Number.isNaN(here)
      ? Number.isInteger(there)
      : Math.abs(there) >= 1e40 && Math.sign(there) === Math.sign(here);
  }
  if (typeof here !== 'object' || here === null || typeof there !== 'object' || there === null) {
    return Object.is(here, there);
  }
  const [ours, theirs] = [Object.entries(here), new Map(Object.entries(there))];
  return (
    Array.isArray(here) === Array.isArray(there) &&
    ours.length === theirs.size &&
    ours.every(([name, member]) => theirs.has(name) && agree(member, theirs.get(name)))
  );
}

/** An integer with the decimal point moved left by `point` digits, `zeros` more zeros, and an exponent that restores it. */
function spelled(value: bigint, point: number, zeros: number, mark: string): string {
  const digits = String(value < 0n ? -value : value).padStart(point + 1, '0');
  const split = digits.length - point;
  const fraction = digits.slice(split) + '0'.repeat(zeros);
  return `${value < 0n ? '-' : ''}${digits.slice(0, split)}${fraction && `.${fraction}`}${mark}${point}`;
}

test('countCharacters counts code points', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => countCharacters(text) === [...text].length));
});
