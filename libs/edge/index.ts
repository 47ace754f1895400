import type { INestApplication } from '@nestjs/common';

export { type BodyPlan, FIELD_NAMES, parseForm } from './src/body-reader.js';
export { DRAIN_SETTINGS } from './src/connections/drain.js';
export { ErrorFilter } from './src/error.filter.js';
export { PlatformExpressAdapter, type RequestObserver } from './src/express-adapter.js';
export type { HttpConfig } from './src/http-server.js';
export { countHeader } from './src/requests/request-checks.js';
export {
  isAborted,
  REQUEST_LOG_SETTINGS,
  RequestContext,
  servedRequest,
  servedRequestOf,
} from './src/requests/request-context.js';
export { SERVER_SETTINGS } from './src/requests/server-limits.js';

/**
 * See `nest.internals.ts`. Imported when it is called, since another release of Nest may lack what it imports: call it for tested releases
 * only.
 */
export async function callHandlersDirectly(app: INestApplication): Promise<void> {
  const nest = await import('./src/nest.internals.js');
  nest.callHandlersDirectly(app);
}
