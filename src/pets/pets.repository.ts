import { Injectable } from '@nestjs/common';
import { type BatchLimits, Batches } from '../platform/database/batches.js';
import { Database, type Statement } from '../platform/database/database.js';
import type { NewPet } from './pet.dto.js';
import type { PetEntity, PetStatus } from './pet.entity.js';

type Row = [id: string, name: string, categoryId: string, status: PetStatus];

const COLUMNS = 'id, name, category_id, status';

const FIRST_PAGE: Statement = {
  name: 'pet_first_page',
  text: `SELECT ${COLUMNS} FROM pet ORDER BY id LIMIT $1`,
};
const NEXT_PAGE: Statement = {
  name: 'pet_next_page',
  text: `SELECT ${COLUMNS} FROM pet WHERE id > $2 ORDER BY id LIMIT $1`,
};
const FIRST_PAGE_WITH_STATUS: Statement = {
  name: 'pet_first_page_with_status',
  text: `SELECT ${COLUMNS} FROM pet WHERE status = $2 ORDER BY id LIMIT $1`,
};
const NEXT_PAGE_WITH_STATUS: Statement = {
  name: 'pet_next_page_with_status',
  text: `SELECT ${COLUMNS} FROM pet WHERE status = $2 AND id > $3 ORDER BY id LIMIT $1`,
};
const FIND: Statement = { name: 'pet_find', text: `SELECT ${COLUMNS} FROM pet WHERE id = $1` };
const INSERT: Statement = {
  name: 'pet_insert',
  text: `INSERT INTO pet (name, category_id, status) VALUES ($1, $2, $3) RETURNING ${COLUMNS}`,
};

const FIND_MANY: Statement = {
  name: 'pet_find_many',
  text: `SELECT ${COLUMNS} FROM pet WHERE id = ANY ($1::bigint[])`,
};
const INSERT_MANY: Statement = {
  name: 'pet_insert_many',
  // Ids are drawn in the order of the rows, and the rows come back in the order of their ids.
  text: `WITH added AS (
      INSERT INTO pet (name, category_id, status)
      SELECT name, category_id, status
      FROM unnest($1::text[], $2::bigint[], $3::pet_status[]) WITH ORDINALITY AS new (name, category_id, status, position)
      ORDER BY position
      RETURNING ${COLUMNS}
    ) SELECT ${COLUMNS} FROM added ORDER BY id`,
};

/** Requests that one statement serves, statements at a time, and requests that may wait for one. */
const FIND_LIMITS: BatchLimits = { size: 200, concurrency: 2, waiting: 10_000 };
const INSERT_LIMITS: BatchLimits = { size: 100, concurrency: 2, waiting: 10_000 };

/** The statements that are used for animals. EXPLAIN of each is part of the tests. */
export const PET_STATEMENTS = {
  FIRST_PAGE,
  NEXT_PAGE,
  FIRST_PAGE_WITH_STATUS,
  NEXT_PAGE_WITH_STATUS,
  FIND,
  FIND_MANY,
  INSERT,
  INSERT_MANY,
} as const;

/** Animals in PostgreSQL. */
@Injectable()
export class PetsRepository {
  private readonly finds = new Batches((ids: readonly bigint[]) => this.findAll(ids), FIND_LIMITS);
  private readonly inserts = new Batches((pets: readonly NewPet[]) => this.insertAll(pets), INSERT_LIMITS);

  constructor(private readonly database: Database) {}

  /** At most `limit` animals by ascending id, after the given id and with the given status, if any. */
  async list(limit: number, after: bigint | undefined, status: PetStatus | undefined): Promise<PetEntity[]> {
    return (await this.readPage(limit, after, status)).map(toEntity);
  }

  private readPage(limit: number, after: bigint | undefined, status: PetStatus | undefined): Promise<Row[]> {
    if (status === undefined) {
      return after === undefined
        ? this.database.read<Row>(FIRST_PAGE, [limit])
        : this.database.read<Row>(NEXT_PAGE, [limit, after]);
    }
    return after === undefined
      ? this.database.read<Row>(FIRST_PAGE_WITH_STATUS, [limit, status])
      : this.database.read<Row>(NEXT_PAGE_WITH_STATUS, [limit, status, after]);
  }

  /** The animal with this id. */
  find(id: bigint): Promise<PetEntity | undefined> {
    return this.finds.run(id);
  }

  /** Stores an animal; when the promise is fulfilled, it is committed. */
  insert(pet: NewPet): Promise<PetEntity> {
    return this.inserts.run(pet);
  }

  // Neither reads from a replica: who has just created an animal must find it.
  private async findAll(ids: readonly bigint[]): Promise<(PetEntity | undefined)[]> {
    if (ids.length === 1) {
      const rows = await this.database.write<Row>(FIND, [ids[0]]);
      return [rows[0] && toEntity(rows[0])];
    }
    const rows = await this.database.write<Row>(FIND_MANY, [`{${ids.join(',')}}`]);
    const found = new Map(rows.map((row) => [row[0], row]));
    return ids.map((id) => {
      const row = found.get(id.toString());
      return row && toEntity(row);
    });
  }

  private async insertAll(pets: readonly NewPet[]): Promise<PetEntity[]> {
    const [first] = pets;
    const rows =
      first && pets.length === 1
        ? await this.database.write<Row>(INSERT, [first.name, first.categoryId, first.status])
        : await this.database.write<Row>(INSERT_MANY, [
            pets.map(({ name }) => name),
            pets.map(({ categoryId }) => categoryId),
            pets.map(({ status }) => status),
          ]);
    return rows.map(toEntity);
  }
}

function toEntity([id, name, categoryId, status]: Row): PetEntity {
  return { id: BigInt(id), name, categoryId: BigInt(categoryId), status };
}
