import { describeStatement } from './statement-description.js';

test.each([
  ['SELECT "book"."id" FROM "book" WHERE id = $1', 'SELECT book'],
  ['select * from only public.book', 'SELECT public.book'],
  ['INSERT INTO book (name, status) VALUES ($1, $2) RETURNING id', 'INSERT book'],
  ['INSERT INTO book(name) SELECT * FROM unnest($1::text[])', 'INSERT book'],
  ['UPDATE "order" SET a = $1', 'UPDATE order'],
  ['DELETE FROM key_usage WHERE day < $1', 'DELETE key_usage'],
  ['WITH new AS (SELECT * FROM a) INSERT INTO b SELECT * FROM new', 'INSERT b'],
  ['WITH stored AS (INSERT INTO b (c) VALUES ($1) RETURNING id) SELECT id FROM stored', 'INSERT b'],
  ['WITH a AS (SELECT 1) SELECT * FROM a JOIN c ON true', 'SELECT a'],
  ['SELECT * FROM unnest($1::int8[]) AS id JOIN book USING (id)', 'SELECT book'],
  ['WITH a AS (SELECT * FROM b FOR UPDATE) SELECT * FROM a', 'SELECT b'],
  ['WITH a AS (SELECT * FROM b FOR NO KEY UPDATE) UPDATE c SET d = 1 FROM a', 'UPDATE c'],
  ['SELECT now()', 'SELECT'],
  ['START TRANSACTION', 'START'],
  ['-- a comment\n/* and\n another */ SELECT 1 FROM book', 'SELECT book'],
  ['', 'STATEMENT'],
])('%j is %s', (text, summary) => {
  expect(describeStatement(text).summary).toBe(summary);
});

test.each([
  ["SELECT 'it''s', E'a\\'b', N'c', U&'d' FROM a1 WHERE b = 'e'", 'SELECT ?, ?, ?, ? FROM a1 WHERE b = ?'],
  ['SELECT 1, -2.5, 1e9 FROM t2 WHERE c3 = $1 LIMIT 10', 'SELECT ?, -?, ? FROM t2 WHERE c3 = $1 LIMIT ?'],
  ['SELECT .5, 1_000, 0xFF, 0b1_0, 1.5e-7, 3. FROM t3', 'SELECT ?, ?, ?, ?, ?, ? FROM t3'],
  ["SELECT 1 FROM a WHERE b = 'it''s secret", 'SELECT ? FROM a WHERE b = ?'],
  ["SELECT E'secret\\", 'SELECT ?'],
  ['SELECT $x$ secret $', 'SELECT ?'],
  ['SELECT /* secret', 'SELECT'],
  ['DO $$ secret $$, $a$ it $$ too $a$, $1', 'DO ?, ?, $1'],
  ['SELECT "a\'b" FROM "c-1"', 'SELECT "a\'b" FROM "c-1"'],
  ["SELECT 1 -- 'secret\nFROM book WHERE a = 'secret'", 'SELECT ?  \nFROM book WHERE a = ?'],
])('%j is shown without literals', (text, shown) => {
  expect(describeStatement(text).text).toBe(shown);
});

test('of a text over 10,000 characters only the beginning is read, and the result is not cached', () => {
  const long = `SELECT * FROM book WHERE name = '${'secret '.repeat(2_000)}' AND id IN (${'1,'.repeat(500_000)}1)`;
  const description = describeStatement(long);
  expect(description).toMatchObject({ summary: 'SELECT book', text: 'SELECT * FROM book WHERE name = ?' });
  expect(describeStatement(long)).not.toBe(description);
  const short = `SELECT ${'a'.repeat(9_000)}`;
  expect(describeStatement(short)).toBe(describeStatement(short));
});

test('the cache is bounded: a thousand other texts evict a description', () => {
  const text = 'SELECT 1 FROM first';
  const first = describeStatement(text);
  expect(describeStatement(text)).toBe(first);
  for (let index = 0; index < 1_000; index++) expect(describeStatement(`SELECT ${index}`).text).toBe('SELECT ?');
  expect(describeStatement(text)).not.toBe(first);
});
