export { ApiKeyRequestError } from './src/api-key-format.js';
export { ApiKeyGuard } from './src/api-key.guard.js';
export { ApiKeyVerifier } from './src/api-key.verifier.js';
export { ApiKeysService, type IssuedApiKey } from './src/api-keys.service.js';
export { API_KEY_SETTINGS, AuthModule } from './src/auth.module.js';
export { Authenticator, Authenticators, type Caller } from './src/authenticator.js';
export { EventStreams } from './src/event-streams.js';
export { REQUEST_STEPS, type RequestStep } from './src/request-step.js';
export type { StoredApiKey } from './src/stored-api-key.js';
