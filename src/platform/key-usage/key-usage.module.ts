import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { KeyUsageRetention } from './key-usage-retention.js';
import { KeyUsageEntity } from './key-usage.entity.js';
import { KeyUsageRepository } from './key-usage.repository.js';
import { KeyUsage } from './key-usage.js';

/**
 * Usage of API keys. The module is not global, and not part of the global AuthModule. Nest shuts global modules down
 * last and in undefined order. The last counts must be written before the database, which is global, is closed.
 */
@Module({
  imports: [TypeOrmModule.forFeature([KeyUsageEntity])],
  providers: [KeyUsage, KeyUsageRepository, KeyUsageRetention],
  exports: [KeyUsage],
})
export class KeyUsageModule {}
