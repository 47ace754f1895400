import { TYPEORM_QUERY_RUNNERS } from './typeorm.internals.js';

test('a TypeORM whose query runners take their connections in another way is noticed', async () => {
  expect(await TYPEORM_QUERY_RUNNERS.check()).toBeUndefined();
  await expect(TYPEORM_QUERY_RUNNERS.check((driver) => driver)).rejects.toThrow('not leased');
});
