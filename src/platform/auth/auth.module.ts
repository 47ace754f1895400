import { Global, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ApiKeyEntity } from './api-key.entity.js';
import { ApiKeyGuard } from './api-key.guard.js';
import { ApiKeyRepository } from './api-key.repository.js';
import { ApiKeysService } from './api-keys.service.js';
import { StartKeys } from './start-keys.js';

/** Authentication for every handler of every module. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiKeyEntity])],
  providers: [ApiKeyRepository, ApiKeysService, StartKeys, { provide: APP_GUARD, useClass: ApiKeyGuard }],
  exports: [ApiKeysService, StartKeys],
})
export class AuthModule {}
