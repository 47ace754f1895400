import { Logger } from '@nestjs/common';
import express, { type Express } from 'express';
import { StartupError } from '../errors/startup-error.js';

/** Private members of the layers of Express's router. */
interface Layer {
  match(path: string): unknown;
  readonly route?: { readonly path: string; readonly methods: Record<string, boolean> };
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

/** Paths of the platform, on which load balancers, monitoring and people rely. */
const PLATFORM_PATHS = /^\/(health|metrics|docs|openapi\.)/;

/**
 * Other routes may have the same path, because they may differ in their host, which Express does not know.
 *
 * @throws StartupError when an earlier route answers all requests of a later one
 */
export function refuseHiddenRoutes(app: Express): void {
  const layers = layersOf(app);
  for (const [index, { route }] of layers.entries()) {
    const { path, methods } = route;
    // As a text, a parameter is matched by parameters alone. A wildcard may stand for many segments, or for none.
    if (/[*{]/.test(path)) continue;
    const earlier = layers.slice(0, index).find((layer) => {
      const isSame = layer.route.path === path && !PLATFORM_PATHS.test(path);
      return !isSame && Object.keys(methods).every((method) => layer.route.methods[method]) && layer.match(path);
    });
    if (earlier === undefined) continue;
    throw new StartupError(
      `The route ${path} is never reached: ${earlier.route.path} stands before it. Give one of them another path, or put ` +
        'the more specific handler or module first.',
    );
  }
}

function layersOf(app: Express): Required<Layer>[] {
  const layers = app.router.stack as unknown as Layer[];
  return layers.filter((layer): layer is Required<Layer> => layer.route !== undefined);
}

/** The methods of the routes that match a path; of all routes for `*` (RFC 9110, section 9.3.7). */
export function routedMethods(app: Express, path: string): string[] {
  const routes = layersOf(app).flatMap((layer) => (path === '*' || layer.match(path) ? layer.route : []));
  return [...new Set(routes.flatMap(({ methods }) => Object.keys(methods)))].map((method) => method.toUpperCase());
}
