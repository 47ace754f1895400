import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../platform/database/database.js';
import { INT64_MAX, INT64_MIN } from '../platform/http/int64.js';
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
// Row comparisons, not `status = $2`: with that the planner may walk the primary key and drop every row of another status,
// the whole table for a rare one. The order by (status, id) can only be read from the index on both.
const FIRST_PAGE_WITH_STATUS: Statement = {
  name: 'pet_first_page_with_status',
  text: `SELECT ${COLUMNS} FROM pet
    WHERE (status, id) >= ($2, ${INT64_MIN}) AND (status, id) <= ($2, ${INT64_MAX}) ORDER BY status, id LIMIT $1`,
};
const NEXT_PAGE_WITH_STATUS: Statement = {
  name: 'pet_next_page_with_status',
  text: `SELECT ${COLUMNS} FROM pet
    WHERE (status, id) > ($2, $3) AND (status, id) <= ($2, ${INT64_MAX}) ORDER BY status, id LIMIT $1`,
};
const FIND: Statement = { name: 'pet_find', text: `SELECT ${COLUMNS} FROM pet WHERE id = $1` };
const INSERT: Statement = {
  name: 'pet_insert',
  text: `INSERT INTO pet (name, category_id, status) VALUES ($1, $2, $3) RETURNING ${COLUMNS}`,
};

/** The statements that are used for animals. EXPLAIN of each is part of the tests. */
export const PET_STATEMENTS = {
  FIRST_PAGE,
  NEXT_PAGE,
  FIRST_PAGE_WITH_STATUS,
  NEXT_PAGE_WITH_STATUS,
  FIND,
  INSERT,
} as const;

/** Animals in PostgreSQL. */
@Injectable()
export class PetsRepository {
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
  async find(id: bigint): Promise<PetEntity | undefined> {
    // Not from a replica: who has just created an animal must find it.
    const [row] = await this.database.write<Row>(FIND, [id]);
    return row && toEntity(row);
  }

  /** Stores an animal; when the promise is fulfilled, it is committed. */
  async insert({ name, categoryId, status }: NewPet): Promise<PetEntity> {
    const [row] = await this.database.write<Row>(INSERT, [name, categoryId, status]);
    return toEntity(row as Row);
  }
}

function toEntity([id, name, categoryId, status]: Row): PetEntity {
  return { id: BigInt(id), name, categoryId: BigInt(categoryId), status };
}
