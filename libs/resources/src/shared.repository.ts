import { Inject, Logger } from '@nestjs/common';
import type { EntityManager, ObjectLiteral, Repository } from 'typeorm';
import { Idempotency, type InsertOnce } from './idempotency/idempotency.js';
import { type IdempotencyKey } from './idempotency/idempotency-key.js';
import { int64Of, shared } from '#json';
import { Batches, Database, EXACT_COMMENT, type Transaction } from '#postgres';
import { EntitySql, type Given, type Row } from './entity-sql.js';
import { type Filters, Keyset, MAX_PAGE_SIZE, type OrderBy, type Page, type PageQuery } from './cursors.js';
import { reasonsNotToShare } from './unshared.js';

/** Values of an entity's properties. An int64 may be a bigint. */
export type ValuesOf<Entity> = {
  readonly [Name in keyof Entity]?: Entity[Name] | (string extends Entity[Name] ? bigint : never) | undefined;
};

/** Values that columns of the entity have. Not null, which equals nothing in SQL. */
export type FiltersOf<Entity> = { readonly [Name in keyof Entity]?: NonNullable<ValuesOf<Entity>[Name]> | undefined };

interface PageRequest {
  readonly values: readonly unknown[];
  /** The parameters for the row before the page; empty for a first page. */
  readonly start: readonly string[];
  readonly limit: number;
  readonly filters: Filters;
}

/** Pages of some filters. */
type Pages<Item> = Record<'first' | 'next', Record<'small' | 'large', Batches<PageRequest, Page<Item>>>>;

interface Inserts {
  readonly plain: Batches<readonly unknown[], bigint>;
  readonly once: InsertOnce;
}

// Requests that arrive while a statement runs share the next one, for at most the time of `followMs`.
const PAGE_LIMITS = { size: 32, concurrency: 2, waiting: 10_000, followMs: 5 };
/** For large pages, which small ones do not wait for: the rows of a statement are bounded, too. */
const LARGE_PAGE_LIMITS = { ...PAGE_LIMITS, size: 4, concurrency: 1 };
/** A page of more items is large. */
const SMALL_PAGE_SIZE = 25;
const FIND_LIMITS = { size: 200, concurrency: 2, waiting: 10_000 };
const INSERT_LIMITS = { size: 100, concurrency: 2, waiting: 10_000, followMs: 20 };

const KEY_IN_TRANSACTION =
  'insertOnce with an idempotency key cannot be part of a transaction: a repeated request must skip all of its work. Pass the ' +
  'whole work to Idempotency.once or Idempotency.answer, and insert there without the key, by in(manager).';

/** Most combinations of columns that have statements of their own: each connection keeps them prepared. */
const MAX_COMBINATIONS = 8;

/** Entities of which the log has said that they share no statements. */
const warned = new WeakSet<object>();

/**
 * The repository of an entity with a generated bigint `id`: pages, rows by id, and inserts. The statements
 * are derived from the entity and prepared, and requests that wait at the same moment share one.
 *
 * TypeORM runs the same, one statement for each request, for entities with subscribers, listeners, lazy relations, embedded
 * columns, a version, soft deletion or types such as `point`: the log names them at their first request. So it does in a
 * transaction: see {@link in}. One that TypeORM's repository is in by itself, as with typeorm-transactional, counts.
 *
 * @example `class Visits extends SharedRepository<VisitEntity, Visit>`, whose constructor calls `super(visits, toVisit)`
 * @example `super(visits, toVisit, { visitedAt: 'DESC' })`
 */
export class SharedRepository<Entity extends ObjectLiteral & { id: string }, Item extends object> {
  // Nest injects both after the constructor.
  @Inject() protected readonly database: Database;
  @Inject() protected readonly idempotency: Idempotency;

  private readonly order: Keyset<string | OrderBy>;
  private readonly statements: EntitySql<Entity>;
  private isShared = false;
  /** The subscribers for which `isShared` holds: a list, and how many it had. */
  private subscribers: readonly [list: unknown, length: number] | undefined;
  /** Whether calls are outside of the surrounding transaction on purpose. */
  private readonly isOutside: boolean = false;
  private readonly pages = new Map<number, Pages<Item>>();
  private readonly kept: { finds?: Batches<readonly [bigint], Item | undefined> } = {};
  private readonly inserts = new Map<number, Inserts>();

