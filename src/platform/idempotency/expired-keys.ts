import { Injectable } from '@nestjs/common';
import { BackgroundRemoval } from '../database/removal/background-removal.js';
import { IdempotencyKeyRepository } from './idempotency-key.repository.js';

/** Removes expired keys in the background. `idempotency-key.repository.ts` defines the 24 h after which a key expires. */
@Injectable()
export class ExpiredKeys extends BackgroundRemoval {
  constructor(keys: IdempotencyKeyRepository) {
    super('Expired idempotency keys', 60_000, () => keys.removeExpired());
  }
}
