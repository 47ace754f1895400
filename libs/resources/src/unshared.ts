import type { EntityMetadata, EntitySubscriberInterface } from 'typeorm';
import { MAX_COLUMNS } from './entity-sql.js';
import { type ColumnMetadata, listenersOf, typeNameOf } from './typeorm.internals.js';

/** Types whose values PostgreSQL gives and takes in shared statements as in statements of their own, beside enumerations. */
const TYPES = new Set(
  'bigint,boolean,character varying,date,double precision,integer,json,jsonb,numeric,real,smallint,text,uuid'
    .split(',')
    .concat('time without time zone', 'timestamp with time zone', 'timestamp without time zone'),
);

/** Types whose elements have the same text in JavaScript and in PostgreSQL, so that arrays of them may be shared. */
const ELEMENT_TYPES = new Set(
  'bigint,boolean,character varying,double precision,integer,numeric,real,smallint,text,uuid'.split(','),
);

/**
 * Why requests for an entity cannot share statements: what TypeORM does for the entity that shared statements do not. Empty
 * if they can.
 *
 * @param subscribers those of the data source
 */
export function reasonsNotToShare(
  metadata: EntityMetadata,
  subscribers: readonly EntitySubscriberInterface[],
): readonly string[] {
  const { columns, lazyRelations } = metadata;
  const reasons = columns.flatMap((column) => {
    const reason = reasonOf(column);
    return reason === undefined ? [] : [`the column ${column.databaseName} ${reason}`];
  });
  if (columns.length > MAX_COLUMNS) reasons.push(`it has ${columns.length} columns, more than ${MAX_COLUMNS}`);
  for (const { propertyPath } of lazyRelations) reasons.push(`the relation ${propertyPath} is lazy`);
  for (const name of listenersOf(metadata)) reasons.push(`its method ${name} is a listener`);
  for (const subscriber of subscribers) {
    const heard = subscriber.listenTo?.() ?? Object;
    if (typeof heard === 'function' && !(metadata.create() instanceof heard)) continue;
    reasons.push(`${subscriber.constructor.name} subscribes to it`);
  }
  return reasons;
}

function reasonOf(column: ColumnMetadata): string | undefined {
  if (column.isVirtual) return 'has no property of its own beside the relation';
  if (column.isVirtualProperty) return 'is computed';
  if (column.embeddedMetadata !== undefined) return 'is embedded';
  if (column.isDiscriminator) return 'tells classes of one table apart';
  if (column.isDeleteDate) return 'marks deleted rows';
  if (column.isVersion) return 'counts versions';
  if (!column.isSelect) return 'is not selected';
  if (!column.isInsert) return 'is not inserted';
  if (column.enumName !== undefined) return undefined;
  const type = typeNameOf(column);
  if (!(column.isArray ? ELEMENT_TYPES : TYPES).has(type)) return `has the type ${type}${column.isArray ? '[]' : ''}`;
  return undefined;
}
