import type { Part } from '#service';
import type { RATE_LIMIT_SETTINGS } from './rate-limiter.js';

/** Each client has a quota of requests per minute. */
export const rateLimit = {
  settings: async () => (await import('./rate-limiter.js')).RATE_LIMIT_SETTINGS,
  settingsAfter: 'AFTER_SUNSET',
  load: async () => {
    const { RateLimiter, RateLimitModule } = await import('./rate-limiter.js');
    return { module: RateLimitModule, step: RateLimiter };
  },
} satisfies Part<typeof RATE_LIMIT_SETTINGS>;
