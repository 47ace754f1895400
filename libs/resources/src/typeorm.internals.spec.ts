import { DataSource, EntitySchema } from 'typeorm';
import { readValue, typeNameOf, writtenValue } from './typeorm.internals.js';

class Toy {
  id: string;
  name: string;
  tags: string[];
  wind(): void {}
}

const schema = new EntitySchema<Toy>({
  name: 'Toy',
  target: Toy,
  columns: {
    id: { type: 'bigint', primary: true, generated: true },
    name: { type: String },
    tags: { type: 'simple-json' },
  },
  indices: [{ columns: ['name', 'id'], where: 'id > 1' }],
});

test('what TypeORM knows of an entity: values, types, indices and listeners', async () => {
  // Never connected.
  const dataSource = new DataSource({ type: 'postgres', entities: [schema] });
  await dataSource['buildMetadatas']();
  const toy = dataSource.getMetadata(schema);
  const [, , tags] = toy.columns;
  if (tags === undefined) throw new Error('The column tags is not known.');
  expect([writtenValue(tags, ['a']), readValue(tags, '["b"]')]).toEqual(['["a"]', ['b']]);
  expect(toy.columns.map(typeNameOf)).toEqual(['bigint', 'character varying', 'text']);
  const indices = toy.indices.map(({ columns, where }) => [...columns.map(({ propertyName }) => propertyName), where]);
  expect(indices).toEqual([['name', 'id', 'id > 1']]);
  expect(toy.listeners).toEqual([]);
});
