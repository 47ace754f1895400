export { RateLimitModule } from './src/rate-limit.module.js';
export { RateLimiter } from './src/rate-limiter.js';
