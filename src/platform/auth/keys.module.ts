import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ApiKeyEntity } from './api-key.entity.js';
import { ApiKeyRepository } from './api-key.repository.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { ApiKeysService } from './api-keys.service.js';
import { ClientEntity } from './client.entity.js';
import { KeyUsageEntity } from './key-usage.entity.js';
import { KeyUsageRepository } from './key-usage.repository.js';

/** Keys, clients and usage as they are stored: what the command line needs of authentication. */
@Module({
  imports: [TypeOrmModule.forFeature([ClientEntity, ApiKeyEntity, KeyUsageEntity])],
  providers: [ApiKeyRepository, ApiKeyVerifier, ApiKeysService, KeyUsageRepository],
  exports: [ApiKeyVerifier, ApiKeysService, KeyUsageRepository],
})
export class KeysModule {}
