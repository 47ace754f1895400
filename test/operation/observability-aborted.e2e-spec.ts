import { once } from 'node:events';
import { connect } from 'node:net';
import { Metrics } from '#ops';
import { createTestApp, type TestApp } from '../support/app.js';
import type { LogLine } from '../support/memory-log.js';
import { rawRequest } from '../support/raw-request.js';
import { SlowModule, TestSlowController } from '../support/slow.js';
import { until } from '../support/until.js';

/*
 * A request whose response was not sent completely counts as aborted, not under the status of that response.
 */

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [SlowModule] });
});
afterAll(() => app.close());

/** The log line of a request; the service writes it at the end of the response. */
function lineOf({ log }: TestApp, requestId: string): Promise<LogLine> {
  return until(() => log.requests.find((line) => line['requestId'] === requestId));
}

/** Number of observed responses of an operation, by status. */
async function countsOf({ nest }: TestApp, operation: string): Promise<Record<string, number>> {
  const { values } = await nest.get(Metrics).requestDurations.get();
  const counts: Record<string, number> = {};
  for (const { metricName, labels, value } of values) {
    if (!metricName?.endsWith('_count') || labels.operation !== operation) continue;
    const status = String(labels.status);
    counts[status] = (counts[status] ?? 0) + value;
  }
  return counts;
}

const head = (method: string, path: string, requestId: string, fields = ''): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${requestId}\r\n${fields}\r\n`;

test('aborted: the client disconnects before the response; the log has no status, because none was sent', async () => {
  const socket = connect(app.port, '127.0.0.1');
  socket.write(head('GET', '/v1/test-slow', 'before'));
  const { waiting } = app.nest.get(TestSlowController);
  const answer = await until(() => waiting.shift());
  socket.destroy();
  const line = await lineOf(app, 'before');
  answer();
  expect(line).toMatchObject({ operation: 'answerSlowly', aborted: true });
  expect(line).not.toHaveProperty('status');
  expect(await countsOf(app, 'answerSlowly')).toEqual({ aborted: 1 });
});

test.each([
  ['closes', 'during-close'],
  ['resets the connection', 'during-reset'],
])('aborted: the client %s during the response; the log has the status that was sent', async (how, requestId) => {
  const before = (await countsOf(app, 'answerLarge'))['aborted'] ?? 0;
  const socket = connect(app.port, '127.0.0.1');
  socket.write(head('GET', '/v1/test-slow/large', requestId));
  await once(socket, 'data');
  if (how === 'closes') socket.destroy();
  else socket.resetAndDestroy();
  expect(await lineOf(app, requestId)).toMatchObject({ operation: 'answerLarge', status: 200, aborted: true });
  expect(await countsOf(app, 'answerLarge')).toEqual({ aborted: before + 1 });
});

test('aborted: the client disconnects in the middle of its body', async () => {
  const fields = `Authorization: Bearer ${app.apiKey}\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n`;
  await rawRequest(app.port, head('POST', '/v1/pets', 'body', fields), { until: '100 Continue' });
  const line = await lineOf(app, 'body');
  expect(line).toMatchObject({ operation: 'createPet', client: 'test-client', aborted: true });
  expect(line).not.toHaveProperty('status');
  expect(await countsOf(app, 'createPet')).toEqual({ aborted: 1 });
});

test('aborted: a shutdown cuts requests that SHUTDOWN_TIMEOUT_MS leaves, before or during the response, and names them', async () => {
  const stopping = await createTestApp({ features: [SlowModule], settings: { SHUTDOWN_TIMEOUT_MS: '200' } });
  const waiting = connect(stopping.port, '127.0.0.1');
  waiting.write(head('GET', '/v1/test-slow', 'cut-before'));
  const large = connect(stopping.port, '127.0.0.1');
  large.write(head('GET', '/v1/test-slow/large', 'cut-during'));
  await once(large, 'readable');
  await until(() => stopping.nest.get(TestSlowController).waiting.at(0));
  await stopping.close();
  expect(stopping.log.text).toMatch(
    /Cutting 2 requests that did not finish within 200 ms: (answerSlowly, answerLarge|answerLarge, answerSlowly)\./,
  );
  expect(await lineOf(stopping, 'cut-before')).toMatchObject({ aborted: true });
  const cut = await lineOf(stopping, 'cut-during');
  expect(cut).toMatchObject({ status: 200, aborted: true });
  // Not until the whole response was handed to the socket, which is earlier.
  expect(cut['durationMs']).toBeGreaterThan(190);
  expect(await countsOf(stopping, 'answerSlowly')).toEqual({ aborted: 1 });
  expect(await countsOf(stopping, 'answerLarge')).toEqual({ aborted: 1 });
  waiting.destroy();
  large.destroy();
});

test('not aborted: a response that the client receives completely, whichever side closes the connection afterwards', async () => {
  const authorization = `Authorization: Bearer ${app.apiKey}\r\n`;
  const calls: [status: number, requestId: string, bytes: string][] = [
    [200, 'keep-alive', head('GET', '/v1/pets', 'keep-alive', authorization)],
    [200, 'close', head('GET', '/v1/pets', 'close', `${authorization}Connection: close\r\n`)],
    [200, 'head', head('HEAD', '/v1/pets', 'head', authorization)],
    [200, 'old', head('GET', '/v1/pets', 'old', authorization).replace('HTTP/1.1', 'HTTP/1.0')],
    [204, 'options', head('OPTIONS', '/v1/pets', 'options')],
    [401, 'refused', head('GET', '/v1/pets', 'refused')],
    [401, 'unread', head('POST', '/v1/pets', 'unread', 'Content-Length: 100000\r\n')],
    [401, 'unsent', head('POST', '/v1/pets', 'unsent', 'Content-Length: 100000\r\nExpect: 100-continue\r\n')],
    [404, 'missing', head('GET', '/v1/none', 'missing')],
    [414, 'long', head('GET', `/v1/pets?${'x'.repeat(8_200)}`, 'long')],
  ];
  for (const [status, requestId, bytes] of calls) {
    // The client closes the connection as soon as it has the header section.
    await rawRequest(app.port, bytes, { until: '\r\n\r\n' });
    const line = await lineOf(app, requestId);
    expect([requestId, line['status'], line['aborted']]).toEqual([requestId, status, undefined]);
  }
  const pipelined = head('GET', '/v1/pets', 'first', authorization) + head('GET', '/v1/pets', 'second', authorization);
  await rawRequest(app.port, pipelined.replace(/\r\n\r\n$/, '\r\nConnection: close\r\n\r\n'));
  for (const requestId of ['first', 'second']) expect(await lineOf(app, requestId)).not.toHaveProperty('aborted');
  expect(await countsOf(app, 'listPets')).toEqual({ 200: 6, 401: 1 });
});
