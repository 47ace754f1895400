import { Injectable } from '@nestjs/common';
import { type BatchLimits, Batches } from '../platform/database/sharing/batches.js';
import { Database, type Statement } from '../platform/database/database.js';
import { compareInt64Texts, INT64_MAX } from '../platform/json/int64.js';
import { insertOnceStatement } from '../platform/idempotency/idempotency-key.repository.js';
import type { IdempotencyKey } from '../platform/idempotency/idempotency-key.js';
import { Idempotency } from '../platform/idempotency/idempotency.js';
import type { IdempotentInserts } from '../platform/idempotency/idempotent-inserts.js';
import type { NewPet } from './pet.dto.js';
import type { PetRow, PetStatus } from './pet.entity.js';

type Row = [...PetRow];

const COLUMNS = 'id, name, category_id, status';

// The limit is part of the text: with a parameter in its place PostgreSQL cannot tell how few rows are wanted, finds its
// generic plan dear, and plans anew each time. There are as many statements as there are limits, 100.
const page = byLimit((limit) => ({
  name: `pet_page_${limit}`,
  text: `SELECT ${COLUMNS} FROM pet WHERE id >= $1 ORDER BY id LIMIT ${limit}`,
}));
// Row comparisons, not `status = $2`: with that the planner may walk the primary key and drop every row of another status,
// the whole table for a rare one. The order by (status, id) can only be read from the index on both.
const pageWithStatus = byLimit((limit) => ({
  name: `pet_page_with_status_${limit}`,
  text: `SELECT ${COLUMNS} FROM pet
    WHERE (status, id) >= ($2, $1) AND (status, id) <= ($2, ${INT64_MAX}) ORDER BY status, id LIMIT ${limit}`,
}));
const PAGES: Statement = {
  name: 'pet_pages',
  text: `SELECT position, ${COLUMNS}
    FROM unnest($1::bigint[], $2::int[]) WITH ORDINALITY AS page (first_id, size, position)
    CROSS JOIN LATERAL (SELECT ${COLUMNS} FROM pet WHERE id >= first_id ORDER BY id LIMIT size) AS found`,
};
const PAGES_WITH_STATUS: Statement = {
  name: 'pet_pages_with_status',
  text: `SELECT position, ${COLUMNS}
    FROM unnest($1::bigint[], $2::int[], $3::pet_status[]) WITH ORDINALITY AS page (first_id, size, wanted, position)
    CROSS JOIN LATERAL (
      SELECT ${COLUMNS} FROM pet
      WHERE (status, id) >= (wanted, first_id) AND (status, id) <= (wanted, ${INT64_MAX}) ORDER BY status, id LIMIT size
    ) AS found`,
};
const FIND: Statement = { name: 'pet_find', text: `SELECT ${COLUMNS} FROM pet WHERE id = $1` };
const INSERT: Statement = {
  name: 'pet_insert',
  text: 'INSERT INTO pet (name, category_id, status) VALUES ($1, $2, $3) RETURNING id',
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
      RETURNING id
    ) SELECT id FROM added ORDER BY id`,
};

const INSERT_ONCE = insertOnceStatement('pet', { name: 'text', category_id: 'bigint', status: 'pet_status' });

type Limits = Omit<BatchLimits, 'waitMs'>;

/** Requests that one statement serves, statements at a time, and requests that may wait for one. */
const PAGE_LIMITS: Limits = { size: 16, concurrency: 2, waiting: 10_000 };
const FIND_LIMITS: Limits = { size: 200, concurrency: 2, waiting: 10_000 };
// A commit waits for the disk: whoever comes meanwhile shares the next one, unless it takes its time.
const INSERT_LIMITS: Limits = { size: 100, concurrency: 2, waiting: 10_000, followMs: 20 };

/** Lines that a page waits in, the service's and then this one's: it may wait as long in both as others in one. */
export const LINES_OF_A_PAGE = 2;

/** The statements that are used for animals. EXPLAIN of each is part of the tests. */
export const PET_STATEMENTS = {
  PAGE: page(21),
  PAGES,
  PAGE_WITH_STATUS: pageWithStatus(21),
  PAGES_WITH_STATUS,
  FIND,
  FIND_MANY,
  INSERT,
  INSERT_MANY,
  INSERT_ONCE,
} as const;

/** Which animals make a page: at most `limit`, from `firstId` on, with the given status, if any. */
export interface PageRequest {
  readonly firstId: bigint;
  readonly limit: number;
  readonly status: PetStatus | undefined;
}

/** Animals in PostgreSQL. */
@Injectable()
export class PetsRepository {
  private readonly pages: Batches<PageRequest, readonly PetRow[]>;
  private readonly pagesWithStatus: Batches<PageRequest, readonly PetRow[]>;
  private readonly finds: Batches<bigint, PetRow | undefined>;
  private readonly inserts: Batches<NewPet, string>;
  private readonly insertsOnce: IdempotentInserts<NewPet>;

  constructor(
    private readonly database: Database,
    idempotency: Idempotency,
  ) {
    const waitMs = database.acquireTimeoutMs;
    const pageLimits = { ...PAGE_LIMITS, waitMs: waitMs / LINES_OF_A_PAGE };
    this.pages = new Batches((pages) => this.readPages(pages, page, PAGES), pageLimits);
    this.pagesWithStatus = new Batches((pages) => this.readPages(pages, pageWithStatus, PAGES_WITH_STATUS), pageLimits);
    this.finds = new Batches((ids) => this.findAll(ids), { ...FIND_LIMITS, waitMs });
    this.inserts = new Batches((pets) => this.insertAll(pets), { ...INSERT_LIMITS, waitMs });
    this.insertsOnce = idempotency.inserts(INSERT_ONCE, ({ name, categoryId, status }) => [name, categoryId, status]);
  }

  /** A page of animals, by ascending id. */
  list(page: PageRequest): Promise<readonly PetRow[]> {
    return page.status === undefined ? this.pages.run(page) : this.pagesWithStatus.run(page);
  }

  /** The animal with this id. */
  find(id: bigint): Promise<PetRow | undefined> {
    return this.finds.run(id);
  }

  /** Stores an animal, and gives it an id; when the promise is fulfilled, it is committed. */
  insert(pet: NewPet): Promise<string> {
    return this.inserts.run(pet);
  }

  /**
   * Stores an animal once for a key: the id that this call gives it, or an earlier one for the same animal has given it.
   *
   * @throws ApiError IDEMPOTENCY_KEY_REUSED
   */
  async insertOnce(pet: NewPet, key: IdempotencyKey): Promise<string> {
    return String(await this.insertsOnce.insert(key, pet));
  }

  private async readPages(
    pages: readonly PageRequest[],
    one: (limit: number) => Statement,
    many: Statement,
  ): Promise<(readonly PetRow[])[]> {
    const [first] = pages;
    if (first && pages.length === 1) {
      const { firstId, limit, status } = first;
      return [await this.database.read<Row>(one(limit), status === undefined ? [firstId] : [firstId, status])];
    }
    const values: unknown[] = [arrayOf(pages.map(({ firstId }) => firstId)), arrayOf(pages.map(({ limit }) => limit))];
    if (first?.status !== undefined) {
      values.push(arrayOf(pages.map(({ status }) => status)));
    }
    const found: PetRow[][] = pages.map(() => []);
    for (const [position, ...row] of await this.database.read<[string, ...Row]>(many, values)) {
      found[Number(position) - 1]?.push(row);
    }
    // PostgreSQL returns them so already, and promises nothing.
    return found.map((rows) => rows.sort(([id], [otherId]) => compareInt64Texts(id, otherId)));
  }

  // Neither reads from a replica: who has just created an animal must find it.
  private async findAll(ids: readonly bigint[]): Promise<readonly (PetRow | undefined)[]> {
    if (ids.length === 1) {
      return this.database.readPrimary<Row>(FIND, [ids[0]]);
    }
    const rows = await this.database.readPrimary<Row>(FIND_MANY, [arrayOf(ids)]);
    const found = new Map(rows.map((row) => [row[0], row]));
    return ids.map((id) => found.get(id.toString()));
  }

  private async insertAll(pets: readonly NewPet[]): Promise<string[]> {
    const [first] = pets;
    const rows =
      first && pets.length === 1
        ? await this.database.write<[id: string]>(INSERT, [first.name, first.categoryId, first.status])
        : await this.database.write<[id: string]>(INSERT_MANY, [
            pets.map(({ name }) => name),
            arrayOf(pets.map(({ categoryId }) => categoryId)),
            arrayOf(pets.map(({ status }) => status)),
          ]);
    return rows.map(([id]) => id);
  }
}

/** A PostgreSQL array of values that need no quotes in it. */
function arrayOf(values: readonly unknown[]): string {
  return `{${values.join(',')}}`;
}

/** Makes the statement of each limit once. */
function byLimit(make: (limit: number) => Statement): (limit: number) => Statement {
  const made = new Map<number, Statement>();
  return (limit) => {
    const statement = made.get(limit) ?? make(limit);
    made.set(limit, statement);
    return statement;
  };
}
