import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Entity, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import { createTestApp } from '../support/app.js';

/* In a file of its own, because `forFeature` concerns all applications of a process. */

@Entity('test_ship')
class ShipEntity {
  @PrimaryGeneratedColumn() id: number;
}

@Entity('test_dock')
class DockEntity {
  @PrimaryGeneratedColumn() id: number;
  @ManyToOne(() => ShipEntity) ship: ShipEntity;
}

@Module({ imports: [TypeOrmModule.forFeature([DockEntity])] })
class DocksModule {}

test('a start with a relation to an entity that no module names fails with the sentence of TypeORM', async () => {
  const sentence = 'Entity metadata for DockEntity#ship was not found';
  await expect(createTestApp({ features: [DocksModule] })).rejects.toThrow(sentence);
});
