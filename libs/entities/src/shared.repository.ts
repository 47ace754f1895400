import { Inject } from '@nestjs/common';
import type { ObjectLiteral, Repository } from 'typeorm';
import { Idempotency, type IdempotencyKey, type IdempotentInserts } from '#idempotency';
import { compareInt64Texts, INT64_MAX, INT64_MIN, int64Of, shared } from '#json';
import { Batches, type BatchLimits, Database, EXACT_COMMENT } from '#postgres';
import { EntityStatements, type Given } from './entity-statements.js';
import { type Filters, Keyset, MAX_PAGE_SIZE, type Page, type PageQuery } from './keyset.js';

/** Values of an entity's properties. An int64 may be a bigint. */
export type ValuesOf<Entity> = {
  readonly [Name in keyof Entity]?: Entity[Name] | (string extends Entity[Name] ? bigint : never) | undefined;
};

/** Values that columns of the entity have. Not null, which equals nothing in SQL. */
export type FiltersOf<Entity> = { readonly [Name in keyof Entity]?: NonNullable<ValuesOf<Entity>[Name]> | undefined };

interface PageRequest extends Given {
  readonly firstId: bigint;
  readonly limit: number;
  readonly filters: Filters;
}

interface Inserts {
  readonly plain: Batches<readonly unknown[], bigint>;
  readonly once: IdempotentInserts;
}

// Requests that arrive while a statement runs share the next one, for at most the time of `followMs`.
const PAGE_LIMITS = { size: 16, concurrency: 2, waiting: 10_000, followMs: 5 };
/** For large pages, which small ones do not wait for: the rows of a statement are bounded, too. */
const LARGE_PAGE_LIMITS = { ...PAGE_LIMITS, size: 4, concurrency: 1 };
/** A page of more items is large. */
const SMALL_PAGE_SIZE = 25;
const FIND_LIMITS = { size: 200, concurrency: 2, waiting: 10_000 };
const INSERT_LIMITS = { size: 100, concurrency: 2, waiting: 10_000, followMs: 20 };

/** Most combinations of columns that have statements of their own: each connection keeps them prepared. */
const MAX_COMBINATIONS = 8;

/**
 * The repository of an entity with a generated bigint `id`: pages by ascending id, rows by id, and inserts. The statements
 * are derived from the entity and prepared, and requests that wait at the same moment share one.
 *
 * TypeORM runs the same, one statement for each request, with `FAST_PATHS=off` and for entities with subscribers, listeners,
 * eager or lazy relations, embedded columns, arrays, a version, soft deletion or types such as `point`. Other relations are
 * not loaded.
 *
 * @example `class Visits extends SharedRepository<VisitEntity, Visit>`, whose constructor calls `super(visits, toVisit)`
 */
export class SharedRepository<Entity extends ObjectLiteral & { id: string }, Item extends object> {
  // Nest injects both after the constructor.
  @Inject() protected readonly database: Database;
  @Inject() protected readonly idempotency: Idempotency;

  private readonly order = new Keyset('id');
  private readonly statements: EntityStatements<Entity>;
  private isShared: boolean | undefined;
  private readonly pages = new Map<number, Record<'small' | 'large', Batches<PageRequest, Page<Item>>>>();
  private finds: Batches<readonly [bigint], Item | undefined> | undefined;
  private readonly inserts = new Map<number, Inserts>();

  /** @throws StartupError when the entity has another primary key */
  constructor(
    protected readonly repository: Repository<Entity>,
    private readonly toItem: (entity: Entity) => Item,
  ) {
    this.statements = new EntityStatements(repository);
  }

  /**
   * A page, by ascending id; from a read replica if there is one. Requests may share the items, so they are frozen.
   *
   * @param filters values that the rows have. With many rows they need an index of these columns and the id
   * @throws ApiError INVALID_CURSOR
   */
  async page({ limit, cursor }: PageQuery, filters: FiltersOf<Entity> = {}): Promise<Page<Item>> {
    const after = cursor === undefined ? undefined : this.order.decode(cursor, filters);
    if (after === INT64_MAX) return { items: [], nextCursor: undefined };
    const firstId = after === undefined ? INT64_MIN : after + 1n;
    const given = this.statements.given(filters);
    const { key, columns, values } = given;
    // Not by a spread, which takes 3 µs.
    const request = { key, columns, values, firstId, limit, filters: filters as Filters };
    const batches =
      limit <= MAX_PAGE_SIZE &&
      this.prepared(this.pages, given, () => {
        const read = this.readPages(given);
        return { small: this.batches(read, PAGE_LIMITS), large: this.batches(read, LARGE_PAGE_LIMITS) };
      });
    const samePage = `${limit} ${firstId} ${values.length > 0 ? JSON.stringify(values) : ''}`;
    // `await`, here and below: an async function that returns a promise needs two more microtasks.
    if (batches) return await batches[limit <= SMALL_PAGE_SIZE ? 'small' : 'large'].run(request, samePage);
    const found = await this.database.readReplica((manager) => {
      const query = manager
        .createQueryBuilder(this.repository.target, 'entity')
        .comment(EXACT_COMMENT)
        .limit(limit + 1);
      const parameters = Object.fromEntries(values.map((value, index) => [`value${index}`, value]));
      return this.statements
        .page(query, columns, ':firstId', (filter) => `:value${filter}`)
        .setParameters({ firstId, ...parameters })
        .getMany();
    });
    return this.pageOf(found, request);
  }

  /** The row with this id, from the primary: a client must find the row it just created. */
  find(id: bigint): Promise<Item | undefined> {
    return this.mayShare ? (this.finds ??= this.findsOf()).run([id]) : this.findByTypeOrm(id);
  }

