export { RATE_LIMIT_SETTINGS, RateLimiter, RateLimitModule } from './src/rate-limiter.js';
