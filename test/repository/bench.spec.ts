import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readLoadResult } from '../../bench/load/load-result.js';
import { buildPeers } from '../../bench/peers.js';

/* The benchmark ends, or leaves a server out, instead of printing figures that mean nothing. The gate runs it. */

const BENCH = ['--import', './test/support/register-typescript.js', 'bench/run.ts'];

test.each([
  [['--servers', 'petstore,gone'], '"gone" is unknown. Choose from petstore, hand-written, '],
  [['--rows', '1000,x'], '"x" is no positive integer'],
])('it refuses %j before it starts anything', async (options, fault) => {
  const cwd = join(import.meta.dirname, '../..');
  await expect(promisify(execFile)(process.execPath, [...BENCH, ...options], { cwd })).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining(fault) as string,
  });
});

const outputOf = (requests: number, failures: number): string =>
  `RESULT ${JSON.stringify({ requests, durationUs: 1_000_000, p50Us: 10, p99Us: 20, failures })}\n`;

test.each([
  ['petstore', outputOf(100, 1)],
  ['go', outputOf(0, 7)],
  ['go', 'unable to connect'],
])('it ends when a request of this service fails, or a server responds to none: %s, %j', (server, output) => {
  expect(readLoadResult('go', outputOf(100, 7))).toMatchObject({ requests: 100, failures: 7 });
  expect(() => readLoadResult(server, output)).toThrow(`${server} failed under load: ${output}`);
});

test('it leaves out a server whose toolchain is missing, and says what to install', () => {
  const { PATH } = process.env;
  const leftOut: string[][] = [];
  try {
    process.env['PATH'] = '/nowhere';
    expect(buildPeers(['go'], (name, reason) => leftOut.push([name, reason])).size).toBe(0);
  } finally {
    process.env['PATH'] = PATH;
  }
  expect(leftOut).toEqual([['go', 'There is no Go (Debian: apt-get install golang-go).']]);
});
