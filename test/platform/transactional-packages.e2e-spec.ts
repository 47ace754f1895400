import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestDatabase } from '../support/database.js';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAM = [
  '--import',
  './test/support/register-typescript.js',
  'test/platform/support/transactional-packages.ts',
];

test('typeorm-transactional is joined without a word, nestjs-cls by in(host.tx); both undo all of a failed transaction', async () => {
  const database = await createTestDatabase();
  const env = { ...process.env, ...database.ownerSettings };
  const { stdout } = await promisify(execFile)(process.execPath, PROGRAM, { cwd: ROOT, env });
  await database.drop();
  expect(JSON.parse(stdout)).toEqual([
    ['undone', []],
    ['undone', []],
    [
      ['shared', [[3]]],
      ['savepoint', 'shared', 'written'],
    ],
    [['shared'], ['shared']],
  ]);
}, 120_000);
