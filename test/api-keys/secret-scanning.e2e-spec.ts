import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createApiKey, hasWrongChecksum } from '../../libs/access/src/api-key-format.js';
import '../../src/app.description.js';

const docs = (name: string): string => readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8');

const PUBLISHED = /```regex\n(.+)\n```/.exec(docs('security.md'))?.[1] ?? '';
const RULE = /^regex = '''(.+)'''$/m.exec(docs('gitleaks.toml'))?.[1] ?? '';

test('the rule for gitleaks has the published pattern, which RE2 can run', () => {
  expect(RULE).toBe(PUBLISHED);
  // RE2 supports neither look-around nor back-references.
  expect(PUBLISHED).not.toMatch(/\(\?|\\\d/);
  const keyword = /^keywords = \["(.+)"\]$/m.exec(docs('gitleaks.toml'))?.[1] ?? '?';
  expect(createApiKey('pets_')).toContain(keyword);
});

test('the published pattern finds every created key, in any surrounding text', () => {
  for (let count = 0; count < 2_000; count++) {
    const key = createApiKey('pets_');
    for (const text of [key, `"${key}"`, `API_KEY=${key}\n`, `Bearer ${key},`, `https://x.example/?key=${key}&a=b`]) {
      expect(new RegExp(PUBLISHED).exec(text)?.[1]).toBe(key);
    }
    expect(hasWrongChecksum(key, 'pets_')).toBe(false);
  }
});

test('the published pattern finds no text of another form', () => {
  const key = createApiKey('pets_');
  const others = [
    key.slice(0, -1),
    `${key}0`,
    `${key}_`,
    `x${key}`,
    `my_${key}`,
    key.toUpperCase(),
    key.replace('pets_', 'pet_'),
    key.replace('pets_', 'pets-'),
    `${key.slice(0, 20)}-${key.slice(21)}`,
    `${key.slice(0, 20)}ä${key.slice(21)}`,
    `pets_${'0'.repeat(20)}`,
    'sk_live_0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDE',
    'ghp_0123456789abcdefghijABCDEFGHIJ012345',
    '550e8400-e29b-41d4-a716-446655440000',
  ];
  for (const other of others) expect([other, new RegExp(PUBLISHED).test(other)]).toEqual([other, false]);
});