  /**
   * @param order of pages; by default the ascending id. All columns are NOT NULL and have one direction; the id, in that
   *   direction, is added at the end. With many rows it needs an index of its columns and the id, behind those of the filters
   * @throws StartupError when the entity has another primary key or an eager relation, or its pages cannot have this order
   */
  constructor(
    protected readonly repository: Repository<Entity>,
    private readonly toItem: (entity: Entity) => Item,
    order?: OrderBy<keyof Entity & string>,
  ) {
    const given: OrderBy | undefined = order;
    const [direction = 'ASC'] = Object.values(given ?? {});
    const whole = given && { ...given, id: given['id'] ?? direction };
    this.order = new Keyset<string | OrderBy>(whole ?? 'id', repository.metadata.tablePath);
    this.statements = new EntitySql(repository, this.order);
  }

  /**
   * This repository in a transaction: it sees the changes of the transaction, and its inserts are committed with it. `insertOnce` takes no
   * key then. `in(dataSource.manager)` is outside of every transaction, on purpose, which the embedded engine refuses.
   *
   * @example `database.transaction(({ manager }) => this.visits.in(manager).insertOnce(undefined, visit))`
   */
  in(manager: EntityManager): this {
    // `manager` once more: under typeorm-transactional, TypeORM copies that of the other repository.
    const repository = Object.assign(manager.withRepository(this.repository), { manager });
    return Object.create(this, {
      repository: { value: repository },
      isOutside: { value: manager.queryRunner === undefined },
    }) as this;
  }

  /**
   * A page. Requests may share the items, so they are frozen.
   *
   * @param filters values that the rows have. With many rows they need an index of these columns and the order
   * @throws ApiError INVALID_CURSOR
   */
  async page({ limit, cursor }: PageQuery, filters: FiltersOf<Entity> = {}): Promise<Page<Item>> {
    this.check('read');
    const sent = filters as Filters;
    const start = cursor === undefined ? [] : this.statements.startOf(this.order.valuesOf(cursor, sent));
    const given = this.statements.given(filters);
    const { values } = given;
    const request = { values, start, limit, filters: sent };
    const pages =
      limit <= MAX_PAGE_SIZE && this.prepared<Pages<Item>>(this.pages, given, ({ columns }) => this.pagesOf(columns));
    if (pages) {
      const batches = pages[cursor === undefined ? 'first' : 'next'][limit <= SMALL_PAGE_SIZE ? 'small' : 'large'];
      // Not by `writeJson`, to which all boxed numbers are one.
      const samePage = `${limit} ${cursor} ${values.length > 0 ? JSON.stringify(values) : ''}`;
      // `await`, here and below: an async function that returns a promise needs two more microtasks.
      return await batches.run(request, samePage);
    }
    const query = this.repository.createQueryBuilder('entity').comment(EXACT_COMMENT);
    const page = this.statements.page(query, given, start, limit + 1);
    const { entities, raw } = await page.getRawAndEntities<Record<string, string>>();
    const last = entities.length > limit ? this.statements.lastOfRaw(raw[limit - 1] ?? {}) : undefined;
    return this.pageOf(entities.slice(0, limit), last, sent);
  }

  /** The row with this id. */
  async find(id: bigint): Promise<Item | undefined> {
    this.check('read');
    if (this.mayShare) return await (this.kept.finds ??= this.findsOf()).run([id]);
    const query = this.repository.createQueryBuilder('entity').comment(EXACT_COMMENT);
    const entity = await query.where('entity.id = :id', { id }).getOne();
    return entity ? this.toItem(entity) : undefined;
  }

  /**
   * Inserts a row and returns its id; requests with the same key insert one row. Committed when the promise resolves.
   *
   * @param input see {@link Idempotency.once}
   * @param values the columns of the row; the others get their defaults
   * @throws ApiError IDEMPOTENCY_KEY_REUSED
   * @throws Error inside a transaction with a key, and without `in`, unless NODE_ENV is `production`
   */
  async insertOnce(key: IdempotencyKey | undefined, input: object, values: ValuesOf<Entity> = input): Promise<bigint> {
    this.check('write');
    const isInTransaction = this.repository.manager.queryRunner !== undefined;
    if (isInTransaction && key !== undefined) throw new Error(KEY_IN_TRANSACTION);
    const given = this.statements.given(values);
    const inserts = given.columns.length > 0 && this.prepared(this.inserts, given, (of) => this.insertsOf(of));
    if (inserts) return await (key ? inserts.once(key, input, given.values) : inserts.plain.run(given.values));
    const insertBy = async ({ manager }: Pick<Transaction, 'manager'>): Promise<string> => {
      const row = Object.fromEntries(given.columns.map(({ propertyName: name }) => [name, values[name]]));
      const insert = manager
        .createQueryBuilder()
        .insert()
        .into(this.repository.target)
        .values(row as never);
      const { identifiers } = await insert.comment(EXACT_COMMENT).execute();
      return (identifiers[0] as Entity).id;
    };
    return int64Of(await (isInTransaction ? insertBy(this.repository) : this.idempotency.once(key, input, insertBy)));
  }

