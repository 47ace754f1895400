import type { EntityMetadata } from 'typeorm';
import { TYPEORM_ENTITIES } from './typeorm.internals.js';

test('the installed TypeORM describes entities as known', async () => {
  expect(await TYPEORM_ENTITIES.check()).toBeUndefined();
});

test.each<[change: string, change: (toy: EntityMetadata) => unknown, difference: RegExp]>([
  ['other types', ({ dataSource }) => (dataSource.driver.normalizeType = () => 'text'), /text,text,text/],
  ['no indices', (toy) => (toy.indices = []), /text; listeners: ; expected|text; listeners: \(|text; listeners: ; /],
  ['other values', ({ dataSource }) => (dataSource.driver.preparePersistentValue = String), /\(a; \["b"\]/],
  ['values as they come', ({ dataSource }) => (dataSource.driver.prepareHydratedValue = String), /; "\[/],
])('another TypeORM is noticed: %s', async (_, change, difference) => {
  expect(await TYPEORM_ENTITIES.check((toy) => void change(toy))).toMatch(difference);
});

test('a TypeORM without listeners of entities is noticed', async () => {
  await expect(TYPEORM_ENTITIES.check((toy) => Object.assign(toy, { listeners: undefined }))).rejects.toThrow(
    TypeError,
  );
});
