import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, PrimaryGeneratedColumn, Repository } from 'typeorm';
import { SharedRepository } from '#resources';

/* A table of notes, for tests of transactions. */

export const CREATE_NOTES =
  'CREATE TABLE test_note (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text NOT NULL)';
export const INSERT_NOTE = { name: '', text: 'INSERT INTO test_note (text) VALUES ($1)' };
export const COUNT_NOTES = { name: '', text: 'SELECT count(*)::int FROM test_note' };

@Entity('test_note')
export class NoteEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' }) id: string;
  @Column({ type: 'text' }) text: string;
}

@Injectable()
export class Notes extends SharedRepository<NoteEntity, NoteEntity> {
  constructor(@InjectRepository(NoteEntity) notes: Repository<NoteEntity>) {
    super(notes, (note) => note);
  }
}
