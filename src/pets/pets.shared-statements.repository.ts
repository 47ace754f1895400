import type { Repository } from 'typeorm';
import type { Database, Statement } from '../platform/database/database.js';
import { Batches } from '../platform/database/sharing/batches.js';
import { insertOnceStatement } from '../platform/idempotency/idempotency-key.repository.js';
import type { IdempotencyKey } from '../platform/idempotency/idempotency-key.js';
import type { Idempotency } from '../platform/idempotency/idempotency.js';
import type { IdempotentInserts } from '../platform/idempotency/idempotent-inserts.js';
import { compareInt64Texts, INT64_MAX } from '../platform/json/int64.js';
import { shared } from '../platform/json/json-text.js';
import type { Page } from '../platform/paging/keyset.js';
import { MAX_PAGE_SIZE } from '../platform/paging/paging.decorators.js';
import { type NewPet, Pet, PETS_ORDER } from './pet.dto.js';
import type { PetEntity, PetStatus } from './pet.entity.js';
import { type PageRequest, PetsRepository } from './pets.repository.js';

const COLUMNS = 'id, name, category_id, status';

type Row = [id: string, name: string, categoryId: string, status: PetStatus];

/** The statements that read one page, and several pages at once. */
interface PageStatements {
  /** The limit is part of the text: as a parameter, PostgreSQL could not estimate how few rows it means. At most 101. */
  readonly one: (limit: number) => Statement;
  readonly many: Statement;
}

/** The largest page, and the animal that shows whether another page follows. */
const MAX_ROWS = MAX_PAGE_SIZE + 1;

function pageStatements(
  name: string,
  order: string,
  condition: (id: string, status: string) => string,
): PageStatements {
  const select = (id: string, status: string, limit: number): string =>
    `SELECT ${COLUMNS} FROM pet WHERE ${condition(id, status)} ORDER BY ${order} LIMIT ${limit}`;
  const one = Array.from({ length: MAX_ROWS + 1 }, (_, limit) => ({
    name: `${name}_${limit}`,
    text: select('$1', '$2', limit),
  }));
  return {
    one: (limit) => one[limit] as Statement,
    many: {
      name: `${name}_many`,
      // The inner limit is a constant: of `size` PostgreSQL would assume a tenth of the table, and with many animals
      // compile the statement (JIT) at each execution, which takes longer than running it.
      text: `SELECT ${COLUMNS}, position
        FROM unnest($1::bigint[], $2::int[], $3::pet_status[]) WITH ORDINALITY AS page (first_id, size, wanted, position)
        CROSS JOIN LATERAL (
          SELECT * FROM (${select('first_id', 'wanted', MAX_ROWS)}) AS largest ORDER BY ${order} LIMIT size
        ) AS found`,
    },
  };
}

const PAGES = pageStatements('pet_page', 'id', (id) => `id >= ${id}`);
// Row comparisons for the reason that PetsRepository gives.
const PAGES_WITH_STATUS = pageStatements(
  'pet_page_with_status',
  'status, id',
  (id, status) => `(status, id) >= (${status}, ${id}) AND (status, id) <= (${status}, ${INT64_MAX})`,
);
const FIND: Statement = { name: 'pet_find', text: `SELECT ${COLUMNS} FROM pet WHERE id = $1` };
const FIND_MANY: Statement = {
  name: 'pet_find_many',
  text: `SELECT ${COLUMNS} FROM pet WHERE id = ANY ($1::bigint[])`,
};
const INSERT: Statement = {
  name: 'pet_insert',
  text: 'INSERT INTO pet (name, category_id, status) VALUES ($1, $2, $3) RETURNING id',
};
const INSERT_MANY: Statement = {
  name: 'pet_insert_many',
  // Ids are assigned in the order of `position`, and the rows are returned in the order of the ids.
  text: `WITH added AS (
      INSERT INTO pet (name, category_id, status)
      SELECT name, category_id, status
      FROM unnest($1::text[], $2::bigint[], $3::pet_status[]) WITH ORDINALITY AS new (name, category_id, status, position)
      ORDER BY position
      RETURNING id
    ) SELECT id FROM added ORDER BY id`,
};
const INSERT_ONCE = insertOnceStatement('pet', { name: 'text', category_id: 'bigint', status: 'pet_status' });

/** The statements of this file, for the test of their query plans. */
export const PET_STATEMENTS = {
  PAGE: PAGES.one(21),
  PAGES: PAGES.many,
  PAGE_WITH_STATUS: PAGES_WITH_STATUS.one(21),
  PAGES_WITH_STATUS: PAGES_WITH_STATUS.many,
  FIND,
  FIND_MANY,
  INSERT,
  INSERT_MANY,
  INSERT_ONCE,
} as const satisfies Record<string, Statement>;

// Requests that arrive while a statement runs share the next one, for at most the time of `followMs`.
const PAGE_LIMITS = { size: 16, concurrency: 2, waiting: 10_000, followMs: 5 };
const FIND_LIMITS = { size: 200, concurrency: 2, waiting: 10_000 };
const INSERT_LIMITS = { size: 100, concurrency: 2, waiting: 10_000, followMs: 20 };

