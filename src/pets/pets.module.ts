import { Module } from '@nestjs/common';
import { getRepositoryToken, TypeOrmModule } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { Config } from '../config.js';
import { Database } from '../platform/database/database.js';
import { Idempotency } from '../platform/idempotency/idempotency.js';
import { PetEntity } from './pet.entity.js';
import { PetsController } from './pets.controller.js';
import { PetsRepository } from './pets.repository.js';
import { PetsService } from './pets.service.js';
import { SharedStatementsPetsRepository } from './pets.shared-statements.repository.js';

/** The catalogue of animals. */
@Module({
  imports: [TypeOrmModule.forFeature([PetEntity])],
  controllers: [PetsController],
  providers: [
    PetsService,
    {
      // A module without a fast path just lists its repository as a provider.
      provide: PetsRepository,
      inject: [Config, getRepositoryToken(PetEntity), Idempotency, Database],
      useFactory: (config: Config, ...needs: [Repository<PetEntity>, Idempotency, Database]) =>
        config.fastPaths ? new SharedStatementsPetsRepository(...needs) : new PetsRepository(...needs),
    },
  ],
  exports: [PetsService],
})
export class PetsModule {}
