export { connectToOwner, isClosed, LOCK_RETRY_MS, LOCK_WAIT_MS, ServedDirectoryError } from './src/directory-lock.js';
export { EMBEDDED_SETTINGS, EmbeddedEngine, hasDatabase, MAX_ENGINE_FILES } from './src/embedded-engine.js';
export { PGLITE } from './src/pglite.internals.js';