  private async findByTypeOrm(id: bigint): Promise<Item | undefined> {
    const query = this.repository.createQueryBuilder('entity').comment(EXACT_COMMENT);
    const found = await query.where('entity.id = :id', { id }).getOne();
    return found === null ? undefined : this.toItem(found);
  }

  /**
   * Inserts a row and returns its id; requests with the same key insert one row. Committed when the promise resolves.
   *
   * @param input see {@link Idempotency.once}
   * @param values the columns of the row; the others get their defaults
   * @throws ApiError IDEMPOTENCY_KEY_REUSED
   */
  async insertOnce(key: IdempotencyKey | undefined, input: object, values: ValuesOf<Entity> = input): Promise<bigint> {
    const given = this.statements.given(values);
    const inserts = given.columns.length > 0 && this.prepared(this.inserts, given, (of) => this.insertsOf(of));
    if (inserts) return await (key ? inserts.once.insert(key, input, given.values) : inserts.plain.run(given.values));
    const id = await this.idempotency.once(key, input, async ({ manager }) => {
      const row = Object.fromEntries(given.columns.map(({ propertyName: name }) => [name, values[name]]));
      const insert = manager
        .createQueryBuilder()
        .insert()
        .into(this.repository.target)
        .values(row as never);
      const { identifiers } = await insert.comment(EXACT_COMMENT).execute();
      return (identifiers[0] as Entity).id;
    });
    return int64Of(id);
  }

  /** Whether requests may share statements, of which subscribers are not told. Known after the start, which adds them. */
  private get mayShare(): boolean {
    if (this.isShared !== undefined) return this.isShared;
    const { manager, metadata } = this.repository;
    const isUnheard = manager.dataSource.subscribers.every((subscriber) => {
      const heard = subscriber.listenTo?.() ?? Object;
      return typeof heard === 'function' && !(metadata.create() instanceof heard);
    });
    return (this.isShared = isUnheard && this.database.mayBatch && this.statements.areComplete);
  }

  /** What is prepared for the given columns; undefined when TypeORM is to run them. */
  private prepared<Made>(kept: Map<number, Made>, given: Given, make: (given: Given) => Made): Made | undefined {
    if (!this.mayShare) return undefined;
    let made = kept.get(given.key);
    if (made === undefined && kept.size < MAX_COMBINATIONS) kept.set(given.key, (made = make(given)));
    return made;
  }

  private batches<Input, Output>(
    execute: (inputs: readonly Input[]) => Promise<readonly Output[]>,
    limits: Omit<BatchLimits, 'waitMs'>,
  ): Batches<Input, Output> {
    return new Batches(execute, { ...limits, waitMs: this.database.acquireTimeoutMs });
  }

  private readPages({ columns }: Given) {
    const { one, many } = this.statements.pages(columns);
    return async (requests: readonly PageRequest[]): Promise<Page<Item>[]> => {
      const [first] = requests as [PageRequest];
      if (requests.length === 1) {
        const rows = await this.database.read(one(first.limit + 1), [first.firstId, ...first.values]);
        const entities = rows.map((row) => new this.statements.Entity(row));
        return [this.pageOf(entities, first)];
      }
      const rows = await this.database.read(many, [
        arrayOf(requests.map(({ firstId }) => firstId)),
        arrayOf(requests.map(({ limit }) => limit + 1)),
        ...columnsOf(requests.map(({ values }) => values)),
      ]);
      const found: Entity[][] = requests.map(() => []);
      // PostgreSQL counts positions from 1.
      for (const row of rows) found[Number(row.at(-1)) - 1]?.push(new this.statements.Entity(row));
      // PostgreSQL usually returns them in order but does not promise it. Looking takes a third of the time of sorting.
      const byId = (one: Entity, other: Entity): number => compareInt64Texts(one.id, other.id);
      for (const all of found) {
        const isSorted = all.every((one, index) => byId(all[Math.max(0, index - 1)] as Entity, one) <= 0);
        if (!isSorted) all.sort(byId);
      }
      return requests.map((request, index) => this.pageOf(found[index] as Entity[], request));
    };
  }

  private pageOf(found: readonly Entity[], { limit, filters }: PageRequest): Page<Item> {
    const { items, nextCursor } = this.order.page(found, { limit }, filters);
    return { items: shared(items.map(this.toItem)), nextCursor };
  }

  private findsOf(): Batches<readonly [bigint], Item | undefined> {
    const itemsOf = (rows: readonly unknown[][], inputs: readonly (readonly [bigint])[]) => {
      const found = new Map(rows.map((row) => new this.statements.Entity(row)).map((entity) => [entity.id, entity]));
      return inputs.map(([id]) => {
        const entity = found.get(String(id));
        return entity && this.toItem(entity);
      });
    };
    return this.database.share('readPrimary', this.statements.find, itemsOf, FIND_LIMITS);
  }

  private insertsOf({ columns }: Given): Inserts {
    const { once, ...statements } = this.statements.inserts(columns);
    const idsOf = (rows: readonly [id: string][]) => rows.map(([id]) => int64Of(id));
    return {
      plain: this.database.share('write', statements, idsOf, INSERT_LIMITS),
      once: this.idempotency.inserts(once),
    };
  }
}

/** A PostgreSQL array literal of values that need no quotes. */
function arrayOf(values: readonly unknown[]): string {
  return `{${values.join(',')}}`;
}

function columnsOf(rows: readonly (readonly unknown[])[]): unknown[][] {
  return (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]));
}
