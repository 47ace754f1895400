import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createTestDatabase } from '../support/database.js';

/* A request passes few files, and is not handed to and fro between rooms. `npm run path` prints its way. */

test('GET of a pet passes at most 36 files and returns at most 15 times, GET of a list 38 and 20', async () => {
  const database = await createTestDatabase();
  const requests = ['GET', '/v1/pets/1', 'GET', '/v1/pets'];
  const env = { ...process.env, ...database.settings };
  const { stdout } = await promisify(execFile)(process.execPath, ['scripts/path.js', ...requests], { env });
  await database.drop();
  const ways = [...stdout.matchAll(/^(\d+): (\d+) files in \d+ rooms, (\d+) returns \(<\)$/gm)].map((way) =>
    way.slice(1, 4).map(Number),
  );
  const [ofPet = [], ofList = []] = ways;
  const most = ([, files = 0, returns = 0]: number[], ...limits: [files: number, returns: number]): number[] => [
    200,
    Math.min(files, limits[0]),
    Math.min(returns, limits[1]),
  ];
  // `npm run path -- GET …` shows where it leaves a room and returns.
  expect(ways).toEqual([most(ofPet, 36, 15), most(ofList, 38, 20)]);
}, 180_000);
