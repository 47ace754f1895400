import type { Repository } from 'typeorm';
import type { Database, Statement } from '../platform/database/database.js';
import { type BatchLimits, Batches } from '../platform/database/sharing/batches.js';
import { SharedReads } from '../platform/database/sharing/shared-reads.js';
import { insertOnceStatement } from '../platform/idempotency/idempotency-key.repository.js';
import type { IdempotencyKey } from '../platform/idempotency/idempotency-key.js';
import type { Idempotency } from '../platform/idempotency/idempotency.js';
import type { IdempotentInserts } from '../platform/idempotency/idempotent-inserts.js';
import { compareInt64Texts, INT64_MAX } from '../platform/json/int64.js';
import { MAX_PAGE_SIZE } from '../platform/paging/paging.decorators.js';
import { type NewPet, type Pet, toPet } from './pet.dto.js';
import type { PetEntity, PetStatus } from './pet.entity.js';
import { type PageRequest, PetsRepository, type PetsPage } from './pets.repository.js';

const COLUMNS = 'id, name, category_id, status';

type Row = [id: string, name: string, categoryId: string, status: PetStatus];

// The limit is part of the text. As a parameter, PostgreSQL could not estimate how few rows it means, would reject the
// generic plan as too expensive, and would plan each execution. There is one statement per limit: at most 100.
const page = byLimit((limit) => ({
  name: `pet_page_${limit}`,
  text: `SELECT ${COLUMNS} FROM pet WHERE id >= $1 ORDER BY id LIMIT ${limit}`,
}));
// Row comparisons for the reason that PetsRepository gives.
const pageWithStatus = byLimit((limit) => ({
  name: `pet_page_with_status_${limit}`,
  text: `SELECT ${COLUMNS} FROM pet
    WHERE (status, id) >= ($2, $1) AND (status, id) <= ($2, ${INT64_MAX}) ORDER BY status, id LIMIT ${limit}`,
}));
// The inner limit is a constant, because PostgreSQL does not know the value of `size`: it would estimate a tenth of the
// table for each page, and with many animals compile the statement (JIT) at each execution, which takes longer than
// running it.
const LARGEST_PAGE = MAX_PAGE_SIZE + 1;
const PAGES: Statement = {
  name: 'pet_pages',
  text: `SELECT ${COLUMNS}, position
    FROM unnest($1::bigint[], $2::int[]) WITH ORDINALITY AS page (first_id, size, position)
    CROSS JOIN LATERAL (
      SELECT * FROM (SELECT ${COLUMNS} FROM pet WHERE id >= first_id ORDER BY id LIMIT ${LARGEST_PAGE}) AS largest
      ORDER BY id LIMIT size
    ) AS found`,
};
const PAGES_WITH_STATUS: Statement = {
  name: 'pet_pages_with_status',
  text: `SELECT ${COLUMNS}, position
    FROM unnest($1::bigint[], $2::int[], $3::pet_status[]) WITH ORDINALITY AS page (first_id, size, wanted, position)
    CROSS JOIN LATERAL (
      SELECT * FROM (
        SELECT ${COLUMNS} FROM pet
        WHERE (status, id) >= (wanted, first_id) AND (status, id) <= (wanted, ${INT64_MAX})
        ORDER BY status, id LIMIT ${LARGEST_PAGE}
      ) AS largest ORDER BY status, id LIMIT size
    ) AS found`,
};
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
  PAGE: page(21),
  PAGES,
  PAGE_WITH_STATUS: pageWithStatus(21),
  PAGES_WITH_STATUS,
  FIND,
  FIND_MANY,
  INSERT,
  INSERT_MANY,
  INSERT_ONCE,
} as const satisfies Record<string, Statement>;

type Limits = Omit<BatchLimits, 'waitMs'>;

const PAGE_LIMITS: Limits = { size: 16, concurrency: 2, waiting: 10_000 };
const FIND_LIMITS: Limits = { size: 200, concurrency: 2, waiting: 10_000 };
// Inserts that arrive during a commit share the next statement, for at most 20 ms.
const INSERT_LIMITS: Limits = { size: 100, concurrency: 2, waiting: 10_000, followMs: 20 };

/** Largest number of different pages that are being read or wait to be read. */
const MAX_PAGES_AT_A_TIME = 10_000;

/** Pages pass two queues, of equal pages and of statements; each gets half the wait budget. */
const QUEUES_OF_A_PAGE = 2;

/**
 * The fast path `shared-statements`: requests that wait at the same moment share one statement, and requests for the same
 * page share its result. The results equal those of `PetsRepository`; a test runs both side by side.
 */
export class SharedStatementsPetsRepository extends PetsRepository {
  private readonly sharedPages: SharedReads<PetsPage>;
  private readonly pages: Batches<PageRequest, PetsPage>;
  private readonly pagesWithStatus: Batches<PageRequest, PetsPage>;
  private readonly finds: Batches<bigint, Pet | undefined>;
  private readonly inserts: Batches<NewPet, bigint>;
  private readonly insertsOnce: IdempotentInserts<NewPet>;

