import type { Express } from 'express';

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

/** Takes off the middleware of an application. Returns what puts it back, in front of everything that was added since. */
export function takeMiddleware(app: Express): () => void {
  const layers = layersOf(app);
  const taken = layers.splice(0);
  return () => void layers.unshift(...taken.splice(0));
}
