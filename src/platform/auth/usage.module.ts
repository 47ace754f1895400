import { Module } from '@nestjs/common';
import { KeyUsageRetention } from './key-usage-retention.js';
import { KeyUsage } from './key-usage.js';
import { KeysModule } from './keys.module.js';

/**
 * The usage of API keys, counted. Not global, and so no part of the AuthModule: Nest ends global modules last, in an order
 * of its own, and the last counts must be written while the database, which is global, is still open.
 */
@Module({ imports: [KeysModule], providers: [KeyUsage, KeyUsageRetention], exports: [KeyUsage] })
export class UsageModule {}
