export { DirectInterceptor } from './src/direct-interceptor.js';
export { callHandlersDirectly } from './src/handler-calls.js';
