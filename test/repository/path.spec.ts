import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/* A request passes few files, and is not handed to and fro between rooms. `npm run path` prints its way. */

test.each(['/v1/pets', '/v1/pets/1'])(
  'GET %s passes at most 40 files, and returns at most 15 times',
  async (path) => {
    const { stdout } = await promisify(execFile)(process.execPath, ['scripts/path.js', 'GET', path]);
    const [, status, files, returns] = /^(\d+): (\d+) files in \d+ rooms, (\d+) returns \(<\)$/m.exec(stdout) ?? [];
    // `npm run path -- GET …` shows where it leaves a room and returns.
    const most = { status: '200', files: Math.min(Number(files), 40), returns: Math.min(Number(returns), 15) };
    expect({ status, files: Number(files), returns: Number(returns) }).toEqual(most);
  },
  180_000,
);
