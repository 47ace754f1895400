import type { Request } from 'express';
import { UNAVAILABLE } from '#errors';
import { RequestContext } from './request-context.js';
import { RequestsInFlight } from './requests-in-flight.js';

const requestOf = (url = '/v1/orders'): Request => ({ context: new RequestContext('id'), url }) as Request;

test('requests beyond the limit are refused, except health checks, until one is released', () => {
  const inFlight = new RequestsInFlight(2);
  const [first, ...others] = [requestOf(), requestOf(), requestOf(), requestOf('/health/live')] as const;
  expect([first, ...others].map((request) => inFlight.admit(request)?.definition)).toEqual([
    undefined,
    undefined,
    UNAVAILABLE,
    undefined,
  ]);
  expect(inFlight.count).toBe(3);
  for (const { context } of [first, first, others[2]]) inFlight.release(context);
  expect(inFlight.count).toBe(1);
  expect(inFlight.admit(requestOf())).toBeUndefined();
});
