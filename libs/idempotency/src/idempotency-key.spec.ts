import { readKey } from './idempotency-key.js';

test.each([
  ['abc', 'abc'],
  ['"abc"', 'abc'],
  ['8e03978e-40d5-43dd-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
  ['"a \\"b\\" \\\\ c"', 'a "b" \\ c'],
  ['a"b\\', 'a"b\\'],
  ['" "', ' '],
  ['a, b', 'a, b'],
  ['~', '~'],
  ['x'.repeat(255), 'x'.repeat(255)],
  [`"${'x'.repeat(255)}"`, 'x'.repeat(255)],
  [`"${'\\"'.repeat(255)}"`, '"'.repeat(255)],
])('reads %j as %j', (value, key) => {
  expect(readKey(value)).toBe(key);
});

test.each([
  [''],
  ['""'],
  ['"'],
  ['"abc'],
  ['"a"b"'],
  ['"abc";x=1'],
  ['"abc", "def"'],
  ['"a\\bc"'],
  ['"abc\\"'],
  ['x'.repeat(256)],
  [`"${'x'.repeat(256)}"`],
  ['a\tb'],
  ['"a\tb"'],
  ['a\u007f'],
  ['\u00e9'],
  ['"\u00e9"'],
  ['a\nb'],
  ['abc\n'],
])('%j is refused as a key', (value) => {
  expect(readKey(value)).toBeUndefined();
});
