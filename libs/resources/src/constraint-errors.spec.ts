import { isReferenced } from './constraint-errors.js';

const CONSTRAINT = 'fk_toy_box';

test.each([
  [
    `insert or update on table "toy" violates foreign key constraint "${CONSTRAINT}"`,
    `update or delete on table "box" violates foreign key constraint "${CONSTRAINT}" on table "toy"`,
  ],
  [
    `Einfügen oder Aktualisieren in Tabelle »toy« verletzt Fremdschlüssel-Constraint »${CONSTRAINT}«`,
    `Aktualisieren oder Löschen in Tabelle »box« verletzt Fremdschlüssel-Constraint »${CONSTRAINT}« von Tabelle »toy«`,
  ],
  [
    `une instruction insert ou update sur la table « toy » viole la contrainte de clé étrangère « ${CONSTRAINT} »`,
    `UPDATE ou DELETE sur la table « box » viole la contrainte de clé étrangère « ${CONSTRAINT} » de la table « toy »`,
  ],
  [
    `テーブル"toy"への挿入、更新は外部キー制約"${CONSTRAINT}"に違反しています`,
    `テーブル"box"の更新または削除は、テーブル"toy"の外部キー制約"${CONSTRAINT}"に違反します`,
  ],
])('the two sides of a foreign key are told apart by the names in the message: %s', (missing, referenced) => {
  const sides = [missing, referenced].map((message) => isReferenced({ code: '23503', message }));
  expect(sides).toEqual([false, true]);
});

test.each([
  ['23001', 'RESTRICT of PostgreSQL 18', true],
  ['23505', 'key "a" of "b" violates unique constraint "c" on table "d"', false],
  ['23514', 'row of "a" violates check constraint "b" of "c" on "d"', false],
])('other codes need no message: %s, %s', (code, message, expected) => {
  expect(isReferenced({ code, message })).toBe(expected);
});
