import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ExpiredKeys } from './expired-keys.js';
import { IdempotencyKeyEntity } from './idempotency-key.entity.js';
import { IdempotencyKeyRepository } from './idempotency-key.repository.js';
import { Idempotency } from './idempotency.js';

/** Safe retries: `Idempotency` for every module. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([IdempotencyKeyEntity])],
  providers: [Idempotency, IdempotencyKeyRepository, ExpiredKeys],
  exports: [Idempotency],
})
export class IdempotencyModule {}
