export { RateLimitModule } from './src/rate-limit.module.js';
export { RATE_LIMIT_SETTINGS, RateLimiter } from './src/rate-limiter.js';
