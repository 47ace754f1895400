export type { BodyPlan } from './src/body-reader.js';
export { PlatformExpressAdapter, type RequestObserver } from './src/express-adapter.js';
export { countHeader } from './src/requests/request-checks.js';
export { isAborted, RequestContext, servedRequest } from './src/requests/request-context.js';
