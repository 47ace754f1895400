export { callHandlersDirectly } from './src/handler-calls.js';
