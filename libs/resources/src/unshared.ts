import type { EntityMetadata, EntitySubscriberInterface } from 'typeorm';
import { MAX_COLUMNS } from './entity-sql.js';
import { type ColumnMetadata, typeNameOf } from './typeorm.internals.js';

/** Types whose values PostgreSQL gives and takes in shared statements as in statements of their own, beside enumerations. */
const TYPES = new Set(
  'bigint,boolean,character varying,date,double precision,integer,json,jsonb,numeric,real,smallint,text,uuid'
    .split(',')
    .concat('time without time zone', 'timestamp with time zone', 'timestamp without time zone'),
);

/** Types whose elements have another text in JavaScript than in PostgreSQL, so that arrays of them may not be shared. */
const NO_ELEMENTS = /^(json|date|time)/;

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
  const { columns, lazyRelations, listeners } = metadata;
  const special = columns.filter((column, index) => index >= MAX_COLUMNS || !isPlain(column));
  const listening = subscribers.filter((subscriber) => {
    const heard = subscriber.listenTo?.() ?? Object;
    return typeof heard !== 'function' || metadata.create() instanceof heard;
  });
  const reasons = {
    column: special.map(({ databaseName }) => databaseName),
    'lazy relation': lazyRelations.map(({ propertyPath }) => propertyPath),
    listener: listeners.map(({ propertyName }) => propertyName),
    subscriber: listening.map(({ constructor }) => constructor.name),
  };
  return Object.entries(reasons).flatMap(([what, names]) => names.map((name) => `${what} ${name}`));
}

/** Whether a column has a type of the above, and is read and written as any other: no version, say, and no deletion date. */
function isPlain(column: ColumnMetadata): boolean {
  const { isVirtual, isVirtualProperty, embeddedMetadata, isDiscriminator, isDeleteDate, isVersion } = column;
  if (isVirtual || isVirtualProperty || embeddedMetadata || isDiscriminator || isDeleteDate || isVersion) return false;
  if (!column.isSelect || !column.isInsert) return false;
  const type = typeNameOf(column);
  return column.enumName !== undefined || (TYPES.has(type) && !(column.isArray && NO_ELEMENTS.test(type)));
}
