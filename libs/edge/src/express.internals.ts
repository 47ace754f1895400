import type { Express } from 'express';
import { misfit } from '#runtime';

/** What we use of the layers of Express's router. */
interface Layer {
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> };
  /** @throws URIError for a path that is not valid percent-encoded UTF-8 */
  match(path: string): unknown;
}

/** A route of an Express application. */
export interface Route {
  readonly path: string;
  /** In lower case. */
  readonly methods: readonly string[];
  /** @throws URIError for a path that is not valid percent-encoded UTF-8 */
  readonly matches: (path: string) => boolean;
}

const layersOf = (app: Express): Layer[] => app.router.stack as unknown as Layer[];

/** Layers of middleware that Express keeps as routes. */
const middlewareLayers = new WeakSet<Layer>();

/** Registers middleware of one path or method, which Express does by a route: {@link routesOf} leaves it out. */
export function asMiddleware<Result>(app: Express, register: () => Result): Result {
  const count = layersOf(app).length;
  const result = register();
  for (const layer of layersOf(app).slice(count)) middlewareLayers.add(layer);
  return result;
}

/** The routes of an application, in the order in which requests pass them. */
export function routesOf(app: Express): Route[] {
  return layersOf(app).flatMap((layer) => {
    if (layer.route === undefined || middlewareLayers.has(layer)) return [];
    const { path, methods } = layer.route;
    return { path, methods: Object.keys(methods), matches: (target) => Boolean(layer.match(target)) };
  });
}

/**
 * Takes off the one middleware of an application that has nothing else: the one that Nest's constructor registers.
 *
 * @returns puts it back, in front of everything that was added since
 * @throws StartupError when the application has no layer, or several
 */
export function takeMiddleware(app: Express): () => void {
  const layers = layersOf(app);
  const taken = layers.splice(0);
  const [middleware] = taken;
  if (middleware === undefined || taken.length > 1)
    throw misfit('@nestjs/platform-express', `its constructor registers ${taken.length} middleware, not one`);
  return () => void layers.unshift(middleware);
}