/**
 * The fast path `shared-statements`: requests that wait at the same moment share one statement, and requests for the same
 * page share its result. The results equal those of `PetsRepository`; a test runs both side by side.
 */
export class SharedStatementsPetsRepository extends PetsRepository {
  private readonly pages: Batches<PageRequest, Page<Pet>>;
  private readonly pagesWithStatus: Batches<PageRequest, Page<Pet>>;
  private readonly finds: Batches<bigint, Pet | undefined>;
  private readonly inserts: Batches<NewPet, bigint>;
  private readonly insertsOnce: IdempotentInserts<NewPet>;

  constructor(pets: Repository<PetEntity>, idempotency: Idempotency, database: Database) {
    super(pets, idempotency, database);
    const waitMs = database.acquireTimeoutMs;
    const pages = (statements: PageStatements): Batches<PageRequest, Page<Pet>> =>
      new Batches((requests) => this.readPages(requests, statements), { ...PAGE_LIMITS, waitMs });
    this.pages = pages(PAGES);
    this.pagesWithStatus = pages(PAGES_WITH_STATUS);
    this.finds = new Batches((ids) => this.findAll(ids), { ...FIND_LIMITS, waitMs });
    this.inserts = new Batches((pets) => this.insertAll(pets), { ...INSERT_LIMITS, waitMs });
    this.insertsOnce = idempotency.inserts(INSERT_ONCE, ({ name, categoryId, status }) => [name, categoryId, status]);
  }

  override list(request: PageRequest): Promise<Page<Pet>> {
    const { firstId, limit, status } = request;
    return (status === undefined ? this.pages : this.pagesWithStatus).run(request, `${limit} ${status} ${firstId}`);
  }

  override find(id: bigint): Promise<Pet | undefined> {
    return this.finds.run(id);
  }

  override async insert(newPet: NewPet, key?: IdempotencyKey): Promise<Pet> {
    const { name, categoryId, status } = newPet;
    const pet = { name, categoryId, status };
    const id = await (key === undefined ? this.inserts.run(pet) : this.insertsOnce.insert(key, newPet));
    return new Pet(id, name, categoryId, status);
  }

  private async readPages(requests: readonly PageRequest[], { one, many }: PageStatements): Promise<Page<Pet>[]> {
    const [first] = requests as [PageRequest];
    const { firstId, limit, status } = first;
    if (requests.length === 1) {
      const values = status === undefined ? [firstId] : [firstId, status];
      const rows = await this.database.read<Row>(one(limit + 1), values);
      return [pageOf(rows, first)];
    }
    const found: Row[][] = requests.map(() => []);
    const rows = await this.database.read<[...Row, position: string]>(many, [
      arrayOf(requests.map((request) => request.firstId)),
      arrayOf(requests.map((request) => request.limit + 1)),
      arrayOf(requests.flatMap((request) => request.status ?? [])),
    ]);
    // PostgreSQL counts positions from 1.
    for (const [id, name, categoryId, status, position] of rows) {
      found[Number(position) - 1]?.push([id, name, categoryId, status]);
    }
    return requests.map((request, index) => {
      // PostgreSQL usually returns them in order but does not promise it.
      const page = (found[index] ?? []).sort(([id], [other]) => compareInt64Texts(id, other));
      return pageOf(page, request);
    });
  }

  private async findAll(ids: readonly bigint[]): Promise<readonly (Pet | undefined)[]> {
    const rows = await (ids.length === 1
      ? this.database.readPrimary<Row>(FIND, [ids[0]])
      : this.database.readPrimary<Row>(FIND_MANY, [arrayOf(ids)]));
    const found = new Map(rows.map((row) => [row[0], row]));
    return ids.map((id) => {
      const row = found.get(id.toString());
      return row && petOf(row);
    });
  }

  private async insertAll(pets: readonly NewPet[]): Promise<bigint[]> {
    const [{ name, categoryId, status }] = pets as [NewPet];
    const rows = await (pets.length === 1
      ? this.database.write<[id: string]>(INSERT, [name, categoryId, status])
      : this.database.write<[id: string]>(INSERT_MANY, [
          pets.map((pet) => pet.name),
          arrayOf(pets.map((pet) => pet.categoryId)),
          arrayOf(pets.map((pet) => pet.status)),
        ]));
    return rows.map(([id]) => BigInt(id));
  }
}

function petOf([id, name, categoryId, status]: Row): Pet {
  return new Pet(BigInt(id), name, BigInt(categoryId), status);
}

function pageOf(rows: readonly Row[], request: PageRequest): Page<Pet> {
  const page = PETS_ORDER.page(rows.map(petOf), request, { status: request.status });
  shared(page.items);
  return page;
}

/** A PostgreSQL array literal of values that need no quotes. */
function arrayOf(values: readonly unknown[]): string {
  return `{${values.join(',')}}`;
}
