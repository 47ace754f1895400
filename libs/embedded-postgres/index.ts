/* Commands import this door before they know whether the service runs them, so it loads neither the engine nor a framework. */

export { EMBEDDED_SETTINGS, hasDatabase, MAX_ENGINE_FILES } from './src/data-directory.js';
export { connectToOwner, LOCK_RETRY_MS, LOCK_WAIT_MS, ServedDirectoryError } from './src/directory-lock.js';
export type { EmbeddedEngine } from './src/embedded-engine.js';
export { openEngine } from './src/open-engine.js';
export { TransactionGuard } from './src/transaction-guard.js';
