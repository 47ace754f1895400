export { DirectInterceptor } from './src/direct-interceptor.js';
export { callHandlersDirectly, HANDLER_CALLS } from './src/nest.internals.js';
