import type { Express, RequestHandler } from 'express';
import { StartupError } from '#errors';

/** Private members of the layers of Express's router. With other ones `checkRoutes` fails the start. */
interface Layer {
  match(path: string): boolean;
  readonly route?: { readonly path: string; readonly methods: Record<string, boolean> };
}

/** @throws StartupError when Express keeps its routes in another form */
export function checkRoutes(app: Express): void {
  if (layersOf(app).some((layer) => layer.match(layer.route.path) && layer.route.methods['get'])) return;
  throw new StartupError(
    'Express keeps its routes in another form than libs/internals expects. Install the pinned version.',
  );
}

function layersOf(app: Express): Required<Layer>[] {
  const layers = app.router.stack as unknown as Layer[];
  return layers.filter((layer): layer is Required<Layer> => layer.route !== undefined);
}

/** Adds a middleware before all others and before all routes. */
export function useFirst(app: Express, middleware: RequestHandler): void {
  app.use(middleware);
  const { stack } = app.router;
  stack.unshift(...stack.splice(-1));
}

/** The methods of the routes that match a path; of all routes for `*` (RFC 9110, section 9.3.7). */
export function routedMethods(app: Express, path: string): string[] {
  const routes = layersOf(app).flatMap((layer) => (path === '*' || layer.match(path) ? layer.route : []));
  return [...new Set(routes.flatMap(({ methods }) => Object.keys(methods)))].map((method) => method.toUpperCase());
}
