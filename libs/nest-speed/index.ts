import type { INestApplication } from '@nestjs/common';

export { DirectInterceptor } from './src/direct-interceptor.js';

/**
 * See `nest.internals.ts`. Imported when it is called, since another release of Nest may lack what it imports: call it for tested releases
 * only.
 */
export async function callHandlersDirectly(app: INestApplication): Promise<void> {
  const nest = await import('./src/nest.internals.js');
  nest.callHandlersDirectly(app);
}
