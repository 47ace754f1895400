import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/* A request passes few files, and is not handed to and fro between rooms. `npm run path` prints its way. */

test.each(['/v1/pets', '/v1/pets/1'])(
  'GET %s passes at most 40 files, and returns at most 15 times',
  async (path) => {
    const { stdout } = await promisify(execFile)(process.execPath, ['scripts/path.js', 'GET', path]);
    const [, status, files, returns] = /^(\d+): (\d+) files in \d+ rooms, (\d+) returns \(<\)$/m.exec(stdout) ?? [];
    expect({ status, way: stdout, fits: Number(files) <= 40 && Number(returns) <= 15 }).toEqual({
      status: '200',
      way: stdout,
      fits: true,
    });
  },
  180_000,
);
