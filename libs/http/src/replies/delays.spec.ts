import type { Response } from 'express';
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { RequestContext } from '../requests/request-context.js';
import { RequestsInFlight } from '../requests/requests-in-flight.js';
import { MAX_DELAYED, PROMPT_REFUSALS, REFUSAL_PAUSE_MS } from '../requests/server-limits.js';
import { Delays } from './delays.js';

function refusing() {
  const inFlight = new RequestsInFlight(1_000, () => undefined);
  const delays = new Delays(inFlight);
  const sent: number[] = [];
  const refuse = (count: number): Response[] =>
    Array.from({ length: count }, (_, index) => {
      const request = { context: new RequestContext('id'), url: '/v1/orders' };
      const response = Object.assign(new EventEmitter(), { req: request }) as unknown as Response;
      inFlight.admit(response.req);
      delays.delay(response, () => sent.push(index));
      return response;
    });
  return { inFlight, delays, sent, refuse };
}

test('the first refusals of a second are sent at once; a bounded number of others waits, and holds no place in flight', async () => {
  const { inFlight, sent, refuse } = refusing();
  refuse(PROMPT_REFUSALS);
  expect(sent).toHaveLength(PROMPT_REFUSALS);
  refuse(MAX_DELAYED);
  expect(sent).toHaveLength(PROMPT_REFUSALS);
  expect(inFlight.count).toBe(PROMPT_REFUSALS);
  refuse(1);
  expect(sent).toHaveLength(PROMPT_REFUSALS + 1);
  await sleep(REFUSAL_PAUSE_MS + 50);
  expect(sent).toHaveLength(PROMPT_REFUSALS + MAX_DELAYED + 1);
});

test('a delay ends when the client leaves and when the server drains, and nothing is sent twice', async () => {
  const { delays, sent, refuse } = refusing();
  refuse(PROMPT_REFUSALS);
  const [gone] = refuse(2);
  gone?.emit('close');
  expect(sent).toHaveLength(PROMPT_REFUSALS + 1);
  delays.end();
  expect(sent).toHaveLength(PROMPT_REFUSALS + 2);
  refuse(1);
  expect(sent).toHaveLength(PROMPT_REFUSALS + 3);
  await sleep(REFUSAL_PAUSE_MS + 50);
  expect(sent).toHaveLength(PROMPT_REFUSALS + 3);
});
