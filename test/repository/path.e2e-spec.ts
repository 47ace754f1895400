import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createTestDatabase } from '../support/database.js';

/* A request passes few files, and is not handed to and fro between rooms. `node scripts/path.js` prints its way. */

test('GET of a pet passes at most 11 rooms and returns at most 8 times, POST 10 and 21', async () => {
  const database = await createTestDatabase();
  const env = { ...process.env, ...database.settings };
  const { stdout } = await promisify(execFile)(process.execPath, ['scripts/path.js'], { env });
  await database.drop();
  const ways = [...stdout.matchAll(/^(\d+): \d+ files in (\d+) rooms, (\d+) returns \(<\)$/gm)].map((way) =>
    way.slice(1, 4).map(Number),
  );
  const most = (status: number, [, rooms = 0, returns = 0]: number[] = [], ...limits: [number, number]): number[] => [
    status,
    Math.min(rooms, limits[0]),
    Math.min(returns, limits[1]),
  ];
  // `node scripts/path.js` shows where it leaves a room and returns.
  expect(ways).toEqual([most(200, ways[0], 11, 8), most(201, ways[1], 10, 21)]);
}, 180_000);
