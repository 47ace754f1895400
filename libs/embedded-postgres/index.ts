export { connectToOwner } from './src/directory-lock.js';
export { EmbeddedEngine } from './src/embedded-engine.js';
