import { Global, Module } from '@nestjs/common';
import { ExpiredKeys, IdempotencyKeyRepository } from './idempotency-key.repository.js';
import { Idempotency } from './idempotency.js';

/** Safe retries: `Idempotency` for every module. */
@Global()
@Module({
  providers: [Idempotency, IdempotencyKeyRepository, ExpiredKeys],
  exports: [Idempotency],
})
export class IdempotencyModule {}
