import type { Response } from 'express';
import { readConfig } from '../../config.js';
import { Clock } from '../clock.js';
import { RateLimiter } from './rate-limiter.js';

test('refusals are counted by client; clients beyond the first 100 share one count', () => {
  const limiter = new RateLimiter(readConfig({ RATE_LIMIT_PER_MINUTE: '1' }), new Clock());
  const response = { setHeader: () => undefined } as unknown as Response;
  for (let id = 0; id < 103; id++) {
    const client = { id: BigInt(id), name: `client-${id}`, rateLimitPerMinute: null };
    void limiter.admit(client, response);
    for (let calls = 0; calls < 2; calls++) expect(() => limiter.admit(client, response)).toThrow();
  }
  expect(limiter.refusals.size).toBe(101);
  expect(limiter.refusals.get('client-0')).toBe(2);
  expect(limiter.refusals.get('client-99')).toBe(2);
  expect(limiter.refusals.get('(others)')).toBe(6);
});
