import type { Part } from '#definition';
import type { RATE_LIMIT_SETTINGS } from './src/rate-limiter.js';

/** Each client has a quota of requests per minute. */
export const rateLimit = {
  settings: async () => (await import('./src/rate-limiter.js')).RATE_LIMIT_SETTINGS,
  document: {
    point:
      '**Limits**: each client has a quota per minute; `RateLimit` shows the rest, and `Retry-After` of a 429 says when to try\n' +
      '  again.',
    headers: {
      'RateLimit-Policy': {
        description:
          'The quota of the client, for all of its keys together: `q` requests in `w` seconds. They may be sent at once, and ' +
          'come back evenly (draft-ietf-httpapi-ratelimit-headers-10). Absent without a limit.',
        schema: { type: 'string' },
        example: '"client";q=6000;w=60',
      },
      RateLimit: {
        description: '`r` requests are left; after `t` idle seconds the whole quota is back.',
        schema: { type: 'string' },
        example: '"client";r=5999;t=1',
      },
    },
    errors: ['rate_limited'],
  },
  load: async () => {
    const { RateLimiter, RateLimitModule } = await import('./src/rate-limiter.js');
    return { module: RateLimitModule, step: RateLimiter };
  },
} satisfies Part<typeof RATE_LIMIT_SETTINGS>;
