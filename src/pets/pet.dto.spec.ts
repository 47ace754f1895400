import fc from 'fast-check';
import { INT64_MAX, INT64_MIN } from '../platform/json/int64.js';
import { writeJson } from '../platform/json/json-writer.js';
import { type Pet, writePet } from './pet.dto.js';
import { PET_STATUSES } from './pet.entity.js';

const int64 = fc.bigInt(INT64_MIN, INT64_MAX);

test('writePet writes of a row what writeJson writes of the animal', () => {
  const animals: fc.Arbitrary<Pet> = fc.record({
    id: int64,
    name: fc.string({ unit: 'binary' }),
    categoryId: int64,
    status: fc.constantFrom(...PET_STATUSES),
  });
  fc.assert(
    fc.property(animals, (animal) => {
      const { id, name, categoryId, status } = animal;
      expect(writePet([String(id), name, String(categoryId), status])).toBe(writeJson(animal));
    }),
  );
});