  private get mayShare(): boolean {
    const { metadata, manager } = this.repository;
    if (manager.queryRunner !== undefined) return false;
    const { subscribers } = manager.dataSource;
    const [list, length] = this.subscribers ?? [];
    if (list !== subscribers || length !== subscribers.length) {
      const reasons = reasonsNotToShare(metadata, subscribers);
      this.isShared = reasons.length === 0;
      this.subscribers = [subscribers, subscribers.length];
      if (!this.isShared && !warned.has(metadata)) {
        warned.add(metadata);
        new Logger(SharedRepository.name).warn(
          `${metadata.name} shares no statements, because of ${reasons.join(', ')}. So its pages, look-ups and inserts run one by one ` +
            'through TypeORM, at about four times the CPU time.',
        );
      }
    }
    return this.isShared;
  }

  /** Refuses, or warns of, a call inside a transaction that is no part of it. */
  private check(kind: 'read' | 'write'): void {
    if (this.database.isInside && !this.isOutside && this.repository.manager.queryRunner === undefined)
      this.database.checkOutside(kind, 3);
  }

  /** What is prepared for the given columns; undefined when TypeORM is to run them. */
  private prepared<Made>(kept: Map<number, Made>, given: Given, make: (given: Given) => Made): Made | undefined {
    if (!this.mayShare) return undefined;
    let made = kept.get(given.key);
    if (made === undefined && kept.size < MAX_COMBINATIONS) kept.set(given.key, (made = make(given)));
    return made;
  }

  private pagesOf(columns: Given['columns']): Pages<Item> {
    const { acquireTimeoutMs: waitMs } = this.database;
    const of = (kind: 'first' | 'next'): Pages<Item>['first'] => {
      const { one, many } = this.statements.pages(columns, kind);
      const read = async (requests: readonly PageRequest[]): Promise<Page<Item>[]> => {
        const [first] = requests as [PageRequest];
        if (requests.length === 1) {
          const rows = await this.database.execute<unknown[]>(one(first.limit + 1), [...first.start, ...first.values]);
          return [this.pageOfRows(rows, first)];
        }
        const inputs = requests.map(({ start, limit, values }) => [...start, ...values, limit + 1]);
        const arrays = (inputs[0] as unknown[]).map((_, parameter) => inputs.map((input) => input[parameter]));
        const rows = await this.database.execute<unknown[]>(many, arrays);
        const found = this.statements.pagesOf(rows, requests.length);
        return requests.map((request, index) => this.pageOfRows(found[index] ?? [], request));
      };
      return {
        small: new Batches(read, { ...PAGE_LIMITS, waitMs }),
        large: new Batches(read, { ...LARGE_PAGE_LIMITS, waitMs }),
      };
    };
    return { first: of('first'), next: of('next') };
  }

  private pageOfRows(rows: readonly Row[], { limit, filters }: PageRequest): Page<Item> {
    const { Entity } = this.statements;
    const entities = rows.slice(0, limit).map((row) => new Entity(row));
    const last = rows.length > limit ? this.statements.lastOf(rows[limit - 1] as Row) : undefined;
    return this.pageOf(entities, last, filters);
  }

  /** @param last the texts of the last row for the cursor of the next page; undefined if there is none */
  private pageOf(entities: readonly Entity[], last: readonly string[] | undefined, filters: Filters): Page<Item> {
    return { items: shared(entities.map(this.toItem)), nextCursor: last && this.order.cursorOf(last, filters) };
  }

  private findsOf(): Batches<readonly [bigint], Item | undefined> {
    const itemsOf = (rows: readonly unknown[][], inputs: readonly (readonly [bigint])[]) => {
      const found = new Map(rows.map((row) => new this.statements.Entity(row)).map((entity) => [entity.id, entity]));
      return inputs.map(([id]) => {
        const entity = found.get(String(id));
        return entity && this.toItem(entity);
      });
    };
    return this.database.share('read', this.statements.find, itemsOf, FIND_LIMITS);
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
