import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const BENCH = ['--import', './test/support/register-typescript.js', 'bench/run.ts'];
const ROOT = new URL('../..', import.meta.url).pathname;

test.each([
  [['--servers', 'petstore,gone'], '"gone" is unknown. Choose from petstore, hand-written, '],
  [['--workloads', 'lst'], '"lst" is unknown. Choose from list, status, '],
  [['--rounds', '0'], '"0" is no positive integer'],
  [['--rows', '1000,x'], '"x" is no positive integer'],
  [['--keys', '5'], "options '--keys' and '--idempotency-rows' need each other"],
])('the benchmark refuses %j before it starts anything, and says what is wrong', async (options, fault) => {
  await expect(promisify(execFile)(process.execPath, [...BENCH, ...options], { cwd: ROOT })).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining(fault) as string,
  });
});
