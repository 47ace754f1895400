import type { INestApplication } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { PetEntity } from '../../src/pets/pet.entity.js';
import { EntitySql } from '../../libs/resources/src/entity-sql.js';

/** The statements of an application on its pets. */
export function petStatements(nest: INestApplication) {
  const pets = new EntitySql(nest.get(DataSource).getRepository(PetEntity));
  const status = pets.given({ status: 'sold' }).columns;
  const [all, allAfter] = [pets.pages([], 'first'), pets.pages([], 'next')];
  const [withStatus, withStatusAfter] = [pets.pages(status, 'first'), pets.pages(status, 'next')];
  const inserts = pets.inserts(pets.given({ name: 'Rex', categoryId: 7n, status: 'sold' }).columns);
  return {
    PAGE: all.one(21),
    PAGE_AFTER: allAfter.one(21),
    PAGES: all.many,
    PAGES_AFTER: allAfter.many,
    PAGE_WITH_STATUS: withStatus.one(21),
    PAGE_WITH_STATUS_AFTER: withStatusAfter.one(21),
    PAGES_WITH_STATUS: withStatus.many,
    PAGES_WITH_STATUS_AFTER: withStatusAfter.many,
    FIND: pets.find.one,
    FIND_MANY: pets.find.many,
    INSERT: inserts.one,
    INSERT_MANY: inserts.many,
    INSERT_ONCE: inserts.once,
  };
}
export type PetStatement = keyof ReturnType<typeof petStatements>;
