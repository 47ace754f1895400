import type { DataSource } from 'typeorm';
import { applicationOf } from '../../app.description.js';
import type { AppOptions } from '../../app.options.js';
import { readConfig } from '../../config.js';
import type { Application } from '../../platform/application.js';
import type { CommandContext } from './command-context.js';
import { StandardTerminal } from './terminal.js';
import { createOutputFile } from '../transfer/output-file.js';

/** Animals per statement of `seed`: few enough for the statement time-out and for frequent progress reports. */
const SEED_BATCH = 20_000;

/** Rows per statement of `export`. */
const EXPORT_BATCH = 10_000;

/** Runs commands in this process, which opens the database itself. Nest and TypeORM are loaded on demand. */
export class OwnContext implements CommandContext {
  readonly terminal = new StandardTerminal();
  readonly seedBatch = SEED_BATCH;
  readonly application: Application;
  readonly exportOptions = { maxRows: EXPORT_BATCH, sharesConnection: false };
  readonly createFile = createOutputFile;
  exitCode = 0;

  constructor(private readonly options: AppOptions) {
    this.application = applicationOf(options);
  }

  readonly withKeys: CommandContext['withKeys'] = async (work) => {
    const { withKeys } = await import('./command.module.js');
    return withKeys(this.application, work);
  };

  readonly withDatabase: CommandContext['withDatabase'] = async (work) => {
    const { openDatabase } = await import('../../platform/database/data-source.js');
    return closeAfter(await openDatabase(readConfig(), this.application), work);
  };

  readonly withCurrentDatabase: CommandContext['withCurrentDatabase'] = async (work) => {
    const { openCurrentDatabase } = await import('../../platform/database/data-source.js');
    const { dataSourceOptions } = await import('../../platform/database/data-source-options.js');
    const { directly, directSetting } = await import('../../platform/database/direct-connection.js');
    // An import locks and sets limits, which need a session of their own.
    const config = readConfig();
    const options = await dataSourceOptions(directly(config), this.application.migrations);
    return closeAfter(await openCurrentDatabase(options, directSetting(config)), work);
  };

  readonly document: CommandContext['document'] = async () => {
    const { describeApplication } = await import('../preview.js');
    return describeApplication(readConfig(), this.options);
  };
}

async function closeAfter<Result>(
  dataSource: DataSource,
  work: (dataSource: DataSource) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}
