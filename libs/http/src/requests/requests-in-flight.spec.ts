import type { Request } from 'express';
import { UNAVAILABLE } from '#errors';
import { RequestContext } from './request-context.js';
import { RequestsInFlight } from './requests-in-flight.js';
import type { ClientId } from './turns.js';

const LIMIT = 8;
const KEPT = 2;

function requestOf(clientId: ClientId, url = '/v1/orders'): Request {
  const context = new RequestContext('id');
  context.clientId = clientId;
  return { context, url } as Request;
}

function admitting() {
  const inFlight = new RequestsInFlight(LIMIT, ({ context }) => context.clientId);
  const admit = (client: ClientId, count: number): Request[] =>
    Array.from({ length: count }, () => requestOf(client)).filter((request) => inFlight.admit(request) === undefined);
  return { inFlight, admit };
}

test('a client that is alone gets all places and no more', () => {
  const { inFlight, admit } = admitting();
  expect(admit(1n, LIMIT + 1)).toHaveLength(LIMIT);
  expect(inFlight.admit(requestOf(1n))).toMatchObject({ definition: UNAVAILABLE });
  expect(inFlight.admit(requestOf(1n, '/health/live'))).toBeUndefined();
});

test.each([
  ['a client', 1n],
  ['requests without a known key', undefined],
])('when %s holds all places, another client gets those that are kept, and no more', (_, flooding) => {
  const { inFlight, admit } = admitting();
  admit(flooding, LIMIT);
  expect(admit(2n, LIMIT)).toHaveLength(KEPT);
  expect(inFlight.count).toBe(LIMIT + KEPT);
  expect(admit(3n, 1)).toHaveLength(0);
});

test('a place that is returned beyond the limit goes to a client below its even share', () => {
  const { inFlight, admit } = admitting();
  const [first] = admit(1n, LIMIT);
  admit(2n, KEPT);
  inFlight.release((first as Request).context);
  expect(admit(1n, 1)).toHaveLength(0);
  expect(admit(2n, 1)).toHaveLength(1);
});

test('requests without a known key get a place although one client holds all', () => {
  const { admit } = admitting();
  admit(1n, LIMIT);
  expect(admit(undefined, 1)).toHaveLength(1);
});
