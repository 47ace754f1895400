import type { Express, RequestHandler } from 'express';
import { StartupError } from '#runtime';

/** Private members of the layers of Express's router. With other ones `refuseHiddenRoutes` fails the start. */
interface Layer {
  match(path: string): boolean;
  readonly route?: { readonly path: string; readonly methods: Record<string, boolean> };
}

/** Paths of the platform, on which load balancers, monitoring and people rely. */
const PLATFORM_PATHS = [
  ...['/health/live', '/health/ready', '/metrics', '/openapi.json', '/openapi.yaml'],
  ...['/docs', '/docs/guide', '/docs/deprecations'],
];

/** @throws StartupError when a route of a module serves GET on a path of the platform, whose routes are last */
export function refuseHiddenRoutes(app: Express): void {
  const layers = layersOf(app);
  for (const path of PLATFORM_PATHS) {
    const answering = layers.findIndex((layer) => layer.route.methods['get'] && layer.match(path));
    if (answering === layers.findLastIndex(({ route }) => route.path === path)) continue;
    throw new StartupError(
      `The route ${path} is never reached: ${layers[answering]?.route.path} stands before it. Give that one another path.`,
    );
  }
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
