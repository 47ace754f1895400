import { readConfig } from '../../src/config.js';
import { dataSourceOptions, openCurrentDatabase } from '../../src/platform/database/data-source.js';

/*
 * Opens DATA_DIR in a separate process and adds animals until it is killed. Prints `open`, then the id of each animal
 * once its insert is acknowledged.
 */
const dataSource = await openCurrentDatabase(await dataSourceOptions(readConfig()));
process.stdout.write('open\n');
for (;;) {
  const insert = `INSERT INTO pet (name, category_id) VALUES ('Rex', 7) RETURNING id`;
  const [{ id }] = await dataSource.query<[{ id: string }]>(insert);
  process.stdout.write(`${id}\n`);
}
