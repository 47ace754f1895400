import { readLoadResult } from '../../bench/load/load-result.js';

const outputOf = (requests: number, failures: number): string =>
  `Running 1s test\nRESULT ${JSON.stringify({ requests, durationUs: 1_000_000, p50Us: 10, p99Us: 20, failures })}\n`;

test('the benchmark counts failed requests of another server', () => {
  expect(readLoadResult('go', outputOf(100, 7))).toMatchObject({ requests: 100, failures: 7 });
});

test.each([
  ['petstore', outputOf(100, 1)],
  ['petstore grown', outputOf(100, 1)],
  ['go', outputOf(0, 7)],
  ['go', 'unable to connect'],
])('the benchmark ends when a request of this service fails, or a server answers none: %s, %j', (server, output) => {
  expect(() => readLoadResult(server, output)).toThrow(`${server} failed under load: ${output}`);
});
