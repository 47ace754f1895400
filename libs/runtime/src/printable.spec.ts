import { printable, printableLines } from './printable.js';

const UNSAFE = '\u0000\u001b\r\t\u007f\u0080\u009b\u00ad\u200b\u200d\u202e\u2028\u2029\u2066\ufeff\ud83d';

test('what a terminal obeys, hides or reorders becomes an escape; other text stays', () => {
  expect(printable(`${UNSAFE}\n`)).toMatch(/^(\\u[0-9a-f]{4}){17}$/);
  expect(printable('\u{e0041}')).toBe(String.raw`\udb40\udc41`);
  expect(printable('Zoë 🐎 漢字 \\u009b')).toBe('Zoë 🐎 漢字 \\u009b');
});

test('a text of JSON keeps its value and its lines', () => {
  const value = { [UNSAFE]: [`a\n${UNSAFE}`, '\\', '\u{e0041}'] };
  const json = printableLines(JSON.stringify(value, null, 2));
  expect(JSON.parse(json)).toEqual(value);
  expect(json).toMatch(/^\{\n/);
  expect(json).not.toMatch(/[\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|(?!\n)\p{Cc}/u);
});
