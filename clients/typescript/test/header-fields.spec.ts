import { linkTarget, parseDeprecation, parseHttpDate, parseLinks, parseRetryAfter } from '../src/header-fields.js';

test('linkTarget finds a relation among several links, parameters and relations', () => {
  const field =
    '<https://a.example/pets?x=1,2;rel=next>; title="a, b; rel=next"; rel="prev", ' +
    '</v1/pets?cursor=a>; REL="Next  last", <https://a.example/docs>; rel=deprecation; type="text/html"';
  expect(linkTarget(field, 'next')).toBe('/v1/pets?cursor=a');
  expect(linkTarget(field, 'last')).toBe('/v1/pets?cursor=a');
  expect(linkTarget(field, 'deprecation')).toBe('https://a.example/docs');
  expect(linkTarget(field, 'successor-version')).toBeUndefined();
  expect(parseLinks(field)).toHaveLength(3);
});

test.each([null, '', 'nonsense', '<unclosed; rel=next', '<a>; title="rel=next"', '<a>; nextrel=next'])(
  'linkTarget finds no next page in %p',
  (field) => expect(linkTarget(field, 'next')).toBeUndefined(),
);

const NOW = Date.parse('Sat, 21 Nov 2026 12:00:00 GMT');

test.each([
  ['0', 0],
  ['120', 120_000],
  ['Sat, 21 Nov 2026 12:00:07 GMT', 7_000],
  ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
  ['Saturday, 21-Nov-26 12:00:07 GMT', 7_000],
  [null, undefined],
  ['', undefined],
  ['-1', undefined],
  ['1.5', undefined],
  ['soon', undefined],
])('parseRetryAfter reads %p as %p ms', (field, expected) => expect(parseRetryAfter(field, NOW)).toBe(expected));

test('parseHttpDate reads the date of Sunset, and nothing else', () => {
  expect(parseHttpDate('Thu, 05 Dec 2030 00:00:00 GMT')).toEqual(new Date('2030-12-05T00:00:00Z'));
  for (const field of [null, '', '2030-12-05', '5', 'never']) expect(parseHttpDate(field)).toBeUndefined();
});

test('parseDeprecation reads the date of Deprecation, and nothing else', () => {
  expect(parseDeprecation('@1795132800')).toEqual(new Date('2026-11-20T00:00:00Z'));
  for (const field of [null, '', 'true', '1795132800', '@soon']) expect(parseDeprecation(field)).toBeUndefined();
});
