import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ApiKeyEntity } from './storage/api-key.entity.js';
import { ApiKeyRepository } from './storage/api-key.repository.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { ApiKeysService } from './api-keys.service.js';
import { ClientEntity } from './storage/client.entity.js';

/** API keys and the clients they belong to. */
@Module({
  imports: [TypeOrmModule.forFeature([ClientEntity, ApiKeyEntity])],
  providers: [ApiKeyRepository, ApiKeyVerifier, ApiKeysService],
  exports: [ApiKeyVerifier, ApiKeysService],
})
export class ApiKeysModule {}
