import type { Request } from 'express';
import { UNAVAILABLE } from '#errors';
import { RequestContext } from './request-context.js';
import { RequestsInFlight } from './requests-in-flight.js';
import type { ClientId } from './turns.js';

function requestOf(clientId?: ClientId, url = '/v1/orders'): Request {
  return { context: Object.assign(new RequestContext('id'), { clientId }), url } as Request;
}

test('beyond the limit only health checks and, up to a quarter more, known clients are served, until one is released', () => {
  const inFlight = new RequestsInFlight(4, ({ context }) => context.clientId);
  const unknown = Array.from({ length: 5 }, () => requestOf());
  const known = [requestOf(1n), requestOf(1n)];
  const requests = [...unknown, ...known, requestOf(undefined, '/health/live')];
  const admitted = requests.map((request) => inFlight.admit(request)?.definition);
  const none = undefined;
  expect(admitted).toEqual([none, none, none, none, UNAVAILABLE, none, UNAVAILABLE, none]);
  expect(inFlight.count).toBe(6);
  for (const { context } of [...unknown, ...known, ...known]) inFlight.release(context);
  expect(inFlight.count).toBe(1);
  expect(inFlight.admit(requestOf())).toBeUndefined();
});
