import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createTestDatabase } from '../support/database.js';

/* A request passes few files, and is not handed to and fro between rooms. `npm run path` prints its way. */

test('GET of a list and of a pet pass at most 40 files, and return at most 23 times', async () => {
  const database = await createTestDatabase();
  const requests = ['GET', '/v1/pets', 'GET', '/v1/pets/1'];
  const env = { ...process.env, ...database.settings };
  const { stdout } = await promisify(execFile)(process.execPath, ['scripts/path.js', ...requests], { env });
  await database.drop();
  const ways = [...stdout.matchAll(/^(\d+): (\d+) files in \d+ rooms, (\d+) returns \(<\)$/gm)].map((way) =>
    way.slice(1, 4).map(Number),
  );
  // `npm run path -- GET …` shows where it leaves a room and returns.
  const most = ways.map(([, files, returns]) => [200, Math.min(Number(files), 40), Math.min(Number(returns), 23)]);
  expect([ways.length, ways]).toEqual([2, most]);
}, 180_000);
