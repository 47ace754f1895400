import type { INestApplication } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Application } from '../../platform/application.js';
import { ApiKeyRequestError, ApiKeysService } from '../../platform/api-keys/api-keys.service.js';
import { KeyUsageRepository } from '../../platform/key-usage/key-usage.repository.js';
import { OpenApiDocument } from '../../platform/openapi/openapi-document.js';
import type { CommandContext } from '../command/command-context.js';
import { CommandError } from '../command/command-error.js';
import type { Terminal } from '../command/terminal.js';

/** Animals per statement of `seed` in the service: requests wait while the engine runs a statement. */
const SEED_BATCH = 500;

/** Rows per statement of `export` in the service. */
const EXPORT_BATCH = 1_000;

/** Runs a command in the service, on the service's database. */
export class ServiceContext implements CommandContext {
  readonly seedBatch = SEED_BATCH;
  readonly application: Application;
  readonly exportOptions = { maxRows: EXPORT_BATCH, sharesConnection: true };
  exitCode = 0;

  constructor(
    private readonly app: INestApplication,
    readonly terminal: Terminal,
    readonly createFile: CommandContext['createFile'],
  ) {
    this.application = app.get(Application);
  }

  readonly withKeys: CommandContext['withKeys'] = async (work) => {
    try {
      return await work(this.app.get(ApiKeysService), this.app.get(KeyUsageRepository));
    } catch (error) {
      throw error instanceof ApiKeyRequestError ? new CommandError(error.message) : error;
    }
  };

  readonly withDatabase: CommandContext['withDatabase'] = (work) => work(this.app.get(DataSource));

  readonly withCurrentDatabase: CommandContext['withCurrentDatabase'] = this.withDatabase;

  readonly document: CommandContext['document'] = () => Promise.resolve(this.app.get(OpenApiDocument));
}
