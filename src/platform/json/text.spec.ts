import fc from 'fast-check';
import { countCharacters, isStorableText } from './text.js';

describe('isStorableText', () => {
  test.each(['', 'Rex', '🐕', 'ü\n\u0001\ufffd\uffff'])('accepts %j', (text) => {
    expect(isStorableText(text)).toBe(true);
  });

  test.each(['\0', 'a\0b', '\ud83d', 'a\udc15', '\udc15\ud83d', '🐕\ud83d', '\ud83d🐕'])('refuses %j', (text) => {
    expect(isStorableText(text)).toBe(false);
  });

  test('accepts exactly the texts without U+0000 that survive UTF-8', () => {
    const unit = fc.nat(0xffff).map((code) => String.fromCharCode(code));
    const text = fc.string({ unit: fc.oneof(unit, fc.constantFrom('\ud83d', '\udc15', '\0')) });
    fc.assert(
      fc.property(text, (value) => {
        expect(isStorableText(value)).toBe(Buffer.from(value).toString() === value && !value.includes('\0'));
      }),
    );
  });
});

describe('countCharacters', () => {
  test('counts code points before an index', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => countCharacters(text) === [...text].length));
    expect(countCharacters('a🐕b\ud83d', 3)).toBe(2);
    expect(countCharacters('\udc15\ud83d\ud83d')).toBe(3);
  });
});