  constructor(pets: Repository<PetEntity>, idempotency: Idempotency, database: Database) {
    super(pets, idempotency, database);
    const waitMs = database.acquireTimeoutMs;
    const pageWaitMs = waitMs / QUEUES_OF_A_PAGE;
    const pageLimits = { ...PAGE_LIMITS, waitMs: pageWaitMs };
    this.sharedPages = new SharedReads(MAX_PAGES_AT_A_TIME, pageWaitMs);
    this.pages = new Batches((pages) => this.readPages(pages, page, PAGES), pageLimits);
    this.pagesWithStatus = new Batches((pages) => this.readPages(pages, pageWithStatus, PAGES_WITH_STATUS), pageLimits);
    this.finds = new Batches((ids) => this.findAll(ids), { ...FIND_LIMITS, waitMs });
    this.inserts = new Batches((pets) => this.insertAll(pets), { ...INSERT_LIMITS, waitMs });
    this.insertsOnce = idempotency.inserts(INSERT_ONCE, ({ name, categoryId, status }) => [name, categoryId, status]);
  }

  override list(request: PageRequest): Promise<PetsPage> {
    const { firstId, limit, status } = request;
    return this.sharedPages.read(`${limit} ${status} ${firstId}`, () =>
      status === undefined ? this.pages.run(request) : this.pagesWithStatus.run(request),
    );
  }

  override find(id: bigint): Promise<Pet | undefined> {
    return this.finds.run(id);
  }

  override async insert(newPet: NewPet, key?: IdempotencyKey): Promise<Pet> {
    const { name, categoryId, status } = newPet;
    const pet = { name, categoryId, status };
    const id = await (key === undefined ? this.inserts.run(pet) : this.insertsOnce.insert(key, newPet));
    return { id, ...pet };
  }

  /** Reads pages that are all of one status, or all of any. */
  private async readPages(
    requests: readonly PageRequest[],
    statementOfOne: (limit: number) => Statement,
    statementOfMany: Statement,
  ): Promise<PetsPage[]> {
    const [first] = requests as [PageRequest, ...PageRequest[]];
    return requests.length === 1
      ? [await this.readPage(first, statementOfOne)]
      : this.readManyPages(requests, first.status !== undefined, statementOfMany);
  }

  private async readPage(
    { firstId, limit, status }: PageRequest,
    statementOf: (limit: number) => Statement,
  ): Promise<PetsPage> {
    const values = status === undefined ? [firstId] : [firstId, status];
    const rows = await this.database.read<Row>(statementOf(limit + 1), values);
    return toPage(rows.map(entityOf), limit);
  }

  private async readManyPages(
    requests: readonly PageRequest[],
    hasStatus: boolean,
    statement: Statement,
  ): Promise<PetsPage[]> {
    const firstIds = arrayOf(requests.map(({ firstId }) => firstId));
    const sizes = arrayOf(requests.map(({ limit }) => limit + 1));
    const values = hasStatus ? [firstIds, sizes, arrayOf(requests.map(({ status }) => status))] : [firstIds, sizes];
    const found: PetEntity[][] = requests.map(() => []);
    for (const row of await this.database.read<[...Row, position: string]>(statement, values)) {
      // PostgreSQL counts positions from 1.
      found[Number(row[4]) - 1]?.push(entityOf(row));
    }
    return requests.map(({ limit }, index) => {
      // PostgreSQL usually returns them in order but does not promise it.
      const pets = (found[index] ?? []).sort((one, other) => compareInt64Texts(one.id, other.id));
      return toPage(pets, limit);
    });
  }

  private async findAll(ids: readonly bigint[]): Promise<readonly (Pet | undefined)[]> {
    if (ids.length === 1) {
      const [row] = await this.database.readPrimary<Row>(FIND, [ids[0]]);
      return [row && toPet(entityOf(row))];
    }
    const rows = await this.database.readPrimary<Row>(FIND_MANY, [arrayOf(ids)]);
    const found = new Map(rows.map((row) => [row[0], row]));
    return ids.map((id) => {
      const row = found.get(id.toString());
      return row && toPet(entityOf(row));
    });
  }

  private async insertAll(pets: readonly NewPet[]): Promise<bigint[]> {
    const [first] = pets;
    const rows =
      first && pets.length === 1
        ? await this.database.write<[id: string]>(INSERT, [first.name, first.categoryId, first.status])
        : await this.database.write<[id: string]>(INSERT_MANY, [
            pets.map(({ name }) => name),
            arrayOf(pets.map(({ categoryId }) => categoryId)),
            arrayOf(pets.map(({ status }) => status)),
          ]);
    return rows.map(([id]) => BigInt(id));
  }
}

function entityOf([id, name, categoryId, status]: readonly [...Row, ...unknown[]]): PetEntity {
  return { id, name, categoryId, status };
}

/** Makes a page of the animals found: one more than `limit` means that another page follows. */
function toPage(found: PetEntity[], limit: number): PetsPage {
  return { pets: found.slice(0, limit), hasNext: found.length > limit };
}

/** A PostgreSQL array literal of values that need no quotes. */
function arrayOf(values: readonly unknown[]): string {
  return `{${values.join(',')}}`;
}

/** Caches the statement of each limit. */
function byLimit(make: (limit: number) => Statement): (limit: number) => Statement {
  const made = new Map<number, Statement>();
  return (limit) => {
    const statement = made.get(limit) ?? make(limit);
    made.set(limit, statement);
    return statement;
  };
}
