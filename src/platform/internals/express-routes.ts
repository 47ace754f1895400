import { Logger } from '@nestjs/common';
import express, { type Express } from 'express';

/** Private members of the layers of Express's router. */
interface Layer {
  match(path: string): unknown;
  readonly route?: { readonly methods: Record<string, boolean> };
}

/**
 * Whether `routedMethods` works with this version of Express, by a trial. If not, logs one line: requests with another method
 * are then answered 404, as those on an unknown path are.
 *
 * @param createProbe for tests
 */
export function canReadRoutes(createProbe: () => Express = express): boolean {
  try {
    const probe = createProbe();
    probe.get('/trial/:id', () => undefined);
    if (String(routedMethods(probe, '/trial/1')) === 'GET' && routedMethods(probe, '/trial').length === 0) return true;
  } catch {
    // The warning says enough.
  }
  new Logger('Internals').warn(
    'The routes of Express cannot be read: another method than those of a path is answered 404.',
  );
  return false;
}

/** The methods of the routes that match a path; of all routes for `*` (RFC 9110, section 9.3.7). */
export function routedMethods(app: Express, path: string): string[] {
  const layers = app.router.stack as unknown as Layer[];
  const routes = layers.flatMap((layer) => (layer.route && (path === '*' || layer.match(path)) ? layer.route : []));
  return [...new Set(routes.flatMap(({ methods }) => Object.keys(methods)))].map((method) => method.toUpperCase());
}
