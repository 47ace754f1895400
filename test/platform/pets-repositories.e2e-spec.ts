import { getRepositoryToken, TypeOrmModule } from '@nestjs/typeorm';
import fc from 'fast-check';
import { AfterLoad, Entity, type Repository } from 'typeorm';
import { Idempotency, IdempotencyKey, Keyset } from '#resources';
import { INT64_MAX, INT64_MIN } from '#json';
import { Database } from '#postgres';
import type { Pet } from '../../src/pets/pet.dto.js';
import { PET_STATUSES, PetEntity } from '../../src/pets/pet.entity.js';
import { PetsRepository } from '../../src/pets/pets.repository.js';
import { createTestApp, type TestApp } from '../support/app.js';

/*
 * Sharing statements changes only the speed: on one database, a repository returns the same for every call as one whose entity
 * has a listener, so that TypeORM runs a statement for each request.
 */

// The table of the other one.
@Entity({ name: 'pet' })
class HeardPet extends PetEntity {
  @AfterLoad()
  hear(): void {}
}

let app: TestApp;
let plain: PetsRepository;
let shared: PetsRepository;
beforeAll(async () => {
  app = await createTestApp({ features: [TypeOrmModule.forFeature([HeardPet])] });
  const repositoryOf = (entity: typeof PetEntity): PetsRepository =>
    Object.assign(new PetsRepository(app.nest.get<Repository<PetEntity>>(getRepositoryToken(entity))), {
      database: app.nest.get(Database),
      idempotency: app.nest.get(Idempotency),
    });
  plain = repositoryOf(HeardPet);
  shared = repositoryOf(PetEntity);
  expect([plain['mayShare'], shared['mayShare']]).toEqual([false, true]);
});
afterAll(() => app.close());

const id = fc.oneof(fc.bigInt(INT64_MIN, INT64_MAX), fc.constantFrom(INT64_MIN, -1n, 0n, 2n ** 53n + 1n, INT64_MAX));
const name = fc.oneof(
  fc.constantFrom('Rex', `"quoted" and 'quoted'`, 'back\\slash \\" \\\\', '{a,b}', '{}', 'NULL', 'null'),
  fc.constantFrom(' \t, spaces ,\n ', ' 語 🐕‍🦺 ', 'separators\u2028\u2029', '\u0001\u001f\u007f', '語'.repeat(255)),
);
const newPet = fc.record({
  name,
  categoryId: id,
  status: fc.constantFrom(...PET_STATUSES),
});
/** The position of an existing pet, or any id. */
const target = fc.oneof({ arbitrary: fc.nat({ max: 30 }), weight: 3 }, id);

type Step = (pets: readonly Pet[], isPlain: boolean, run: number) => Promise<Pet[]>;

const idOf = (pets: readonly Pet[], at: number | bigint): bigint =>
  typeof at === 'bigint' ? at : (pets[at % Math.max(pets.length, 1)]?.id ?? 0n);

const insert: fc.Arbitrary<Step> = fc.array(newPet, { minLength: 1, maxLength: 6 }).map((added) => {
  return async (_pets, isPlain) => {
    const answers = await Promise.all(added.map((pet) => (isPlain ? plain : shared).insert(pet)));
    expect(answers.map(({ id: _, ...pet }) => pet)).toEqual(added);
    return answers;
  };
});
const insertOnce: fc.Arbitrary<Step> = fc.record({ pet: newPet, key: fc.nat({ max: 2 }) }).map(({ pet, key }) => {
  return async (pets, isPlain, run) => {
    const outcome = async (repository: PetsRepository): Promise<unknown[]> => {
      let isReplayed = false;
      const sent = new IdempotencyKey(1n, 'POST /v1/pets', `run ${run} key ${key}`, () => (isReplayed = true));
      const answer = await repository.insert(pet, sent).catch((error: { definition: unknown }) => error.definition);
      return [answer, isReplayed];
    };
    const [answer, isReplayed] = await outcome(isPlain ? plain : shared);
    const again = await outcome(plain);
    expect(await outcome(shared)).toEqual(again);
    const added = 'id' in (answer as object) ? (answer as Pet) : undefined;
    expect(again).toEqual([answer, added !== undefined]);
    return added && !isReplayed && !pets.some((known) => known.id === added.id) ? [added] : [];
  };
});
const find: fc.Arbitrary<Step> = fc.array(target, { minLength: 1, maxLength: 6 }).map((targets) => {
  return async (pets) => {
    const ids = targets.map((at) => idOf(pets, at));
    const expected = ids.map((one) => pets.find((pet) => pet.id === one));
    for (const from of [plain, shared]) expect(await Promise.all(ids.map((one) => from.find(one)))).toEqual(expected);
    return [];
  };
});
const request = fc.record({
  after: target,
  limit: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 5 })),
  status: fc.constantFrom(undefined, ...PET_STATUSES),
  // Without an index.
  name: fc.constantFrom(undefined, undefined, 'Rex', '{a,b}', 'none'),
});
const list: fc.Arbitrary<Step> = fc.array(request, { minLength: 1, maxLength: 6 }).map((requests) => {
  return async (pets) => {
    const sent = requests.map(({ after, ...others }) => ({ after: idOf(pets, after), ...others }));
    const pagesOf = (from: PetsRepository): Promise<unknown[]> =>
      Promise.all(
        sent.map(({ after, limit, ...filters }) => {
          const cursor = new Keyset('id').encode({ id: after }, filters);
          return from.page({ limit, cursor }, filters);
        }),
      );
    const expected = sent.map(({ after, limit, ...filters }) => {
      const rest = pets.filter(
        ({ id, status, name }) =>
          id > after && [undefined, status].includes(filters.status) && [undefined, name].includes(filters.name),
      );
      return new Keyset('id').page(rest, { limit }, filters);
    });
    for (const from of [plain, shared]) expect(await pagesOf(from)).toEqual(expected);
    return [];
  };
});

test('both repositories give the same responses, to single and to simultaneous calls', async () => {
  const steps = fc.array(fc.tuple(fc.oneof(insert, insertOnce, find, list, list), fc.boolean()), {
    minLength: 2,
    maxLength: 12,
  });
  let run = 0;
  const property = fc.asyncProperty(steps, async (program) => {
    run++;
    await app.sql('TRUNCATE pet CASCADE');
    let pets: Pet[] = [];
    for (const [step, isPlain] of program) {
      const added = await step(pets, isPlain, run);
      pets = [...pets, ...added].sort((one, other) => (one.id < other.id ? -1 : 1));
    }
    const stored = await app.sql('SELECT id::text, name, category_id::text, status FROM pet ORDER BY pet.id');
    expect(stored).toEqual(pets.map((pet) => [String(pet.id), pet.name, String(pet.categoryId), pet.status]));
  });
  await fc.assert(property, { numRuns: 60 });
});

test('calls of the same moment share a page, also after the first ones', async () => {
  for (let round = 0; round < 2; round++) {
    const [one, other] = await Promise.all([shared.page({ limit: 1 }), shared.page({ limit: 1 })]);
    expect(other).toBe(one);
  }
});
